//===- sums.h - Column sums in the order of samples -------------*- C++ -*-===//
//
// The rows of a sample are divided into chunks of fixed size, and one thread
// sums each chunk. Then each column is summed over the chunks of a sample and
// over the samples, both in order, so that the bits do not depend on the number
// of threads.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_SUMS_H
#define MTPLAN_RUNTIME_CPU_SUMS_H

#include <vector>

#include "runtime/cpu/families.h"

namespace mtplan::runtime::cpu {

/// Computes to[i] += from[i].
void addTo(const float *from, std::int64_t count, float *to);
void addTo(const double *from, std::int64_t count, double *to);

/// Sums a tensor [samples][rows][columns] over rows and samples, for several
/// results.
template <typename R> class ColumnSums {
public:
  /// \param results  the number of results; each has `columns` sums
  ColumnSums(Context &theContext, std::int64_t theSamples,
             std::int64_t rowsOfSample, std::int64_t columns,
             std::int64_t results)
      : context(theContext), samples(theSamples), rows(rowsOfSample),
        width(columns), count(results),
        chunksOfSample((rows + kRows - 1) / kRows) {}

  /// Return how many elements of R to reserve in shared memory, and in each
  /// thread's memory (Context::reserve).
  std::int64_t sharedRoom() const {
    return samples * chunksOfSample * count * width;
  }
  std::int64_t ownRoom() const { return 2 * kChunk; }

  /// Calls `add(first row, rows, sums, thread)` for every chunk. `sums` holds
  /// the sums of all results one after another, and is zero on entry.
  template <typename Add> void run(Add &&add) {
    R *memory = context.template shared<R>();
    context.forEach(samples * chunksOfSample,
                    [&](std::int64_t chunk, int thread) {
                      const std::int64_t start = chunk % chunksOfSample * kRows;
                      R *sums = memory + chunk * count * width;
                      std::fill_n(sums, count * width, R(0));
                      add(chunk / chunksOfSample * rows + start,
                          std::min(kRows, rows - start), sums, thread);
                    });
  }

  /// Sums the chunks of one result, and stores it.
  /// \param adds  whether to add to the previous contents of `to`
  void finish(std::int64_t result, ElementType type, void *to,
              bool adds = false) {
    const R *memory = context.template shared<R>();
    context.forRange(
        width, kChunk, [&](std::int64_t first, std::int64_t piece, int thread) {
          R *sum = context.template ofThread<R>(thread), *term = sum + kChunk;
          for (std::int64_t sample = 0; sample < samples; ++sample) {
            // The first sample initializes `sum`.
            R *into = sample == 0 ? sum : term;
            for (std::int64_t chunk = 0; chunk < chunksOfSample; ++chunk) {
              const R *from =
                  memory +
                  ((sample * chunksOfSample + chunk) * count + result) * width +
                  first;
              if (chunk == 0)
                std::copy_n(from, piece, into);
              else
                addTo(from, piece, into);
            }
            if (sample > 0)
              addTo(term, piece, sum);
          }
          if (adds)
            addTo(widen(type, to, first, piece, term), piece, sum);
          narrow(type, to, first, piece, sum);
        });
  }

private:
  static constexpr std::int64_t kRows = 32;

  Context &context;
  const std::int64_t samples, rows, width, count, chunksOfSample;
};

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_SUMS_H

//===- sums.h - Column sums in the order of samples -------------*- C++ -*-===//
//
// A sample is divided into chunks of a fixed number of rows, and one thread
// sums the rows of a chunk. Then each column is summed over the chunks of a
// sample and over the samples, both in order. Therefore the bits do not depend
// on the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_SUMS_H
#define MTPLAN_RUNTIME_CPU_SUMS_H

#include <vector>

#include "runtime/cpu/families.h"

namespace mtplan::runtime::cpu {

void addTo(const float *from, std::int64_t count, float *to);
void addTo(const double *from, std::int64_t count, double *to);

/// Sums a tensor [samples][rows][columns] over samples and rows.
template <typename R> class ColumnSums {
public:
  /// \param results  number of results, each with `columns` sums
  ColumnSums(Context &theContext, std::int64_t theSamples,
             std::int64_t rowsOfSample, std::int64_t columns,
             std::int64_t results)
      : context(theContext), samples(theSamples), rows(rowsOfSample),
        width(columns), count(results),
        chunksOfSample((rows + kRows - 1) / kRows) {}

  /// Return how many elements of R to request from Context::reserve, shared and
  /// per thread.
  std::int64_t sharedRoom() const {
    return samples * chunksOfSample * count * width;
  }
  std::int64_t ownRoom() const { return 2 * kChunk; }

  /// Calls `add(first row, rows, sums, thread)` for every chunk. `sums` has
  /// `columns` elements per result, and is zero on entry.
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

  /// Sums the chunks of one result. Stores the sums in `to`, or adds them to
  /// `to` if `adds` is set.
  void finish(std::int64_t result, ElementType type, void *to,
              bool adds = false) {
    const R *memory = context.template shared<R>();
    context.forRange(
        width, kChunk, [&](std::int64_t first, std::int64_t piece, int thread) {
          R *sum = context.template ofThread<R>(thread), *term = sum + kChunk;
          for (std::int64_t sample = 0; sample < samples; ++sample) {
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

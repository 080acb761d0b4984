//===- elimination.cpp - Exact minimum over inner variables ---------------===//
//
// No argmin is stored, because assignments are needed for few entries. decode()
// finds an assignment in one pass over each bucket's inputs, which are still in
// the arena.
//
// The inner loop is auto-vectorised for several instruction sets, of which one
// is chosen at load time. All versions return the same bits, because the loop
// has only additions and minima, which no compiler fuses.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/elimination.h"

#include <algorithm>
#include <cmath>

// Sanitizers would instrument the resolver of target_clones, which runs before
// the sanitizers are initialised.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MTPLAN_PER_PROCESSOR                                                   \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MTPLAN_PER_PROCESSOR
#endif

namespace mtplan::planner {

namespace {

constexpr std::size_t kChunk = 16;

/// Sets result[b] to the minimum over v of scalars[v] + the sum over i of
/// rows[i][v][b]. Rows of consecutive v are `length` apart. All kernels add the
/// scalar first and then the rows in order, so they return the same bits.
using RowKernel = void (*)(double *result, const double *const *rows,
                           std::size_t rowCount, const double *scalars,
                           std::size_t values, std::size_t length);

/// Computes `Length` entries, which stay in registers, from `Count` rows.
template <std::size_t Count, std::size_t Length>
[[gnu::always_inline]] inline void
minimum(double *result, const double *const *rows, const double *scalars,
        std::size_t values, std::size_t stride, std::size_t at) {
  double best[Length];
  for (std::size_t b = 0; b < Length; ++b)
    best[b] = kInfinity;
  for (std::size_t v = 0; v < values; ++v) {
    double scalar = scalars[v];
    double sum[Length];
    for (std::size_t b = 0; b < Length; ++b)
      sum[b] = scalar;
    for (std::size_t i = 0; i < Count; ++i) {
      const double *row = rows[i] + v * stride + at;
      for (std::size_t b = 0; b < Length; ++b)
        sum[b] += row[b];
    }
    for (std::size_t b = 0; b < Length; ++b)
      best[b] = sum[b] < best[b] ? sum[b] : best[b];
  }
  for (std::size_t b = 0; b < Length; ++b)
    result[at + b] = best[b];
}

template <std::size_t Count>
[[gnu::always_inline]] inline void
minimumOfRows(double *result, const double *const *rows, const double *scalars,
              std::size_t values, std::size_t length) {
  std::size_t at = 0;
  for (; at + kChunk <= length; at += kChunk)
    minimum<Count, kChunk>(result, rows, scalars, values, length, at);
  for (; at + 4 <= length; at += 4)
    minimum<Count, 4>(result, rows, scalars, values, length, at);
  for (; at < length; ++at)
    minimum<Count, 1>(result, rows, scalars, values, length, at);
}

void noRows(double *result, const double *const * /*rows*/,
            std::size_t /*rowCount*/, const double *scalars, std::size_t values,
            std::size_t length) {
  std::fill(result, result + length,
            *std::min_element(scalars, scalars + values));
}

MTPLAN_PER_PROCESSOR
void oneRow(double *result, const double *const *rows, std::size_t /*rowCount*/,
            const double *scalars, std::size_t values, std::size_t length) {
  minimumOfRows<1>(result, rows, scalars, values, length);
}

MTPLAN_PER_PROCESSOR
void twoRows(double *result, const double *const *rows,
             std::size_t /*rowCount*/, const double *scalars,
             std::size_t values, std::size_t length) {
  minimumOfRows<2>(result, rows, scalars, values, length);
}

MTPLAN_PER_PROCESSOR
void threeRows(double *result, const double *const *rows,
               std::size_t /*rowCount*/, const double *scalars,
               std::size_t values, std::size_t length) {
  minimumOfRows<3>(result, rows, scalars, values, length);
}

MTPLAN_PER_PROCESSOR
void manyRows(double *result, const double *const *rows, std::size_t rowCount,
              const double *scalars, std::size_t values, std::size_t length) {
  for (std::size_t b = 0; b < length; ++b) {
    double best = kInfinity;
    for (std::size_t v = 0; v < values; ++v) {
      double sum = scalars[v];
      for (std::size_t i = 0; i < rowCount; ++i)
        sum += rows[i][v * length + b];
      best = sum < best ? sum : best;
    }
    result[b] = best;
  }
}

RowKernel rowKernel(std::size_t rowCount) {
  constexpr RowKernel kKernels[] = {noRows, oneRow, twoRows, threeRows};
  return rowCount < 4 ? kKernels[rowCount] : manyRows;
}

} // namespace

double Objective::of(double seconds, double bytes) const {
  if (std::isinf(seconds))
    return kInfinity;
  return time * seconds + memory * bytes;
}

Elimination::Elimination(const Problem &theShape, std::vector<int> theKeep)
    : keep(std::move(theKeep)) {
  shape.domains = theShape.domains;
  for (const CostTable &table : theShape.tables)
    shape.tables.push_back({table.scope, {}, {}});
}

bool Elimination::prepare(const Problem &problem) {
  LiveValues live = liveValues(problem);
  for (const std::vector<int> &values : live)
    if (values.empty())
      return false;
  for (const CostTable &table : problem.tables)
    if (table.scope.empty() && std::isinf(table.time[0]))
      return false;
  if (generationCount > 0 && live == compiled.live)
    return true;
  compiled = compileElimination(shape, std::move(live), keep);
  ++generationCount;
  storage.resize(compiled.arenaSize);
  std::size_t values = 1;
  std::size_t terms = 0;
  std::size_t outer = 0;
  for (const Bucket &bucket : compiled.buckets) {
    values = std::max(values, bucket.values);
    terms = std::max(terms, bucket.inputs.size());
    outer = std::max(outer, bucket.outer);
  }
  scalarSums.resize(values);
  cursors.resize(terms);
  counters.resize(outer);
  return true;
}

void Elimination::run(const Problem &problem, Objective objective) {
  load(problem, objective);
  for (const Bucket &bucket : compiled.buckets)
    join(bucket);
}

const double *Elimination::table() const {
  return storage.data() + compiled.buckets.back().offset;
}

void Elimination::load(const Problem &problem, Objective objective) {
  for (const Leaf &leaf : compiled.leaves) {
    double *to = storage.data() + leaf.offset;
    std::fill(to, to + leaf.size, 0.0);
    for (const Leaf::Part &part : leaf.parts) {
      const CostTable &table = problem.tables[part.table];
      const double *time = table.time.data();
      const double *memory = table.memory.data();
      const int *index = part.index.data();
      if (objective.time == 1.0 &&
          (objective.memory == 0.0 || table.memory.empty())) {
        for (std::size_t i = 0; i < leaf.size; ++i)
          to[i] += time[index[i]];
      } else if (objective.time == 1.0) {
        for (std::size_t i = 0; i < leaf.size; ++i)
          to[i] += time[index[i]] + objective.memory * memory[index[i]];
      } else {
        for (std::size_t i = 0; i < leaf.size; ++i)
          to[i] += objective.of(time[index[i]],
                                table.memory.empty() ? 0.0 : memory[index[i]]);
      }
    }
  }
}

void Elimination::join(const Bucket &bucket) {
  double *base = storage.data();
  for (const Bucket::Expansion &expansion : bucket.expansions) {
    const double *from = base + expansion.from;
    double *to = base + expansion.to;
    for (std::size_t row = 0; row < expansion.rows; ++row) {
      for (std::size_t b = 0; b < bucket.blockSize; ++b)
        to[b] = from[expansion.pick[b]];
      from += expansion.fromRow;
      to += bucket.blockSize;
    }
  }

  std::size_t rows = bucket.rows.size();
  std::size_t scalars = bucket.scalars.size();
  for (std::size_t i = 0; i < rows; ++i)
    cursors[i] = base + bucket.rows[i].offset;
  for (std::size_t i = 0; i < scalars; ++i)
    cursors[rows + i] = base + bucket.scalars[i].offset;
  std::fill(counters.begin(), counters.end(), 0);
  std::fill(scalarSums.begin(), scalarSums.end(), 0.0);
  RowKernel kernel = rowKernel(rows);

  double *result = base + bucket.offset;
  for (std::size_t o = 0; o < bucket.outerSize; ++o) {
    const double *sums = scalarSums.data();
    if (scalars == 1) {
      sums = cursors[rows];
    } else if (scalars > 1) {
      for (std::size_t v = 0; v < bucket.values; ++v) {
        double sum = cursors[rows][v];
        for (std::size_t i = 1; i < scalars; ++i)
          sum += cursors[rows + i][v];
        scalarSums[v] = sum;
      }
    }
    kernel(result, cursors.data(), rows, sums, bucket.values, bucket.blockSize);
    result += bucket.blockSize;

    for (std::size_t p = bucket.outer; p-- > 0;) {
      auto domain = bucket.domains[p];
      if (++counters[p] < domain) {
        for (std::size_t i = 0; i < rows; ++i)
          cursors[i] += bucket.rows[i].strides[p];
        for (std::size_t i = 0; i < scalars; ++i)
          cursors[rows + i] += bucket.scalars[i].strides[p];
        break;
      }
      counters[p] = 0;
      auto back = static_cast<std::size_t>(domain - 1);
      for (std::size_t i = 0; i < rows; ++i)
        cursors[i] -= back * bucket.rows[i].strides[p];
      for (std::size_t i = 0; i < scalars; ++i)
        cursors[rows + i] -= back * bucket.scalars[i].strides[p];
    }
  }
}

Assignment Elimination::decode(const std::vector<int> &keptValues) const {
  const LiveValues &live = compiled.live;
  std::vector<std::size_t> position(live.size(), 0); // index of the live value
  for (std::size_t k = 0; k < compiled.keep.size(); ++k) {
    const std::vector<int> &values = live[compiled.keep[k]];
    auto found = std::lower_bound(values.begin(), values.end(), keptValues[k]);
    if (found == values.end() || *found != keptValues[k])
      return {};
    position[compiled.keep[k]] =
        static_cast<std::size_t>(found - values.begin());
  }
  for (std::size_t b = compiled.buckets.size(); b-- > 0;) {
    const Bucket &bucket = compiled.buckets[b];
    double least = kInfinity;
    std::size_t best = 0;
    for (std::size_t v = 0; v < bucket.values; ++v) {
      double sum = 0.0;
      for (const BucketInput &input : bucket.inputs) {
        std::size_t entry = input.offset + v * input.variableStride;
        for (std::size_t p = 0; p < bucket.scope.size(); ++p)
          entry += input.strides[p] * position[bucket.scope[p]];
        sum += storage[entry];
      }
      if (sum < least) {
        least = sum;
        best = v;
      }
    }
    if (least == kInfinity)
      return {};
    if (bucket.variable >= 0)
      position[bucket.variable] = best;
  }
  Assignment assignment(live.size());
  for (std::size_t v = 0; v < live.size(); ++v)
    assignment[v] = live[v][position[v]];
  return assignment;
}

} // namespace mtplan::planner

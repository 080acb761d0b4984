//===- offsets.cpp - Offsets for values with live ranges ------------------===//

#include "passes/memory/offsets.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace mtplan::passes {

// Assigns offsets by best fit, the largest value first. Values of equal size
// are assigned in ascending order of their index or, if `lastFirst`, in
// descending order.
static Offsets bestFit(const std::vector<Lifetime> &lifetimes,
                       std::int64_t alignment, bool lastFirst) {
  Offsets result;
  result.at.assign(lifetimes.size(), 0);
  std::vector<std::size_t> order, placed;
  for (std::size_t one = 0; one < lifetimes.size(); ++one) {
    const Lifetime &life = lifetimes[one];
    (life.fixedAt < 0 ? order : placed).push_back(one);
    if (life.fixedAt < 0)
      continue;
    result.at[one] = life.fixedAt;
    result.total =
        std::max(result.total, life.fixedAt + roundedUp(life.bytes, alignment));
  }
  if (lastFirst)
    std::ranges::reverse(order);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });
  for (std::size_t one : order) {
    const Lifetime &life = lifetimes[one];
    const std::int64_t bytes = roundedUp(life.bytes, alignment);
    std::vector<std::pair<std::int64_t, std::int64_t>> taken; // start and end
    for (std::size_t other : placed)
      if (lifetimes[other].first <= life.last &&
          life.first <= lifetimes[other].last)
        taken.emplace_back(result.at[other],
                           result.at[other] +
                               roundedUp(lifetimes[other].bytes, alignment));
    std::ranges::sort(taken);
    std::int64_t end = 0, best = -1, tightest = 0;
    for (auto [start, stop] : taken) {
      const std::int64_t gap = start - end;
      if (gap >= bytes && (best < 0 || gap < tightest)) {
        best = end;
        tightest = gap;
      }
      end = std::max(end, stop);
    }
    result.at[one] = best < 0 ? end : best;
    result.total = std::max(result.total, result.at[one] + bytes);
    placed.push_back(one);
  }
  return result;
}

Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      std::int64_t alignment) {
  Offsets first = bestFit(lifetimes, alignment, false),
          last = bestFit(lifetimes, alignment, true);
  return last.total < first.total ? std::move(last) : std::move(first);
}

Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      const std::vector<Row> &rows, std::int64_t alignment) {
  // Each row is merged into one lifetime, whose size is the sum of the sizes of
  // the row's values.
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> rowOf(lifetimes.size(), kNone);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (const std::size_t one : rows[r])
      rowOf[one] = r;
  std::vector<Lifetime> merged;
  std::vector<std::size_t> place(lifetimes.size());
  for (std::size_t one = 0; one < lifetimes.size(); ++one) {
    const bool isLater = rowOf[one] != kNone && rows[rowOf[one]].front() != one;
    place[one] = isLater ? kNone : merged.size();
    if (isLater)
      continue;
    Lifetime life = lifetimes[one];
    if (rowOf[one] != kNone) {
      const Row &row = rows[rowOf[one]];
      life.bytes = roundedUp(life.bytes, alignment) *
                   static_cast<std::int64_t>(row.size());
      for (const std::size_t other : row) {
        life.first = std::min(life.first, lifetimes[other].first);
        life.last = std::max(life.last, lifetimes[other].last);
      }
    }
    merged.push_back(life);
  }
  const Offsets offsets = assignOffsets(merged, alignment);
  Offsets result;
  result.total = offsets.total;
  for (const std::size_t merge : place)
    result.at.push_back(merge == kNone ? 0 : offsets.at[merge]);
  for (const Row &row : rows)
    for (std::size_t i = 1; i < row.size(); ++i)
      result.at[row[i]] = result.at[row[i - 1]] +
                          roundedUp(lifetimes[row[i - 1]].bytes, alignment);
  return result;
}

std::int64_t peakOf(const std::vector<Lifetime> &lifetimes,
                    std::int64_t alignment) {
  std::map<std::int64_t, std::int64_t> change;
  for (const Lifetime &life : lifetimes) {
    change[life.first] += roundedUp(life.bytes, alignment);
    change[life.last + 1] -= roundedUp(life.bytes, alignment);
  }
  std::int64_t alive = 0, peak = 0;
  for (auto [moment, bytes] : change)
    peak = std::max(peak, alive += bytes);
  return peak;
}

} // namespace mtplan::passes

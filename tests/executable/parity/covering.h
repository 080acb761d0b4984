//===- covering.h - Covering arrays of strength 2 ---------------*- C++ -*-===//
//
// Chooses rows over factors such that any two values of any two factors occur
// together in some row, unless no legal row has both. The algorithm is greedy,
// as in Cohen et al., "The AETG system" (1997), but deterministic: the next row
// is the first that covers the most pairs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EXECUTABLE_PARITY_COVERING_H
#define MTPLAN_TESTS_EXECUTABLE_PARITY_COVERING_H

#include <functional>
#include <vector>

namespace mtplan {

using Row = std::vector<int>; ///< an index into the values of each factor

/// Returns the rows, for at most 16 values per factor, in O(rows chosen x legal
/// rows x pairs of factors).
///
/// \param legal  returns whether a complete row is legal
inline std::vector<Row>
coveringRows(const std::vector<int> &values,
             const std::function<bool(const Row &)> &legal) {
  std::vector<Row> all{{}};
  for (int count : values) {
    std::vector<Row> longer;
    for (const Row &row : all)
      for (int value = 0; value < count; ++value) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    all = std::move(longer);
  }
  std::erase_if(all, [&](const Row &row) { return !legal(row); });
  const std::size_t factors = values.size();
  auto pairsOf = [&](const Row &row, auto &&visit) {
    for (std::size_t a = 0; a < factors; ++a)
      for (std::size_t b = a + 1; b < factors; ++b)
        visit(((a * factors + b) * 16 + static_cast<std::size_t>(row[a])) * 16 +
              static_cast<std::size_t>(row[b]));
  };
  std::vector<char> open(factors * factors * 256, 0);
  for (const Row &row : all)
    pairsOf(row, [&](std::size_t pair) { open[pair] = 1; });
  std::vector<Row> chosen;
  for (;;) {
    int most = 0;
    const Row *best = nullptr;
    for (const Row &row : all) {
      int covers = 0;
      pairsOf(row, [&](std::size_t pair) { covers += open[pair]; });
      if (covers > most) {
        most = covers;
        best = &row;
      }
    }
    if (!best)
      return chosen;
    pairsOf(*best, [&](std::size_t pair) { open[pair] = 0; });
    chosen.push_back(*best);
  }
}

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_PARITY_COVERING_H

//===- state_slices_test.cpp - Positions of a box in a tensor -------------===//

#include <map>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/checkpoint/model_state.h"

namespace mtplan::runtime {
namespace {

/// Maps positions of elements in the tensor to positions in the box.
using Places = std::map<std::int64_t, std::int64_t>;

// Computes the positions one element at a time. Elements of the box beyond the
// end of the tensor have none.
Places placesOf(const TensorView &box, const std::vector<std::int64_t> &whole) {
  Places places;
  std::int64_t elements = 1;
  for (const std::int64_t extent : box.shape)
    elements *= extent;
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t rest = i, stride = 1, at = 0;
    bool isThere = true;
    for (std::size_t d = whole.size(); d-- > 0;) {
      const std::int64_t index = rest % box.shape[d] + box.pieces[d].offset;
      rest /= box.shape[d];
      isThere = isThere && index < whole[d];
      at += index * stride;
      stride *= whole[d];
    }
    if (isThere)
      places[at] = i;
  }
  return places;
}

TEST(ForEachRun, VisitsEveryElementOnceInOrder) {
  std::mt19937_64 random(7);
  auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int cut = 0, empty = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto rank = static_cast<std::size_t>(draw(0, 4));
    TensorView box;
    std::vector<std::int64_t> whole(rank);
    box.shape.resize(rank);
    box.pieces.resize(rank);
    bool isCut = false;
    for (std::size_t d = 0; d < rank; ++d) {
      whole[d] = draw(1, 5);
      // A third of the boxes span the dimension, so that runs continue across
      // rows. The others may exceed its end, like shards of a padded tensor.
      const bool all = draw(0, 2) == 0;
      box.pieces[d].offset = all ? 0 : draw(0, whole[d]);
      box.shape[d] = all ? whole[d] : draw(1, 5);
      isCut = isCut || box.pieces[d].offset + box.shape[d] > whole[d];
    }
    const Places expected = placesOf(box, whole);
    Places visited;
    std::int64_t last = -1;
    forEachRun(box, whole,
               [&](std::int64_t at, std::int64_t inBox, std::int64_t count) {
                 EXPECT_GT(at, last);
                 EXPECT_GT(count, 0);
                 for (std::int64_t k = 0; k < count; ++k)
                   EXPECT_TRUE(visited.emplace(at + k, inBox + k).second);
                 last = at + count - 1;
               });
    ASSERT_EQ(visited, expected);
    // One call for the elements before a cut, and one for those after it,
    // together visit the same elements.
    std::int64_t elements = 1;
    for (const std::int64_t extent : whole)
      elements *= extent;
    const std::int64_t cutAt = draw(0, elements);
    Places parts;
    for (const auto &[from, to] :
         {std::pair<std::int64_t, std::int64_t>{0, cutAt}, {cutAt, elements}})
      forEachRunWithin(box, whole, from, to - from,
                       [&, first = from, end = to](std::int64_t at,
                                                   std::int64_t inBox,
                                                   std::int64_t count) {
                         EXPECT_GT(count, 0);
                         EXPECT_GE(at, first);
                         EXPECT_LE(at + count, end);
                         for (std::int64_t k = 0; k < count; ++k)
                           EXPECT_TRUE(parts.emplace(at + k, inBox + k).second);
                       });
    ASSERT_EQ(parts, expected);
    cut += isCut && !expected.empty() ? 1 : 0;
    empty += expected.empty() ? 1 : 0;
  }
  EXPECT_GT(cut, 500);
  EXPECT_GT(empty, 100);
}

} // namespace
} // namespace mtplan::runtime

//===- deal_test.cpp - Who writes what of a state -------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/gatherer.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;

StateTensor f32(const std::string &name, std::vector<std::int64_t> shape) {
  StateTensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  return tensor;
}

OwnedBox box(int rank, const std::vector<std::int64_t> &offsets,
             std::vector<std::int64_t> shape) {
  OwnedBox made;
  made.rank = rank;
  made.view.shape = std::move(shape);
  for (const std::int64_t offset : offsets)
    made.view.pieces.push_back({offset, 0});
  return made;
}

TEST(Deal, WhatOneRankHasIsWrittenThere) {
  const ModelState state{{f32("a", {2, 3}), f32("b", {4})}, {}};
  EXPECT_THAT(deal(state, {{box(1, {0, 0}, {2, 3})}, {box(0, {0}, {4})}}, 2),
              ElementsAre(Part{0, 0, 6, 1}, Part{1, 0, 4, 0}));
}

TEST(Deal, LongRunsStayWhereTheyAre) {
  // Rows 0 to 3 are 64 bytes.
  const ModelState state{{f32("a", {8, 4})}, {}};
  const std::vector<std::vector<OwnedBox>> rows{
      {box(1, {0, 0}, {4, 4}), box(0, {4, 0}, {4, 4})}};
  EXPECT_THAT(deal(state, rows, 2, 64),
              ElementsAre(Part{0, 0, 16, 1}, Part{0, 16, 16, 0}));
  // Half as long as that: one rank gathers it, as a share is 128 bytes, too.
  EXPECT_THAT(deal(state, rows, 2, 128), ElementsAre(Part{0, 0, 32, 1}));
}

TEST(Deal, ColumnsAreGatheredEvenly) {
  // 4 * 4 * 4 = 64 bytes, 16, 16 and 32.
  const ModelState state{
      {f32("a", {1, 4}), f32("b", {4, 4}), f32("c", {1, 4}), f32("d", {2, 4})},
      {}};
  std::vector<std::vector<OwnedBox>> boxes;
  for (const StateTensor &tensor : state.tensors)
    boxes.push_back({box(0, {0, 0}, {tensor.shape[0], 2}),
                     box(1, {0, 2}, {tensor.shape[0], 2})});
  // Largest first: b to rank 0, d and then a and c to rank 1.
  EXPECT_THAT(deal(state, boxes, 2, 32),
              ElementsAre(Part{0, 0, 4, 1}, Part{1, 0, 16, 0}, Part{2, 0, 4, 1},
                          Part{3, 0, 8, 1}));
}

TEST(Deal, NobodyGathersMoreOfATensorThanAShare) {
  // 7 * 6 = 42 elements, 168 bytes: a third is 56.
  const ModelState state{{f32("a", {7, 6})}, {}};
  EXPECT_THAT(
      deal(state,
           {{box(0, {0, 0}, {7, 2}), box(1, {0, 2}, {7, 2}),
             box(2, {0, 4}, {7, 2})}},
           3, 8),
      ElementsAre(Part{0, 0, 14, 0}, Part{0, 14, 14, 1}, Part{0, 28, 14, 2}));
}

TEST(Deal, PaddingIsNobodys) {
  // 5 rows over 3 ranks of 2; the last has one, and a fourth has none.
  const ModelState state{{f32("a", {5, 2})}, {}};
  EXPECT_THAT(
      deal(state,
           {{box(0, {0, 0}, {2, 2}), box(1, {2, 0}, {2, 2}),
             box(2, {4, 0}, {2, 2}), box(3, {6, 0}, {2, 2})}},
           4, 8),
      ElementsAre(Part{0, 0, 4, 0}, Part{0, 4, 4, 1}, Part{0, 8, 2, 2}));
}

} // namespace
} // namespace mtplan::runtime

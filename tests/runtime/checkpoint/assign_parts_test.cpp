//===- assign_parts_test.cpp - The ranks that write the parts of a state --===//

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

TEST(Deal, TensorOfOneRankIsWrittenThere) {
  const ModelState state{{f32("a", {2, 3}), f32("b", {4})}, {}};
  EXPECT_THAT(
      assignParts(state, {{box(1, {0, 0}, {2, 3})}, {box(0, {0}, {4})}}, 2),
      ElementsAre(Part{0, 0, 6, 1}, Part{1, 0, 4, 0}));
}

TEST(Deal, LongRunsAreWrittenByTheirOwner) {
  // Rows 0 to 3 have 64 bytes, which are a long run here.
  const ModelState state{{f32("a", {8, 4})}, {}};
  const std::vector<std::vector<OwnedBox>> rows{
      {box(1, {0, 0}, {4, 4}), box(0, {4, 0}, {4, 4})}};
  EXPECT_THAT(assignParts(state, rows, 2, 64),
              ElementsAre(Part{0, 0, 16, 1}, Part{0, 16, 16, 0}));
  // Runs of 64 bytes are short now. A part may have 128 bytes, which is the
  // whole tensor, so one rank writes it.
  EXPECT_THAT(assignParts(state, rows, 2, 128), ElementsAre(Part{0, 0, 32, 1}));
}

TEST(Deal, ColumnsAreGatheredEvenly) {
  // The tensors have 16, 64, 16 and 32 bytes.
  const ModelState state{
      {f32("a", {1, 4}), f32("b", {4, 4}), f32("c", {1, 4}), f32("d", {2, 4})},
      {}};
  std::vector<std::vector<OwnedBox>> boxes;
  for (const StateTensor &tensor : state.tensors)
    boxes.push_back({box(0, {0, 0}, {tensor.shape[0], 2}),
                     box(1, {0, 2}, {tensor.shape[0], 2})});
  // Larger tensors are assigned first: b to rank 0, then d, a and c to rank 1.
  EXPECT_THAT(assignParts(state, boxes, 2, 32),
              ElementsAre(Part{0, 0, 4, 1}, Part{1, 0, 16, 0}, Part{2, 0, 4, 1},
                          Part{3, 0, 8, 1}));
}

TEST(Deal, NoRankGathersMoreThanItsShareOfATensor) {
  // The tensor has 7 * 6 elements or 168 bytes. A third of them is 56 bytes.
  const ModelState state{{f32("a", {7, 6})}, {}};
  EXPECT_THAT(
      assignParts(state,
                  {{box(0, {0, 0}, {7, 2}), box(1, {0, 2}, {7, 2}),
                    box(2, {0, 4}, {7, 2})}},
                  3, 8),
      ElementsAre(Part{0, 0, 14, 0}, Part{0, 14, 14, 1}, Part{0, 28, 14, 2}));
}

TEST(Deal, PaddingIsNotWritten) {
  // Ranks 0 to 2 hold two rows each, but the tensor has only 5: one row of rank
  // 2 and all rows of rank 3 are padding.
  const ModelState state{{f32("a", {5, 2})}, {}};
  EXPECT_THAT(
      assignParts(state,
                  {{box(0, {0, 0}, {2, 2}), box(1, {2, 0}, {2, 2}),
                    box(2, {4, 0}, {2, 2}), box(3, {6, 0}, {2, 2})}},
                  4, 8),
      ElementsAre(Part{0, 0, 4, 0}, Part{0, 4, 4, 1}, Part{0, 8, 2, 2}));
}

} // namespace
} // namespace mtplan::runtime

//===- resize_test.cpp - Smaller batches, models and segments -------------===//

#include <algorithm>

#include "mlir/IR/Verifier.h"

#include "ir/interpret/interpret.h"
#include "passes/verify/prove.h"
#include "tests/passes/verify/random_plan.h"

namespace mtplan::passes {
namespace {

using Shape = std::vector<std::int64_t>;

/// Returns the shape of the first result of the operation labelled `label`.
Shape shapeOf(mlir::ModuleOp module, llvm::StringRef label) {
  Shape shape;
  module.walk([&](mlir::Operation *op) {
    auto name = op->getAttrOfType<mlir::StringAttr>("label");
    if (!shape.empty() || !name || name.getValue() != label ||
        op->getNumResults() == 0)
      return;
    auto type = llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType());
    shape.assign(type.getShape().begin(), type.getShape().end());
  });
  return shape;
}

std::int64_t attributeOf(mlir::ModuleOp module, llvm::StringRef label,
                         llvm::StringRef name) {
  std::int64_t value = -1;
  module.walk([&](mlir::Operation *op) {
    auto labelOf = op->getAttrOfType<mlir::StringAttr>("label");
    auto attribute = op->getAttrOfType<mlir::IntegerAttr>(name);
    if (labelOf && labelOf.getValue() == label && attribute)
      value = attribute.getInt();
  });
  return value;
}

void shrinkFor(Step &step) {
  (*step.module)
      ->setAttr(ir::kMeshAttrName,
                toAttr(step.module->getContext(), step.mesh));
  shrink(*step.module);
}

TEST(ResizeBatch, ChangesOnlyTheSamples) {
  Step step({"tiny-gpt2"}, 1, 1);
  resizeBatch(*step.module, 6);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*step.module)));
  EXPECT_EQ(shapeOf(*step.module, "ids"), (Shape{6, 32}));
  EXPECT_EQ(shapeOf(*step.module, "h.*.attn.q"), (Shape{6, 32, 64}));
  EXPECT_EQ(shapeOf(*step.module, "h.*.attn.q.weight"), (Shape{64, 64}));
  EXPECT_EQ(shapeOf(*step.module, "h.*.mlp.fc1.db"), (Shape{256}));
  EXPECT_EQ(attributeOf(*step.module, "ids", "limit"), 500);
}

// On one rank, dimensions shrink to 2 samples, 4 positions, a residual stream
// of 6, other widths of 5, and 2 heads of width 4. The table, 12 of whose 512
// rows are padding, shrinks to 5 rows with one of padding.
TEST(Shrink, GivesEveryDimensionTheLengthOfItsRole) {
  Step step({"tiny-gpt2"}, 1, 1);
  shrinkFor(step);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*step.module)));
  EXPECT_EQ(shapeOf(*step.module, "ids"), (Shape{2, 4}));
  EXPECT_EQ(shapeOf(*step.module, "wte.weight"), (Shape{5, 6}));
  EXPECT_EQ(shapeOf(*step.module, "h.*.attn.q.weight"), (Shape{6, 8}));
  EXPECT_EQ(shapeOf(*step.module, "h.*.mlp.fc1.weight"), (Shape{6, 5}));
  EXPECT_EQ(attributeOf(*step.module, "ids", "limit"), 4);
  step.module->walk([](ir::ParameterOp op) {
    EXPECT_EQ(op.getUnpadded().has_value(), op.getLabel() == "wte.weight");
    if (auto unpadded = op.getUnpadded()) {
      EXPECT_EQ(Shape(unpadded->begin(), unpadded->end()), (Shape{4, 6}));
    }
  });
  EXPECT_EQ(attributeOf(*step.module, "loss.grad", "classes"), 4);
  EXPECT_EQ(attributeOf(*step.module, "h.*.attn.core", "head_dim"), 4);
}

// Four tokens choose two of five experts each, with a capacity of two, so that
// some are dropped.
TEST(Shrink, KeepsDroppingTokensAtExperts) {
  Step step({"tiny-mixtral"}, 1, 1);
  shrinkFor(step);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*step.module)));
  EXPECT_EQ(shapeOf(*step.module, "h.*.moe.slots"), (Shape{2, 4, 5}));
  EXPECT_EQ(shapeOf(*step.module, "h.*.moe.dispatch"), (Shape{5, 2, 2, 6}));
  EXPECT_EQ(attributeOf(*step.module, "h.*.moe.gates", "top_k"), 2);
}

// Five of eight experts remain. Before, tokens chose seven or all eight.
TEST(Shrink, KeepsAChoiceAmongExperts) {
  for (auto [chosen, left] : {std::pair("7", 4), std::pair("8", 5)}) {
    Step step({"tiny-mixtral", "\"num_experts_per_tok\": 2",
               "\"num_experts_per_tok\": " + std::string(chosen)},
              1, 1);
    shrinkFor(step);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*step.module)));
    EXPECT_EQ(attributeOf(*step.module, "h.*.moe.slots", "top_k"), left);
    EXPECT_EQ(attributeOf(*step.module, "h.*.moe.balance.grad", "top_k"), left);
  }
}

// Eight query heads share four key heads. Eight ranks can still shard the heads
// of RoPE, but not attention's four groups.
TEST(Shrink, KeepsDivisibilityWithGroupedQueries) {
  Step step({"tiny-mistral"}, 1, 8);
  shrinkFor(step);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*step.module)));
  Shape query = shapeOf(*step.module, "h.*.attn.q_rope");
  std::int64_t width = attributeOf(*step.module, "h.*.attn.q_rope", "head_dim");
  EXPECT_EQ(query[2] / width % 8, 0);
  EXPECT_EQ(query, shapeOf(*step.module, "h.*.attn.q"));
  EXPECT_EQ(query, shapeOf(*step.module, "h.*.attn.core"));
  EXPECT_LT(query[2], 64);
}

// Every axis can still shard the factors that it could, and no factor grows.
TEST(Shrink, EveryFamilyKeepsItsSplits) {
  for (const Family &family : families())
    for (auto [dp, tp] : {std::pair(1, 2), std::pair(2, 4), std::pair(2, 8)}) {
      SCOPED_TRACE(family.example + " on " + std::to_string(dp) + "x" +
                   std::to_string(tp));
      Step step(family, dp, tp);
      std::vector<planner::SegmentGraph> before = step.graph.segments;
      shrinkFor(step);
      EXPECT_TRUE(mlir::succeeded(mlir::verify(*step.module)));
      std::vector<planner::SegmentGraph> after =
          buildModelGraph(*step.module).segments;
      ASSERT_EQ(before.size(), after.size());
      for (std::size_t s = 0; s < before.size(); ++s) {
        EXPECT_LE(after[s].repeat, 2);
        for (std::size_t o = 0; o < before[s].ops.size(); ++o)
          for (std::size_t f = 0; f < before[s].ops[o].factors.size(); ++f) {
            const planner::Factor &was = before[s].ops[o].factors[f];
            const planner::Factor &is = after[s].ops[o].factors[f];
            EXPECT_LE(is.size, was.size) << before[s].ops[o].name;
            for (int ranks : {dp, tp, dp * tp})
              EXPECT_TRUE(!was.divisible || was.size % ranks != 0 ||
                          is.size % ranks == 0)
                  << before[s].ops[o].name << ' ' << was.name;
          }
      }
    }
}

TEST(SplitSegment, PartsHaveTheirOwnLayerRanges) {
  Step step({"tiny-gpt2"}, 1, 2);
  for (auto segment :
       llvm::make_early_inc_range(step.module->getOps<ir::SegmentOp>()))
    if (segment.getRepeat() == 3)
      splitSegment(segment, {1, 2});
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*step.module)));
  std::vector<std::string> names;
  std::vector<std::int64_t> firsts;
  for (auto segment : step.module->getOps<ir::SegmentOp>()) {
    names.push_back(segment.getSymName().str());
    firsts.push_back(static_cast<std::int64_t>(segment.getFirst()));
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"embed", "h", "h_1", "h_2", "head"}));
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 0, 1, 2, 0}));
  std::vector<Shape> copies;
  step.module->walk([&](ir::AccumulatedOp op) {
    if (op.getLabel() == "h.*.ln_1.weight")
      copies.emplace_back(op.getCopies()->begin(), op.getCopies()->end());
  });
  EXPECT_EQ(copies, (std::vector<Shape>{{0, 1}, {1, 1}, {2, 1}}));
}

// Splitting a segment does not change the results.
TEST(SplitSegment, ComputesTheSame) {
  Step step({"tiny-llama", "\"attention_dropout\": 0.0",
             "\"attention_dropout\": 0.1"},
            1, 1);
  shrink(*step.module);
  mlir::OwningOpRef<mlir::ModuleOp> cut(step.module->clone());
  for (auto segment : llvm::make_early_inc_range(cut->getOps<ir::SegmentOp>()))
    if (segment.getRepeat() == 2)
      splitSegment(segment, {1});
  auto whole = ir::interpret(*step.module), parts = ir::interpret(*cut);
  ASSERT_TRUE(mlir::succeeded(whole) && mlir::succeeded(parts));
  ir::Comparison comparison = ir::compareRuns(*whole, *parts);
  EXPECT_EQ(comparison.worst, 0.0) << comparison.name;
  EXPECT_GT(comparison.tensors, 30);
}

} // namespace
} // namespace mtplan::passes

//===- zero_update_test.cpp - Traffic of the update, two ways -------------===//
//
// The ledger, which prices the search, and the program of one rank must have
// the same collectives in the update: kind, axis, elements and number.
//
//===----------------------------------------------------------------------===//

#include <map>
#include <string>
#include <tuple>

#include "ir/mtp.h"
#include "tests/tools/planning.h"

namespace mtplan::tools {
namespace {

/// Counts the collectives by (operator, axis, elements sent).
using Sent = std::map<std::tuple<std::string, std::string, double>, int>;

Sent ledgerOfUpdate(const PlanOutcome &outcome) {
  const Problem &problem = *outcome.problem;
  planner::Setting setting = planner::settingOf(
      problem.options, problem.machine, outcome.best()->config);
  Sent sent;
  for (const planner::LedgerEntry &entry : ledger(outcome)) {
    if (entry.phase != planner::LedgerPhase::update)
      continue;
    // Losses have eight bytes per element, all-gathered weights two, and
    // gradients the bytes that the software file states.
    bool isReported = entry.cause == "loss" || entry.cause.ends_with("balance");
    double width = isReported ? 8
                   : entry.kind == planner::StepKind::allGather
                       ? 2
                       : planner::stateBytesOf(setting).gradient;
    sent[{planner::nameOf(entry.kind),
          setting.mesh.axes[static_cast<std::size_t>(entry.axis)].name,
          entry.bytes.value / width}] += static_cast<int>(entry.perStep);
  }
  return sent;
}

int copiesOf(mlir::Operation *op, const planner::ModelGraph &graph) {
  mlir::Operation *first = op;
  while (!first->hasAttr("label"))
    first = first->getOperand(0).getDefiningOp();
  if (auto copies = first->getAttrOfType<mlir::DenseI64ArrayAttr>("copies"))
    return static_cast<int>(copies[1]);
  llvm::StringRef label =
      first->getAttrOfType<mlir::StringAttr>("label").getValue();
  for (const planner::SegmentGraph &segment : graph.segments)
    if (label.contains('*') && segment.repeat > 1)
      return segment.repeat;
  return 1;
}

Sent programOfUpdate(const PlanOutcome &outcome) {
  std::vector<std::string> errors;
  auto module =
      moduleOf(*outcome.problem, Stage::partitioned, outcome.best(), errors);
  EXPECT_TRUE(module) << (errors.empty() ? "" : errors.front());
  Sent sent;
  for (auto update : module->getOps<ir::UpdateOp>())
    for (mlir::Operation &op : update.getBody().front())
      if (llvm::isa<ir::AllReduceOp, ir::ReduceScatterOp, ir::AllGatherOp,
                    ir::AllToAllOp>(op)) {
        auto type =
            llvm::cast<mlir::RankedTensorType>(op.getOperand(0).getType());
        sent[{op.getName().stripDialect().str(),
              op.getAttrOfType<mlir::StringAttr>("axis").str(),
              static_cast<double>(type.getNumElements())}] +=
            copiesOf(&op, outcome.problem->graph);
      }
  return sent;
}

class UpdateTraffic
    : public testing::TestWithParam<std::tuple<const char *, int, int>> {};

TEST_P(UpdateTraffic, EqualsTheLedger) {
  auto [model, tp, zero] = GetParam();
  PlanRequest request = exampleRequest(model, tp);
  request.gpus = 8;
  request.globalBatch = 16;
  request.zeroStage.only = {zero};
  // With this software, gradients have 2 bytes per element, like weights.
  request.software = "megatron-2020";
  PlanOutcome outcome = planned(request);
  ASSERT_EQ(outcome.best()->config.zeroStage, zero);
  Sent sent = programOfUpdate(outcome);
  EXPECT_EQ(sent, ledgerOfUpdate(outcome));
  auto count = [&](const char *kind) {
    int times = 0;
    for (const auto &[key, number] : sent)
      if (auto [op, axis, elements] = key;
          op == kind && axis == "dp" && elements > 1)
        times += number;
    return times;
  };
  // Gradients are reduced once per step (ZeRO 0 and 1) or per micro-batch (2
  // and 3). Sharded parameters are gathered after the update (1 and 2) or at
  // every use (3).
  EXPECT_EQ(count("reduce_scatter") > 0, zero == 1);
  EXPECT_EQ(count("all_gather") > 0, zero == 1 || zero == 2);
  EXPECT_EQ(count("all_reduce") > 0, zero == 0);
}

INSTANTIATE_TEST_SUITE_P(
    Stages, UpdateTraffic,
    testing::Combine(testing::Values("tiny-gpt2", "tiny-llama", "tiny-mixtral"),
                     testing::Values(1, 2, 4), testing::Values(0, 1, 2, 3)));

} // namespace
} // namespace mtplan::tools

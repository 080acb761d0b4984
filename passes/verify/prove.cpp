//===- prove.cpp - Verifies a plan by execution ---------------------------===//

#include "passes/verify/prove.h"

#include "llvm/Support/FormatVariadic.h"
#include "mlir/Pass/PassManager.h"

#include "ir/interpret/interpret.h"
#include "passes/layout/bridge.h"
#include "passes/layout/planner_op.h"
#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"
#include "passes/schedule/stages.h"
#include "passes/verify/resize.h"

using namespace mlir;

namespace mtplan::passes {

namespace {

ir::Phase phaseOf(Operation *op) {
  if (op->getParentOfType<ir::UpdateOp>())
    return ir::Phase::update;
  return op->getParentOfType<ir::BackwardOp>() ? ir::Phase::backward
                                               : ir::Phase::forward;
}

int64_t copiesOf(ModuleOp module, StringRef label) {
  if (!label.contains('*'))
    return 1;
  int64_t copies = 0;
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    bool here = false;
    segment.walk([&](ir::AccumulateOp op) { here |= op.getLabel() == label; });
    copies += here ? static_cast<int64_t>(segment.getRepeat()) : 0;
  }
  return copies;
}

int64_t executionsOf(ir::ReshardOp op, ModuleOp module, int microBatches) {
  if (auto segment = op->getParentOfType<ir::SegmentOp>())
    return static_cast<int64_t>(segment.getRepeat()) * microBatches;
  // In an update, a reshard reads a gradient or an updated weight.
  Operation *made = op.getInput().getDefiningOp();
  if (auto copies = made->getAttrOfType<DenseI64ArrayAttr>("copies"))
    return copies[1];
  auto label = made->getAttrOfType<StringAttr>("label");
  return label ? copiesOf(module, label.getValue()) : 1;
}

// Returns the number of stages that each execute `op`. In an update
// of a parameter outside repeated layers, these are all stages that hold the
// parameter. Otherwise the number is 1: one stage updates each layer.
int64_t holdersOf(ir::ReshardOp op, int64_t stages) {
  auto update = llvm::dyn_cast<ir::UpdateOp>(op->getParentOp());
  Operation *made = op.getInput().getDefiningOp();
  auto label = made ? made->getAttrOfType<StringAttr>("label") : StringAttr();
  if (!update || !label)
    return 1;
  for (auto read : update.getBody().front().getOps<ir::AccumulatedOp>())
    if (read.getLabelAttr() == label && !label.getValue().contains('*'))
      return static_cast<int64_t>(passes::holdersOf(read, stages).size());
  return 1;
}

void announceStages(ModuleOp planned, int microBatches,
                    std::map<ir::CollectiveKey, std::int64_t> &counts) {
  int64_t stages = stagesOf(planned);
  auto add = [&](ir::Phase phase, const char *op, std::size_t count) {
    if (count > 0)
      counts[{phase, op, ir::kStageAxis.str()}] += static_cast<int64_t>(count);
  };
  ir::SegmentOp previous;
  for (auto segment : planned.getOps<ir::SegmentOp>()) {
    if (previous && previous.getChunk() != segment.getChunk()) {
      std::size_t messages = segment.getBlock().getNumArguments() *
                             static_cast<std::size_t>(microBatches);
      for (const char *end : {"send", "receive"}) {
        add(ir::Phase::forward, end, messages);
        add(ir::Phase::backward, end, segment.getBackward() ? messages : 0);
      }
    }
    previous = segment;
  }
  planned.walk([&](ir::AccumulatedOp read) {
    std::size_t holders = passes::holdersOf(read, stages).size();
    if (holders > 1 && !read.getLabel().contains('*'))
      add(ir::Phase::update, "all_reduce", holders);
  });
}

// Returns the numbers of collectives and messages that a planned module
// requires, by phase, kind and axis. The numbers are counted as in
// ir::interpret().
std::map<ir::CollectiveKey, std::int64_t> announced(ModuleOp planned,
                                                    int microBatches) {
  std::map<ir::CollectiveKey, std::int64_t> counts;
  planner::Mesh mesh = toPlanner(ir::meshOf(planned));
  planned.walk([&](ir::ReshardOp op) {
    for (const planner::ReshardStep &step :
         planner::reshardSteps(*toPlanner(op.getSource(), mesh),
                               *toPlanner(op.getTarget(), mesh)))
      counts[{phaseOf(op), planner::nameOf(step.kind),
              mesh.axes[step.axis].name}] +=
          executionsOf(op, planned, microBatches) *
          holdersOf(op, stagesOf(planned));
  });
  announceStages(planned, microBatches, counts);
  return counts;
}

const char *nameOf(ir::Phase phase) {
  return phase == ir::Phase::forward    ? "forward"
         : phase == ir::Phase::backward ? "backward"
                                        : "update";
}

void compareCensus(const std::map<ir::CollectiveKey, std::int64_t> &wanted,
                   const std::map<ir::CollectiveKey, std::int64_t> &ran,
                   Proof &proof) {
  std::map<ir::CollectiveKey, std::pair<std::int64_t, std::int64_t>> both;
  for (const auto &[key, count] : wanted)
    both[key].first = count;
  for (const auto &[key, count] : ran)
    both[key].second = count;
  for (const auto &[key, counts] : both)
    if (counts.first != counts.second)
      proof.failures.push_back(
          llvm::formatv("{0}: {1} over {2} ran {3} times, the plan says {4}",
                        nameOf(key.phase), key.op, key.axis, counts.second,
                        counts.first)
              .str());
}

// Splits the segments of `model` at the same layers as those of `planned`, so
// that shrinking keeps the same layers in both modules.
void cutLike(ModuleOp model, ModuleOp planned) {
  auto parts = planned.getOps<ir::SegmentOp>();
  auto part = parts.begin();
  for (ir::SegmentOp segment : llvm::to_vector(model.getOps<ir::SegmentOp>())) {
    SmallVector<int> cuts;
    uint64_t copies = 0;
    for (; part != parts.end() && copies < segment.getRepeat(); ++part) {
      if (copies > 0)
        cuts.push_back(static_cast<int>((*part).getFirst()));
      copies += (*part).getRepeat();
    }
    splitSegment(segment, cuts);
  }
}

} // namespace

std::optional<ProofPair> buildProofPair(ModuleOp model, ModuleOp planned) {
  ProofPair pair;
  pair.planned = OwningOpRef<ModuleOp>(planned.clone());
  shrink(*pair.planned);
  pair.partitioned = OwningOpRef<ModuleOp>(pair.planned->clone());
  pair.logical = OwningOpRef<ModuleOp>(model.clone());
  (*pair.logical)->setAttr(ir::kMeshAttrName, ir::meshOf(planned));
  cutLike(*pair.logical, planned);
  shrink(*pair.logical);
  PassManager manager(planned.getContext());
  manager.addPass(createVerifyLayoutsPass());
  manager.addPass(createInsertCollectivesPass());
  manager.addPass(createVerifyPartitionedPass());
  manager.addPass(createSplitStagesPass());
  manager.addPass(createVerifyStagesPass());
  if (failed(manager.run(*pair.partitioned)))
    return std::nullopt;
  return pair;
}

Proof compare(ProofPair &pair, const ProofOptions &options) {
  Proof proof;
  proof.ranks = static_cast<int>(ir::meshOf(*pair.partitioned).ranks());
  ir::RunOptions run;
  run.seed = options.seed;
  run.microBatches = options.microBatches;
  // The first step of Adam divides a gradient by its magnitude. With the larger
  // epsilon, gradients that are only rounding error do not become full updates.
  run.adam.epsilon = 1e-3;
  auto logical = ir::interpret(*pair.logical, run);
  run.afterCollective = options.afterCollective;
  if (options.schedule)
    run.order =
        tasksOf(*pair.partitioned, *options.schedule, options.microBatches);
  auto partitioned = ir::interpret(*pair.partitioned, run);
  if (failed(logical) || failed(partitioned)) {
    proof.worstError = std::numeric_limits<double>::infinity();
    proof.failures.emplace_back(failed(logical)
                                    ? "the model itself does not run"
                                    : "the partitioned program does not run");
    return proof;
  }
  ir::Comparison comparison = ir::compareRuns(*logical, *partitioned);
  proof.worstError = comparison.worst;
  proof.worst = (llvm::Twine(comparison.kind) + " " + comparison.name +
                 " on rank " + llvm::Twine(comparison.rank))
                    .str();
  proof.tensors = static_cast<int>(comparison.tensors);
  if (!(comparison.worst <= options.tolerance))
    proof.failures.push_back(llvm::formatv("{0} differs", proof.worst).str());
  compareCensus(announced(*pair.planned, options.microBatches),
                partitioned->collectives, proof);
  proof.holds = proof.failures.empty();
  return proof;
}

Proof prove(ModuleOp model, ModuleOp planned, const ProofOptions &options) {
  std::optional<ProofPair> pair = buildProofPair(model, planned);
  if (pair)
    return compare(*pair, options);
  Proof proof;
  proof.worstError = std::numeric_limits<double>::infinity();
  proof.failures.emplace_back("the plan does not pass the gates");
  return proof;
}

} // namespace mtplan::passes

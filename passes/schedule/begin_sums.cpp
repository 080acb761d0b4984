//===- begin_sums.cpp - Chooses the first terms of gradient sums ----------===//

#include "passes/schedule/begin_sums.h"

#include <algorithm>
#include <set>
#include <string>

#include "mlir/IR/Builders.h"

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_BEGINSUMSPASS
#include "passes/passes.h.inc"

namespace {

struct AdderRuns {
  /// Holds the micro-batch and layer of each run that adds the first term of a
  /// piece (SumAccess::piece).
  std::set<std::pair<int, int>> first;
  std::set<int> later; ///< micro-batches of the other runs

  bool isFirstOnce() const { return first.size() == 1; }

  /// Returns whether the runs that add first terms are exactly the runs of one
  /// micro-batch.
  bool isFirstInAllCopies() const {
    return std::ranges::all_of(first, [&](const auto &run) {
      return run.first == first.begin()->first && !later.contains(run.first);
    });
  }
};

} // namespace

std::optional<std::map<int, FirstTerm>>
firstTermsOf(int pieces, const std::vector<SumAccess> &accesses) {
  std::set<int> begun;
  std::map<int, AdderRuns> adders;
  for (const SumAccess &access : accesses) {
    const bool isFirst = begun.insert(access.piece).second;
    if (!access.adder && isFirst)
      return std::nullopt;
    if (!access.adder)
      continue;
    AdderRuns &runs = adders[*access.adder];
    if (isFirst)
      runs.first.emplace(access.microBatch, access.copy);
    else
      runs.later.insert(access.microBatch);
  }
  if (static_cast<int>(begun.size()) != pieces)
    return std::nullopt;
  std::map<int, FirstTerm> terms;
  for (const auto &[adder, runs] : adders) {
    if (!runs.isFirstOnce() && !runs.isFirstInAllCopies())
      return std::nullopt;
    if (runs.first.empty())
      continue;
    const auto [microBatch, copy] = *runs.first.begin();
    FirstTerm &term = terms[adder] = {microBatch, std::nullopt};
    if (!runs.isFirstInAllCopies())
      term.copy = copy;
  }
  return terms;
}

namespace {

struct Sum {
  int pieces = 1;
  std::vector<SumAccess> accesses; ///< in the execution order of a step
  std::vector<ir::AccumulateOp> adders;
};

// Identifies an accumulator by its label. If each segment has its own
// accumulator (a label with `*`, or mtp.own_sum), the segment is part of the
// key.
using SumKey = std::pair<Operation *, std::string>;

SumKey keyOf(ir::SegmentOp segment, ir::AccumulateOp op) {
  const bool isOwn =
      op.getLabel().contains('*') || op->hasAttr(ir::kOwnSumAttrName);
  return {isOwn ? segment.getOperation() : nullptr, op.getLabel().str()};
}

// If several segments use a weight, gives them separate accumulators for it.
// Only the first of these segments, and the segments whose parameters have
// labels with `*`, share one accumulator.
void divideSums(const StageContents &stage) {
  std::set<std::string> trained;
  for (ir::SegmentOp segment : stage.segments)
    segment.walk(
        [&](ir::ParameterOp op) { trained.insert(op.getLabel().str()); });
  std::map<std::string, Operation *> firstUser;
  for (ir::SegmentOp segment : stage.segments)
    segment.walk([&](ir::AccumulateOp op) {
      const std::string label = op.getLabel().str();
      Operation *first = firstUser.try_emplace(label, segment).first->second;
      if (trained.contains(label) && !op.getLabel().contains('*') &&
          first != segment.getOperation() && !isOfCopies(segment))
        op->setAttr(ir::kOwnSumAttrName, UnitAttr::get(op.getContext()));
    });
}

class StageSums {
public:
  explicit StageSums(const StageContents &theStage) : stage(theStage) {
    for (ir::SegmentOp segment : stage.segments)
      segment.walk([&](ir::AccumulateOp op) {
        Sum &sum = sums[keyOf(segment, op)];
        if (op.getLabel().contains('*'))
          sum.pieces = static_cast<int>(segment.getRepeat());
        sum.adders.push_back(op);
      });
    for (const ir::StageTask &task : stage.tasks)
      run(task);
  }

  LogicalResult write() {
    for (auto &[key, sum] : sums) {
      const auto terms = firstTermsOf(sum.pieces, sum.accesses);
      if (!terms)
        return sum.adders.front().emitOpError(
            "adds to a sum that has no first term: no operation adds in a "
            "step, "
            "or the first operation or its micro-batch differs between layers");
      for (const auto &[adder, term] : *terms) {
        ir::AccumulateOp op = sum.adders[static_cast<std::size_t>(adder)];
        SmallVector<int64_t> run{term.microBatch};
        if (term.copy)
          run.push_back(*term.copy);
        op->setAttr(ir::kFirstTermAttrName,
                    DenseI64ArrayAttr::get(op.getContext(), run));
      }
    }
    return success();
  }

private:
  void run(const ir::StageTask &task) {
    auto visit = [&](ir::SegmentOp segment) {
      if (static_cast<int64_t>(segment.getChunk().value_or(0)) != task.chunk)
        return;
      const auto copies = static_cast<int>(segment.getRepeat());
      ir::BackwardOp backward = segment.getBackward();
      const bool goesForward = task.phase == ir::Phase::forward;
      if (!goesForward && !backward)
        return;
      Block &block = goesForward ? segment.getBlock() : backward.getBlock();
      for (int i = 0; i < copies; ++i)
        for (auto op : block.getOps<ir::AccumulateOp>())
          add(segment, op, goesForward ? i : copies - 1 - i,
              static_cast<int>(task.microBatch));
    };
    if (task.phase == ir::Phase::forward)
      llvm::for_each(stage.segments, visit);
    else
      llvm::for_each(llvm::reverse(stage.segments), visit);
  }

  void add(ir::SegmentOp segment, ir::AccumulateOp op, int copy,
           int microBatch) {
    Sum &sum = sums.at(keyOf(segment, op));
    const auto adder = static_cast<int>(
        std::distance(sum.adders.begin(), llvm::find(sum.adders, op)));
    sum.accesses.push_back({op.getLabel().contains('*') ? copy : 0, microBatch,
                            static_cast<int>(segment.getFirst()) + copy,
                            adder});
  }

  const StageContents &stage;
  std::map<SumKey, Sum> sums;
};

struct BeginSums : impl::BeginSumsPassBase<BeginSums> {
  using BeginSumsPassBase::BeginSumsPassBase;

  void runOnOperation() override {
    const std::vector<StageContents> stages = contentsOfStages(getOperation());
    if (stages.empty()) {
      getOperation().emitError("has no tasks, so the first run is unknown");
      return signalPassFailure();
    }
    for (const StageContents &stage : stages) {
      if (sumsPerUse)
        divideSums(stage);
      if (failed(StageSums(stage).write()))
        return signalPassFailure();
    }
  }
};

} // namespace

} // namespace mtplan::passes

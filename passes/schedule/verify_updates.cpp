//===- verify_updates.cpp - Verifies the updates of all stages ------------===//

#include <numeric>

#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {
namespace {

struct Sum {
  ir::AllReduceOp op;
  ir::AccumulatedOp read;           ///< reads the accumulator that is summed
  SmallVector<Operation *> between; ///< collectives from `read` to `op`
};

/// Describes an operation that writes parameters, and the layers that it
/// writes.
struct Write {
  Operation *op = nullptr;
  StringAttr label;
  std::optional<ArrayRef<int64_t>> copies;

  bool covers(int64_t copy) const {
    return !label.getValue().contains('*') || !copies ||
           (copy >= (*copies)[0] && copy < (*copies)[0] + (*copies)[1]);
  }
};

template <typename Op> Write writeOf(Op op) {
  return {op, op.getLabelAttr(), op.getCopies()};
}

std::string textOf(std::optional<ArrayRef<int64_t>> copies) {
  return copies ? std::to_string((*copies)[1]) + " copies from " +
                      std::to_string((*copies)[0]) + " on"
                : "all copies";
}

bool areAlike(ArrayRef<Operation *> some, ArrayRef<Operation *> others) {
  return llvm::equal(some, others, [](Operation *one, Operation *other) {
    return one->getName() == other->getName() &&
           one->getAttrDictionary() == other->getAttrDictionary() &&
           one->getResultTypes() == other->getResultTypes();
  });
}

class UpdateVerifier {
public:
  UpdateVerifier(ModuleOp m, int64_t stageCount)
      : module(m), stages(stageCount),
        sums(static_cast<std::size_t>(stageCount)),
        writes(static_cast<std::size_t>(stageCount)) {}

  LogicalResult verify() {
    bool updated = false;
    for (auto update : module.getOps<ir::UpdateOp>()) {
      if (!update.getStage())
        return update.emitOpError("is of no stage, but the mesh has an axis of "
                                  "stages");
      updated = true;
      if (failed(verifyReads(update)) || failed(verifyWrites(update)))
        return failure();
    }
    if (failed(verifyPlaces()))
      return failure();
    return updated
               ? failure(failed(verifyHolders()) || failed(verifyNoDeadlock()))
               : success();
  }

private:
  LogicalResult verifyReads(ir::UpdateOp update) {
    llvm::DenseMap<Operation *, Sum> found;
    for (auto read : update.getBody().front().getOps<ir::AccumulatedOp>())
      if (failed(verifyRead(read, found)))
        return failure();
    for (auto op : update.getBody().front().getOps<ir::AllReduceOp>())
      if (auto sum = found.find(op); sum != found.end())
        sums[*update.getStage()].push_back(sum->second);
    return success();
  }

  // Checks that an accumulator to which several stages add is summed over
  // exactly these stages.
  LogicalResult verifyRead(ir::AccumulatedOp read,
                           llvm::DenseMap<Operation *, Sum> &found) {
    std::set<int64_t> holders = holdersOf(read, stages);
    auto own = static_cast<int64_t>(
        *llvm::cast<ir::UpdateOp>(read->getParentOp()).getStage());
    if (!holders.count(own))
      return read.emitOpError("of stage ")
             << own
             << " reads an accumulator to which no segment of the stage adds";
    Sum sum{{}, read, {}};
    for (Operation *op : collectivesAfter(read.getValue()))
      if (!sumsOverStages(op)) {
        if (!sum.op)
          sum.between.push_back(op);
      } else if (sum.op) {
        return op->emitOpError("sums ") << read.getLabelAttr() << " again";
      } else {
        sum.op = llvm::cast<ir::AllReduceOp>(op);
      }
    bool shared = holders.size() > 1 && !read.getLabel().contains('*');
    if (!sum.op)
      return shared ? read.emitOpError("is held by ")
                          << holders.size()
                          << " stages, over which it is not summed"
                    : success();
    found[sum.op] = sum;
    std::vector<int64_t> group(holders.begin(), holders.end());
    if (!shared || groupOf(sum) != group) {
      InFlightDiagnostic diagnostic = sum.op.emitOpError("sums ")
                                      << read.getLabelAttr()
                                      << " over other stages than hold it: ";
      llvm::interleaveComma(group, diagnostic);
      return diagnostic;
    }
    if (sum.op.getMax())
      return sum.op.emitOpError("takes the maximum of the terms of ")
             << read.getLabelAttr() << ", which are summed";
    return success();
  }

  std::vector<int64_t> groupOf(const Sum &sum) const {
    ir::AllReduceOp op = sum.op;
    if (op.getAmong())
      return op.getAmong()->vec();
    std::vector<int64_t> all(sums.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // Checks that no collective except the sums in `sums` runs over stages,
  // because stages share only parameters.
  LogicalResult verifyPlaces() {
    llvm::DenseSet<Operation *> known;
    for (const std::vector<Sum> &all : sums)
      for (const Sum &sum : all)
        known.insert(sum.op);
    WalkResult result = module.walk([&](Operation *op) {
      StringAttr axis = axisOf(op);
      if (!axis || axis != ir::kStageAxis || known.contains(op))
        return WalkResult::advance();
      op->emitOpError("runs over stages, but these only sum what mtp.update "
                      "reads by mtp.accumulated");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  // Collects the writes of an update. Checks that each mtp.adamw reads the
  // gradient, and each mtp.store the updated weight, of its own parameter.
  LogicalResult verifyWrites(ir::UpdateOp update) {
    for (Operation &op : update.getBody().front())
      if (auto adamw = llvm::dyn_cast<ir::AdamwOp>(op)) {
        if (!adamw.getUpdated())
          writes[*update.getStage()].push_back(writeOf(adamw));
        if (failed(verifyOrigin<ir::AccumulatedOp>(writeOf(adamw))))
          return failure();
      } else if (auto store = llvm::dyn_cast<ir::StoreOp>(op)) {
        writes[*update.getStage()].push_back(writeOf(store));
        if (failed(verifyOrigin<ir::AdamwOp>(writeOf(store))))
          return failure();
      }
    return success();
  }

  template <typename Op> static LogicalResult verifyOrigin(const Write &write) {
    Operation *source = write.op->getOperand(0).getDefiningOp();
    while (source && axisOf(source))
      source = source->getOperand(0).getDefiningOp();
    auto origin = llvm::dyn_cast_or_null<Op>(source);
    if (!origin)
      // The operand is computed by other operators, and only execution can
      // verify these.
      return success();
    if (origin.getLabelAttr() == write.label &&
        (!write.label.getValue().contains('*') ||
         origin.getCopies() == write.copies))
      return success();
    InFlightDiagnostic diagnostic = write.op->emitOpError("updates ");
    if (origin.getLabelAttr() != write.label)
      diagnostic << write.label << " with the value of "
                 << origin.getLabelAttr();
    else
      diagnostic << textOf(write.copies) << " of " << write.label << " with "
                 << textOf(origin.getCopies());
    diagnostic.attachNote(origin.getLoc()) << "which come from here";
    return diagnostic;
  }

  // Checks every parameter that a segment reads. The stage of the segment must
  // update the parameter exactly once. If the label has a `*`, the stage must
  // update each layer of the segment exactly once.
  LogicalResult verifyHolders() {
    for (auto segment : module.getOps<ir::SegmentOp>())
      for (auto parameter : segment.getBlock().getOps<ir::ParameterOp>())
        if (failed(verifyHolder(segment, parameter)))
          return failure();
    return success();
  }

  LogicalResult verifyHolder(ir::SegmentOp segment, ir::ParameterOp parameter) {
    int64_t stage = stageOf(segment, stages);
    bool numbered = parameter.getLabel().contains('*');
    auto first = static_cast<int64_t>(segment.getFirst());
    auto repeat = numbered ? static_cast<int64_t>(segment.getRepeat()) : 1;
    std::vector<Write> own;
    llvm::copy_if(writes[stage], std::back_inserter(own),
                  [&](const Write &write) {
                    return write.label == parameter.getLabelAttr();
                  });
    for (int64_t copy = first; copy < first + repeat; ++copy) {
      auto times = llvm::count_if(
          own, [&](const Write &write) { return write.covers(copy); });
      if (times == 1)
        continue;
      InFlightDiagnostic diagnostic = parameter.emitOpError("is read on stage ")
                                      << stage << ", which ";
      if (times == 0)
        diagnostic << "does not update ";
      else
        diagnostic << "updates " << times << " times ";
      if (numbered)
        diagnostic << "copy " << copy << " of ";
      return diagnostic << "it";
    }
    return success();
  }

  // Checks that the sums do not deadlock. Each stage executes its sums in
  // order. At each sum, the stage waits for all other stages of the sum's
  // group.
  LogicalResult verifyNoDeadlock() {
    std::vector<std::size_t> next(sums.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < sums.size(); ++stage) {
        if (next[stage] == sums[stage].size())
          continue;
        FailureOr<bool> met = meet(stage, next);
        if (failed(met))
          return failure();
        moved |= *met;
      }
    }
    for (std::size_t stage = 0; stage < sums.size(); ++stage)
      if (next[stage] < sums[stage].size())
        return reportDeadlock(stage, next);
    return success();
  }

  // Returns whether the next sum of `stage` is also the next sum of all other
  // stages of its group. If so, these stages advance by one sum.
  FailureOr<bool> meet(std::size_t stage, std::vector<std::size_t> &next) {
    const Sum &sum = sums[stage][next[stage]];
    const std::vector<int64_t> group = groupOf(sum);
    bool all = true;
    for (int64_t member : group) {
      if (next[member] == sums[member].size()) {
        ir::AllReduceOp op = sum.op;
        return op.emitOpError("waits for stage ")
               << member << ", which ends after " << sums[member].size()
               << " sums without this one";
      }
      const Sum &other = sums[member][next[member]];
      if (groupOf(other) != group)
        all = false;
      else if (failed(verifyAlike(sum, other, member, next[member])))
        return failure();
    }
    if (all)
      for (int64_t member : group)
        ++next[member];
    return all;
  }

  static LogicalResult verifyAlike(const Sum &sum, const Sum &other,
                                   int64_t stage, std::size_t index) {
    ir::AllReduceOp one = sum.op, two = other.op;
    ir::AccumulatedOp read = sum.read, otherRead = other.read;
    auto reject = [&](const Twine &what) {
      InFlightDiagnostic diagnostic = two.emitOpError(what);
      diagnostic.attachNote(one.getLoc())
          << "the corresponding sum of another stage is here";
      return diagnostic;
    };
    if (one.getCause() != two.getCause() ||
        read.getLabel() != otherRead.getLabel())
      return reject("is sum ") << index << " of stage " << stage << ", of "
                               << otherRead.getLabelAttr();
    if (one.getType() != two.getType())
      return reject("is of ") << two.getType() << ", needs " << one.getType();
    if (read.getLayoutAttr() != otherRead.getLayoutAttr() ||
        !areAlike(sum.between, other.between))
      return reject("sums ")
             << read.getLabelAttr() << " after other collectives";
    return success();
  }

  LogicalResult reportDeadlock(std::size_t stage,
                               const std::vector<std::size_t> &next) {
    const Sum &sum = sums[stage][next[stage]];
    ir::AllReduceOp op = sum.op;
    InFlightDiagnostic diagnostic =
        op.emitOpError("deadlocks: stages of its group wait at other sums");
    for (int64_t member : groupOf(sum)) {
      ir::AllReduceOp other = sums[member][next[member]].op;
      if (groupOf(sums[member][next[member]]) != groupOf(sum))
        diagnostic.attachNote(other.getLoc())
            << "stage " << member << " waits here";
    }
    return diagnostic;
  }

  ModuleOp module;
  int64_t stages;
  std::vector<std::vector<Sum>> sums;     ///< by stage, in program order
  std::vector<std::vector<Write>> writes; ///< by stage
};

} // namespace

LogicalResult verifyUpdates(ModuleOp module, int64_t stages) {
  return UpdateVerifier(module, stages).verify();
}

} // namespace mtplan::passes

//===- interpret.cpp - Runs a training step in double precision -----------===//

#include "ir/interpret/interpret.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "mlir/IR/Verifier.h"

#include "ir/interpret/stage_run.h"

using namespace mlir;

namespace mtplan::ir {
namespace {

bool isStatic(Type type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  return !tensor || (tensor.hasStaticShape() && tensor.getNumElements() > 0);
}

class Machine {
public:
  Machine(ModuleOp theModule, const RunOptions &runOptions)
      : module(theModule), options(runOptions),
        partitioned(module->hasAttr(kPartitionedAttrName)),
        meshAttr(partitioned ? module->getAttrOfType<MeshAttr>(kMeshAttrName)
                             : MeshAttr()),
        mesh(meshAttr) {}

  FailureOr<RunResult> run();

private:
  LogicalResult checkModule();
  LogicalResult assignStages();
  LogicalResult setOrder();
  LogicalResult checkOrder(std::int64_t stage) const;
  LogicalResult runStages(std::deque<StageRun> &stages);
  LogicalResult reportDeadlock(const std::deque<StageRun> &stages);
  LogicalResult merge(TensorTable &all, TensorTable &&part, std::int64_t stage);

  ModuleOp module;
  const RunOptions &options;
  const bool partitioned;
  const MeshAttr meshAttr;
  const MeshView mesh;
  bool staged = false, differentiated = false;
  std::vector<StageProgram> programs; ///< indexed by stage
};

LogicalResult Machine::checkModule() {
  if (failed(verify(module)))
    return failure();
  if (partitioned && !meshAttr)
    return module.emitError("partitioned, but without '")
           << kMeshAttrName << "'";
  const auto shapes = module.walk([](Operation *op) {
    if (llvm::all_of(op->getResultTypes(), isStatic))
      return WalkResult::advance();
    op->emitOpError("makes a tensor of unknown or no size");
    return WalkResult::interrupt();
  });
  return failure(shapes.wasInterrupted());
}

LogicalResult Machine::assignStages() {
  for (auto segment : module.getOps<SegmentOp>()) {
    staged |= meshAttr && segment.getStage().has_value();
    differentiated |= !!segment.getBackward();
  }
  programs.resize(staged ? mesh.sizeOf(mesh.axis(kStageAxis)) : 1);
  for (Operation &op : *module.getBody()) {
    if (auto segment = llvm::dyn_cast<SegmentOp>(op)) {
      if (staged && !segment.getStage())
        return segment.emitOpError("has no chunk, unlike others of its module");
      programs[segment.getStage().value_or(0) * staged].segments.push_back(
          segment);
    } else if (auto update = llvm::dyn_cast<UpdateOp>(op)) {
      if (staged && !update.getStage())
        return update.emitOpError("is of no stage, but segments are");
      programs[update.getStage().value_or(0) * staged].update = update;
    } else {
      return op.emitOpError("cannot be interpreted here");
    }
  }
  return setOrder();
}

LogicalResult Machine::setOrder() {
  for (auto [stage, program] : llvm::enumerate(programs)) {
    std::vector<std::int64_t> chunks;
    for (SegmentOp segment : program.segments) {
      const std::int64_t chunk =
          staged ? static_cast<std::int64_t>(*segment.getChunk()) : 0;
      if (!llvm::is_contained(chunks, chunk))
        chunks.push_back(chunk);
    }
    for (std::int64_t batch = 0; batch < options.microBatches; ++batch) {
      for (std::int64_t chunk : chunks)
        program.tasks.push_back({Phase::forward, chunk, batch});
      if (differentiated)
        for (std::int64_t chunk : llvm::reverse(chunks))
          program.tasks.push_back({Phase::backward, chunk, batch});
    }
    if (options.order.empty())
      continue;
    if (failed(checkOrder(static_cast<std::int64_t>(stage))))
      return failure();
    program.tasks = options.order[stage];
  }
  return success();
}

LogicalResult Machine::checkOrder(std::int64_t stage) const {
  if (options.order.size() != programs.size())
    return module->emitError("has ")
           << programs.size() << " stages, but tasks are ordered for "
           << options.order.size();
  std::multiset<StageTask> wanted(programs[stage].tasks.begin(),
                                  programs[stage].tasks.end()),
      given(options.order[stage].begin(), options.order[stage].end());
  if (wanted == given)
    return success();
  return module->emitError("stage ")
         << stage << " has " << wanted.size()
         << " tasks, of which its order of " << given.size() << " is none";
}

LogicalResult Machine::reportDeadlock(const std::deque<StageRun> &stages) {
  for (const auto &[number, stage] : llvm::enumerate(stages)) {
    if (stage.isDone())
      continue;
    InFlightDiagnostic diagnostic =
        stage.waitingAt()->emitOpError("deadlocks: ") << stage.waitText();
    for (const auto &[other, another] : llvm::enumerate(stages))
      if (other != number)
        diagnostic.attachNote(another.waitingAt()
                                  ? another.waitingAt()->getLoc()
                                  : module->getLoc())
            << another.waitText();
    return diagnostic;
  }
  return success();
}

LogicalResult Machine::runStages(std::deque<StageRun> &stages) {
  bool moved = true;
  while (moved) {
    moved = false;
    for (StageRun &stage : stages) {
      auto ran = stage.run();
      if (failed(ran))
        return failure();
      moved |= *ran;
    }
  }
  return reportDeadlock(stages);
}

LogicalResult Machine::merge(TensorTable &all, TensorTable &&part,
                             std::int64_t stage) {
  if (!staged) {
    all = std::move(part);
    return success();
  }
  const int axis = mesh.axis(kStageAxis);
  for (auto &[key, tensor] : part) {
    auto [entry, isNew] = all.try_emplace(key);
    DistributedTensor &whole = entry->second;
    if (isNew) {
      whole.layout = tensor.layout;
      whole.ranks.resize(mesh.ranks());
    } else if (whole.layout != tensor.layout) {
      return module->emitError("'")
             << key.name() << "' has another layout on stage " << stage
             << " than on an earlier stage";
    }
    std::size_t place = 0;
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank)
      if (mesh.coordinate(rank, axis) == stage)
        whole.ranks[rank] = std::move(tensor.ranks[place++]);
  }
  return success();
}

FailureOr<RunResult> Machine::run() {
  if (failed(checkModule()) || failed(assignStages()))
    return failure();
  const auto count = static_cast<std::int64_t>(programs.size());
  SharedRun shared{options,
                   staged ? mesh.without(kStageAxis) : mesh,
                   partitioned,
                   differentiated,
                   staged ? count : 1,
                   StageMessages(count)};
  // A StageRun refers to its own members and must not move. A deque never moves
  // its elements.
  std::deque<StageRun> stages;
  for (std::int64_t stage = 0; stage < count; ++stage)
    if (failed(stages.emplace_back(shared, stage, std::move(programs[stage]))
                   .prepare(module)))
      return failure();
  if (failed(runStages(stages)) || failed(shared.messages.expectEmpty()))
    return failure();
  if (options.perturbation && llvm::none_of(stages, [](const StageRun &stage) {
        return stage.state.wasPerturbed();
      }))
    return module.emitError("no element ")
           << options.perturbation->element << " of a parameter '"
           << options.perturbation->label << "' to perturb";

  RunResult result;
  result.mesh = meshAttr;
  result.collectives = std::move(shared.collectives);
  const bool updated = !module.getOps<UpdateOp>().empty();
  for (std::int64_t stage = 0; stage < count; ++stage) {
    RunResult part;
    stages[stage].state.handOver(part, updated);
    if (failed(merge(result.parameters, std::move(part.parameters), stage)) ||
        failed(merge(result.gradients, std::move(part.gradients), stage)) ||
        failed(merge(result.results, std::move(part.results), stage)))
      return failure();
  }
  return result;
}

} // namespace

std::string TensorKey::name() const {
  std::string text = label;
  if (const std::size_t star = text.find('*'); star != std::string::npos)
    text.replace(star, 1, std::to_string(copy));
  return text;
}

FailureOr<RunResult> interpret(ModuleOp module, const RunOptions &options) {
  return Machine(module, options).run();
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Bounds a tensor's norm from below, relative to the largest element of all
/// tensors of its kind.
constexpr double kMinNorm = 1e-5;

double largestIn(const HostTensor &tensor) {
  double largest = 0.0;
  for (double x : tensor.data)
    largest = std::max(largest, std::abs(x));
  return largest;
}

double largestIn(const TensorTable &table) {
  double largest = 0.0;
  for (const auto &[key, tensor] : table)
    for (const HostTensor &piece : tensor.ranks)
      largest = std::max(largest, largestIn(piece));
  return largest;
}

HostTensor reduced(const DistributedTensor &tensor, const MeshView &mesh,
                   std::int64_t rank) {
  std::vector<std::int64_t> members{rank};
  const bool max = tensor.layout && tensor.layout.getMax();
  if (tensor.layout)
    for (StringAttr name : tensor.layout.getPartial()) {
      std::vector<std::int64_t> more;
      for (std::int64_t member : members)
        for (std::int64_t other :
             mesh.group(member, mesh.axis(name.getValue())))
          more.push_back(other);
      members = std::move(more);
    }
  HostTensor total = tensor.ranks[members.front()];
  for (std::size_t i = 1; i < members.size(); ++i)
    reduceInto(total, tensor.ranks[members[i]], max);
  return total;
}

/// Returns the largest difference between a shard and its slice of `logical`,
/// or infinity if the shapes differ or a difference is NaN.
double differenceOf(const HostTensor &logical, const HostTensor &piece,
                    const std::vector<Span> &spans) {
  if (logical.shape.size() != piece.shape.size())
    return kInfinity;
  for (std::size_t d = 0; d < spans.size(); ++d)
    if (spans[d].global != logical.shape[d])
      return kInfinity;
  double worst = 0.0;
  forEachIndex(piece.shape, [&](std::size_t i, const auto &index) {
    const double difference =
        std::abs(piece.data[i] - logical.data[globalIndex(spans, index)]);
    worst = std::isnan(difference) ? kInfinity : std::max(worst, difference);
  });
  return worst;
}

void compareTables(const TensorTable &logical, const TensorTable &partitioned,
                   const MeshView &mesh, StringRef kind, Comparison &found) {
  auto note = [&](double error, const TensorKey &key, std::int64_t rank) {
    if (error <= found.worst)
      return;
    // The quotient is NaN if the logical tensor itself is infinite.
    found.worst = std::isnan(error) ? kInfinity : error;
    found.kind = kind.str();
    found.name = key.name();
    found.rank = rank;
  };
  const double minNorm = kMinNorm * largestIn(logical);
  std::set<TensorKey> keys;
  for (const TensorTable *table : {&logical, &partitioned})
    for (const auto &[key, tensor] : *table)
      keys.insert(key);

  for (const TensorKey &key : keys) {
    ++found.tensors;
    const auto whole = logical.find(key), split = partitioned.find(key);
    if (whole == logical.end() || split == partitioned.end()) {
      note(kInfinity, key, 0);
      continue;
    }
    const HostTensor &expected = whole->second.ranks.front();
    const DistributedTensor &tensor = split->second;
    const double norm = std::max(largestIn(expected), minNorm);
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      if (!tensor.holds(rank))
        continue;
      const HostTensor piece = reduced(tensor, mesh, rank);
      const double difference = differenceOf(
          expected, piece, mesh.piecesOf(tensor.layout, rank, piece.shape));
      // If all logical tensors of the kind are zero, the norm is 0 and any
      // difference counts as infinite.
      note(difference == 0.0 ? 0.0 : difference / norm, key, rank);
    }
  }
}

} // namespace

Comparison compareRuns(const RunResult &logical, const RunResult &partitioned) {
  const MeshView mesh(partitioned.mesh);
  Comparison found;
  auto compare = [&](TensorTable RunResult::*table, StringRef kind) {
    compareTables(logical.*table, partitioned.*table, mesh, kind, found);
  };
  compare(&RunResult::results, "result");
  compare(&RunResult::gradients, "gradient");
  compare(&RunResult::parameters, "parameter");
  return found;
}

} // namespace mtplan::ir

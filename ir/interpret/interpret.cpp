//===- interpret.cpp - Runs a training step in double precision -----------===//

#include "ir/interpret/interpret.h"

#include <deque>
#include <set>

#include "mlir/IR/Verifier.h"

#include "ir/interpret/stage_run.h"

namespace mtplan::ir {
namespace {

bool isStatic(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return !tensor || (tensor.hasStaticShape() && tensor.getNumElements() > 0);
}

/// One run of one module.
class Machine {
public:
  Machine(mlir::ModuleOp theModule, const RunOptions &runOptions)
      : module(theModule), options(runOptions),
        partitioned(module->hasAttr(kPartitionedAttrName)),
        meshAttr(partitioned ? module->getAttrOfType<MeshAttr>(kMeshAttrName)
                             : MeshAttr()),
        mesh(meshAttr) {}

  mlir::FailureOr<RunResult> run();

private:
  mlir::LogicalResult checkModule();
  mlir::LogicalResult dealOut();
  mlir::LogicalResult setOrder();
  mlir::LogicalResult checkOrder(std::int64_t stage) const;
  mlir::LogicalResult runStages(std::deque<StageRun> &stages);
  mlir::LogicalResult reportDeadlock(const std::deque<StageRun> &stages);
  mlir::LogicalResult merge(TensorTable &all, TensorTable &&part,
                            std::int64_t stage);

  mlir::ModuleOp module;
  const RunOptions &options;
  const bool partitioned;
  const MeshAttr meshAttr;
  const MeshView mesh;
  bool staged = false, differentiated = false;
  std::vector<StageProgram> programs; ///< by stage
};

mlir::LogicalResult Machine::checkModule() {
  if (mlir::failed(mlir::verify(module)))
    return mlir::failure();
  if (partitioned && !meshAttr)
    return module.emitError("partitioned, but without '")
           << kMeshAttrName << "'";
  const auto shapes = module.walk([](mlir::Operation *op) {
    if (llvm::all_of(op->getResultTypes(), isStatic))
      return mlir::WalkResult::advance();
    op->emitOpError("makes a tensor of unknown or no size");
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(shapes.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// The program of every stage
//===----------------------------------------------------------------------===//

mlir::LogicalResult Machine::dealOut() {
  for (auto segment : module.getOps<SegmentOp>()) {
    staged |= meshAttr && segment.getStage().has_value();
    differentiated |= !!segment.getBackward();
  }
  programs.resize(staged ? mesh.sizeOf(mesh.axis(kStageAxis)) : 1);
  for (mlir::Operation &op : *module.getBody()) {
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

mlir::LogicalResult Machine::setOrder() {
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
    if (mlir::failed(checkOrder(static_cast<std::int64_t>(stage))))
      return mlir::failure();
    program.tasks = options.order[stage];
  }
  return mlir::success();
}

// Checks that the given order is a permutation of the stage's tasks.
mlir::LogicalResult Machine::checkOrder(std::int64_t stage) const {
  if (options.order.size() != programs.size())
    return module->emitError("has ")
           << programs.size() << " stages, but tasks are ordered for "
           << options.order.size();
  std::multiset<StageTask> wanted(programs[stage].tasks.begin(),
                                  programs[stage].tasks.end()),
      given(options.order[stage].begin(), options.order[stage].end());
  if (wanted == given)
    return mlir::success();
  return module->emitError("stage ")
         << stage << " has " << wanted.size()
         << " tasks, of which its order of " << given.size() << " is none";
}

//===----------------------------------------------------------------------===//
// All stages in turn, each until it waits
//===----------------------------------------------------------------------===//

mlir::LogicalResult
Machine::reportDeadlock(const std::deque<StageRun> &stages) {
  for (const auto &[number, stage] : llvm::enumerate(stages)) {
    if (stage.isDone())
      continue;
    mlir::InFlightDiagnostic diagnostic =
        stage.waitingAt()->emitOpError("waits for ever: ") << stage.waitText();
    for (const auto &[other, another] : llvm::enumerate(stages))
      if (other != number)
        diagnostic.attachNote(another.waitingAt()
                                  ? another.waitingAt()->getLoc()
                                  : module->getLoc())
            << another.waitText();
    return diagnostic;
  }
  return mlir::success();
}

mlir::LogicalResult Machine::runStages(std::deque<StageRun> &stages) {
  bool moved = true;
  while (moved) {
    moved = false;
    for (StageRun &stage : stages) {
      auto ran = stage.run();
      if (mlir::failed(ran))
        return mlir::failure();
      moved |= *ran;
    }
  }
  return reportDeadlock(stages);
}

// Inserts the pieces that the ranks of one stage hold into those of all ranks.
mlir::LogicalResult Machine::merge(TensorTable &all, TensorTable &&part,
                                   std::int64_t stage) {
  if (!staged) {
    all = std::move(part);
    return mlir::success();
  }
  const int axis = mesh.axis(kStageAxis);
  for (auto &[key, tensor] : part) {
    auto [entry, isNew] = all.try_emplace(key);
    DistributedTensor &whole = entry->second;
    if (isNew) {
      whole.layout = tensor.layout;
      whole.ranks.resize(mesh.ranks());
    } else if (whole.layout != tensor.layout) {
      return module->emitError("'") << key.name() << "' of stage " << stage
                                    << " lies otherwise than on another stage";
    }
    std::size_t place = 0;
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank)
      if (mesh.coordinate(rank, axis) == stage)
        whole.ranks[rank] = std::move(tensor.ranks[place++]);
  }
  return mlir::success();
}

mlir::FailureOr<RunResult> Machine::run() {
  if (mlir::failed(checkModule()) || mlir::failed(dealOut()))
    return mlir::failure();
  const auto count = static_cast<std::int64_t>(programs.size());
  SharedRun shared{options,
                   staged ? mesh.without(kStageAxis) : mesh,
                   partitioned,
                   differentiated,
                   staged ? count : 1,
                   Mail(count)};
  // The stages hold references to themselves, which a deque keeps valid.
  std::deque<StageRun> stages;
  for (std::int64_t stage = 0; stage < count; ++stage)
    if (mlir::failed(
            stages.emplace_back(shared, stage, std::move(programs[stage]))
                .prepare(module)))
      return mlir::failure();
  if (mlir::failed(runStages(stages)) ||
      mlir::failed(shared.mail.expectEmpty()))
    return mlir::failure();
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
    if (mlir::failed(
            merge(result.parameters, std::move(part.parameters), stage)) ||
        mlir::failed(
            merge(result.gradients, std::move(part.gradients), stage)) ||
        mlir::failed(merge(result.results, std::move(part.results), stage)))
      return mlir::failure();
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

mlir::FailureOr<RunResult> interpret(mlir::ModuleOp module,
                                     const RunOptions &options) {
  return Machine(module, options).run();
}

} // namespace mtplan::ir

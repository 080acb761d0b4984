//===- interpret.cpp - Runs a training step in double precision -----------===//

#include "ir/interpret/interpret.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Verifier.h"

#include "ir/interpret/collectives.h"
#include "ir/interpret/kernel.h"
#include "ir/interpret/placement.h"
#include "ir/interpret/step_state.h"

namespace mtplan::ir {
namespace {

using Frame = llvm::DenseMap<mlir::Value, RankValues>;

/// One run of one module.
class Machine {
public:
  Machine(mlir::ModuleOp theModule, const RunOptions &runOptions)
      : module(theModule), options(runOptions),
        partitioned(module->hasAttr(kPartitionedAttrName)),
        meshAttr(partitioned ? module->getAttrOfType<MeshAttr>(kMeshAttrName)
                             : MeshAttr()),
        mesh(meshAttr), state(options, mesh, partitioned) {}

  mlir::FailureOr<RunResult> run();

private:
  /// One copy of a segment in one micro-batch; its values are what the
  /// backward half reads.
  struct Visit {
    SegmentOp segment;
    std::int64_t copy;
    Frame frame;
  };

  mlir::LogicalResult collectSegments();
  mlir::LogicalResult runMicroBatch();
  mlir::LogicalResult runForward(std::vector<Visit> &visits);
  mlir::LogicalResult runBackward(std::vector<Visit> &visits);
  mlir::LogicalResult runUpdate();
  mlir::LogicalResult bind(mlir::Operation *owner, mlir::Block &block,
                           const std::vector<RankValues> &values, Frame &frame);
  std::vector<RankValues> yielded(YieldOp yield, const Frame &frame);

  mlir::LogicalResult execute(mlir::Operation *op, Frame &frame);
  mlir::FailureOr<RankValues> executeCollective(mlir::Operation *op,
                                                const RankValues &input);
  mlir::LogicalResult executeKernel(mlir::Operation *op, Frame &frame);
  mlir::FailureOr<const Placement *> placementOf(mlir::Operation *op);
  /// Binds the only result, unless its shape is not the one declared.
  mlir::LogicalResult define(mlir::Value result,
                             const mlir::FailureOr<RankValues> &value,
                             Frame &frame);

  mlir::ModuleOp module;
  const RunOptions &options;
  const bool partitioned;
  const MeshAttr meshAttr;
  const MeshView mesh;
  StepState state;

  std::vector<SegmentOp> segments;
  UpdateOp update;
  Moment moment;
  Phase phase = Phase::forward;
  llvm::DenseMap<mlir::Operation *, Placement> placements;
  std::map<CollectiveKey, std::int64_t> collectives;
};

bool isStatic(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return !tensor || (tensor.hasStaticShape() && tensor.getNumElements() > 0);
}

//===----------------------------------------------------------------------===//
// One operator
//===----------------------------------------------------------------------===//

mlir::LogicalResult Machine::define(mlir::Value result,
                                    const mlir::FailureOr<RankValues> &value,
                                    Frame &frame) {
  if (mlir::failed(value))
    return mlir::failure();
  auto type = llvm::cast<mlir::RankedTensorType>(result.getType());
  if (type.getShape() != llvm::ArrayRef((**value).front().shape))
    return mlir::emitError(result.getLoc(), "a value has another shape than ")
           << type;
  frame[result] = *value;
  return mlir::success();
}

mlir::FailureOr<RankValues>
Machine::executeCollective(mlir::Operation *op, const RankValues &input) {
  const mlir::StringAttr axis = axisOfCollective(op);
  if (!partitioned)
    return op->emitOpError("in a module without '")
           << kPartitionedAttrName << "'";
  auto results = runCollective(op, *input, mesh);
  if (mlir::failed(results))
    return mlir::failure();
  if (options.afterCollective)
    options.afterCollective(op, *input, *results);
  ++collectives[{phase, op->getName().stripDialect().str(), axis.str()}];
  return std::make_shared<const std::vector<HostTensor>>(std::move(*results));
}

mlir::FailureOr<const Placement *> Machine::placementOf(mlir::Operation *op) {
  auto [entry, isNew] = placements.try_emplace(op);
  if (isNew && partitioned) {
    auto placement = Placement::of(llvm::cast<ComputeOp>(op), mesh);
    if (mlir::failed(placement))
      return mlir::failure();
    entry->second = std::move(*placement);
  }
  return &entry->second;
}

mlir::LogicalResult Machine::executeKernel(mlir::Operation *op, Frame &frame) {
  const Kernel *kernel = KernelTable::get().find(op);
  if (!kernel)
    return op->emitOpError("cannot be interpreted");
  auto placement = placementOf(op);
  if (mlir::failed(placement))
    return mlir::failure();
  std::vector<std::vector<HostTensor>> results(op->getNumResults());
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    KernelCall call;
    call.moment = moment;
    for (mlir::Value operand : op->getOperands())
      call.operands.push_back(&(*frame.at(operand))[rank]);
    for (mlir::Type type : op->getResultTypes())
      call.results.emplace_back(
          llvm::cast<mlir::RankedTensorType>(type).getShape().vec());
    (*placement)->place(call, mesh, rank);
    (*kernel)(op, call);
    for (auto [all, one] : llvm::zip_equal(results, call.results))
      all.push_back(std::move(one));
  }
  for (auto [result, values] : llvm::zip_equal(op->getResults(), results))
    frame[result] =
        std::make_shared<const std::vector<HostTensor>>(std::move(values));
  return mlir::success();
}

mlir::LogicalResult Machine::execute(mlir::Operation *op, Frame &frame) {
  const auto input = [&]() -> const RankValues & {
    return frame.at(op->getOperand(0));
  };
  return llvm::TypeSwitch<mlir::Operation *, mlir::LogicalResult>(op)
      .Case([&](ParameterOp parameter) {
        return define(parameter.getValue(),
                      state.readParameter(parameter, moment.copy), frame);
      })
      .Case([&](InputOp data) {
        return define(data.getValue(), state.readInput(data, moment.microBatch),
                      frame);
      })
      .Case([&](AccumulateOp sum) {
        return state.accumulate(sum, moment.copy, input());
      })
      .Case([&](AccumulatedOp sum) {
        return define(sum.getValue(), state.readAccumulated(sum, moment.copy),
                      frame);
      })
      .Case([&](AdamwOp adamw) -> mlir::LogicalResult {
        if (!adamw.getUpdated())
          return state.update(adamw, moment.copy, input());
        return define(adamw.getUpdated(),
                      state.updateOwned(adamw, moment.copy, input()), frame);
      })
      .Case([&](StoreOp store) {
        return state.store(store, moment.copy, input());
      })
      .Case([&](ResultOp result) {
        state.report(result, moment.copy, input());
        return mlir::success();
      })
      .Case([&](ReshardOp reshard) -> mlir::LogicalResult {
        if (partitioned)
          return reshard.emitOpError("in a partitioned module");
        return define(reshard.getResult(), input(), frame);
      })
      .Default([&](mlir::Operation *other) {
        if (axisOfCollective(other))
          return define(other->getResult(0), executeCollective(other, input()),
                        frame);
        return executeKernel(other, frame);
      });
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

mlir::LogicalResult Machine::collectSegments() {
  for (mlir::Operation &op : *module.getBody()) {
    if (auto segment = llvm::dyn_cast<SegmentOp>(op))
      segments.push_back(segment);
    else if (auto found = llvm::dyn_cast<UpdateOp>(op); found && !update)
      update = found;
    else
      return op.emitOpError("cannot be interpreted here");
  }
  return mlir::success();
}

mlir::LogicalResult Machine::bind(mlir::Operation *owner, mlir::Block &block,
                                  const std::vector<RankValues> &values,
                                  Frame &frame) {
  if (block.getNumArguments() != values.size())
    return owner->emitOpError("takes ")
           << block.getNumArguments() << " values, but its neighbour hands on "
           << values.size();
  for (auto [argument, value] : llvm::zip_equal(block.getArguments(), values))
    if (mlir::failed(define(argument, value, frame)))
      return mlir::failure();
  return mlir::success();
}

std::vector<RankValues> Machine::yielded(YieldOp yield, const Frame &frame) {
  std::vector<RankValues> values;
  for (mlir::Value value : yield.getValues())
    values.push_back(frame.at(value));
  return values;
}

mlir::LogicalResult Machine::runForward(std::vector<Visit> &visits) {
  phase = Phase::forward;
  std::vector<RankValues> carried;
  for (SegmentOp segment : segments)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(segment.getRepeat());
         ++i) {
      moment.copy = static_cast<std::int64_t>(segment.getFirst()) + i;
      Visit &visit = visits.emplace_back(Visit{segment, moment.copy, Frame()});
      if (mlir::failed(bind(segment, segment.getBlock(), carried, visit.frame)))
        return mlir::failure();
      for (mlir::Operation &op : segment.getBlock())
        if (!llvm::isa<BackwardOp, YieldOp>(op) &&
            mlir::failed(execute(&op, visit.frame)))
          return mlir::failure();
      carried = yielded(segment.getYield(), visit.frame);
    }
  return mlir::success();
}

mlir::LogicalResult Machine::runBackward(std::vector<Visit> &visits) {
  phase = Phase::backward;
  std::vector<RankValues> carried;
  for (Visit &visit : llvm::reverse(visits)) {
    BackwardOp backward = visit.segment.getBackward();
    if (!backward)
      return visit.segment.emitOpError(
          "has no backward half, unlike others of its module");
    moment.copy = visit.copy;
    if (mlir::failed(bind(backward, backward.getBlock(), carried, visit.frame)))
      return mlir::failure();
    for (mlir::Operation &op : backward.getBlock())
      if (!llvm::isa<YieldOp>(op) && mlir::failed(execute(&op, visit.frame)))
        return mlir::failure();
    carried = yielded(backward.getYield(), visit.frame);
    visit.frame.clear();
  }
  return mlir::success();
}

mlir::LogicalResult Machine::runMicroBatch() {
  std::vector<Visit> visits;
  if (mlir::failed(runForward(visits)))
    return mlir::failure();
  const bool differentiated = llvm::any_of(
      segments, [](SegmentOp segment) { return !!segment.getBackward(); });
  return differentiated ? runBackward(visits) : mlir::success();
}

//===----------------------------------------------------------------------===//
// Update: operators run once per copy of what they read
//===----------------------------------------------------------------------===//

mlir::LogicalResult Machine::runUpdate() {
  phase = Phase::update;
  // Values of labels without a `*` belong to no copy and serve all of them.
  Frame shared;
  std::map<std::int64_t, Frame> byCopy;
  moment.microBatch = 0;
  for (mlir::Operation &op : update.getBody().front()) {
    std::vector<std::int64_t> copies;
    if (auto sum = llvm::dyn_cast<AccumulatedOp>(op);
        sum && sum.getLabel().contains('*')) {
      copies = state.accumulatedCopies(sum.getLabel());
      if (auto range = sum.getCopies())
        llvm::erase_if(copies, [&](std::int64_t copy) {
          return copy < (*range)[0] || copy >= (*range)[0] + (*range)[1];
        });
      if (copies.empty())
        return sum.emitOpError("reads what nothing was added to");
    } else {
      for (auto &[copy, frame] : byCopy)
        if (llvm::any_of(op.getOperands(), [&, &values = frame](auto operand) {
              return values.contains(operand);
            }))
          copies.push_back(copy);
    }
    if (copies.empty()) {
      moment.copy = 0;
      if (mlir::failed(execute(&op, shared)))
        return mlir::failure();
    }
    for (std::int64_t copy : copies) {
      Frame &frame = byCopy[copy];
      for (mlir::Value operand : op.getOperands()) {
        if (frame.contains(operand))
          continue;
        auto found = shared.find(operand);
        if (found == shared.end())
          return op.emitOpError("joins values of different copies");
        frame[operand] = found->second;
      }
      moment.copy = copy;
      if (mlir::failed(execute(&op, frame)))
        return mlir::failure();
    }
  }
  return mlir::success();
}

mlir::FailureOr<RunResult> Machine::run() {
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
  if (shapes.wasInterrupted() || mlir::failed(collectSegments()) ||
      mlir::failed(state.prepare(module)))
    return mlir::failure();

  moment.seed = options.seed;
  moment.step = options.step;
  for (int batch = 0; batch < options.microBatches; ++batch) {
    moment.microBatch = batch;
    if (mlir::failed(runMicroBatch()))
      return mlir::failure();
  }
  if (update && mlir::failed(runUpdate()))
    return mlir::failure();
  if (mlir::failed(state.finish(module)))
    return mlir::failure();

  RunResult result;
  result.mesh = meshAttr;
  result.collectives = std::move(collectives);
  state.handOver(result, !!update);
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

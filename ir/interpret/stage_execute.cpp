//===- stage_execute.cpp - One operator on all ranks of a stage -----------===//

#include "llvm/ADT/TypeSwitch.h"

#include "ir/interpret/collectives.h"
#include "ir/interpret/kernel_call.h"
#include "ir/interpret/stage_run.h"

namespace mtplan::ir {

mlir::LogicalResult StageRun::define(mlir::Value result,
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

RankValues StageRun::seen(mlir::Operation *ran, llvm::StringRef axis,
                          const std::vector<HostTensor> &passed,
                          std::vector<HostTensor> received) {
  if (shared.options.afterCollective)
    shared.options.afterCollective(ran, passed, received);
  ++shared
        .collectives[{phase, ran->getName().stripDialect().str(), axis.str()}];
  return std::make_shared<const std::vector<HostTensor>>(std::move(received));
}

mlir::FailureOr<RankValues>
StageRun::executeCollective(mlir::Operation *ran, const RankValues &input) {
  if (!shared.partitioned)
    return ran->emitOpError("in a module without '")
           << kPartitionedAttrName << "'";
  auto results = runCollective(ran, *input, shared.mesh);
  if (mlir::failed(results))
    return mlir::failure();
  return seen(ran, axisOfCollective(ran).getValue(), *input,
              std::move(*results));
}

//===----------------------------------------------------------------------===//
// Between stages
//===----------------------------------------------------------------------===//

mlir::LogicalResult StageRun::send(SendOp ran, const RankValues &value) {
  if (shared.stages == 1)
    return ran.emitOpError("in a step that is not split over stages");
  shared.mail.send(phase, stage, {ran, moment.microBatch, value});
  ++shared.collectives[{phase, "send", kStageAxis.str()}];
  return mlir::success();
}

mlir::LogicalResult StageRun::receive(ReceiveOp ran, Frame &frame) {
  if (shared.stages == 1)
    return ran.emitOpError("in a step that is not split over stages");
  auto message = shared.mail.receive(phase, ran, stage, moment.microBatch);
  if (mlir::failed(message))
    return mlir::failure();
  if (!*message) {
    waiting = ran;
    return mlir::success();
  }
  const std::vector<HostTensor> &passed = *(*message)->values;
  return define(ran.getValue(), seen(ran, kStageAxis, passed, passed), frame);
}

mlir::LogicalResult StageRun::sumOverStages(AllReduceOp ran, Frame &frame) {
  const RankValues own = frame.at(ran.getInput());
  auto sum = shared.mail.join(ran, stage, own);
  if (mlir::failed(sum))
    return mlir::failure();
  if (!*sum) {
    waiting = ran;
    return mlir::success();
  }
  return define(ran.getResult(), seen(ran, kStageAxis, *own, std::move(**sum)),
                frame);
}

//===----------------------------------------------------------------------===//
// Any operator
//===----------------------------------------------------------------------===//

mlir::FailureOr<const Placement *> StageRun::placementOf(mlir::Operation *ran) {
  auto [entry, isNew] = placements.try_emplace(ran);
  if (isNew && shared.partitioned) {
    auto placement = Placement::of(llvm::cast<ComputeOp>(ran), shared.mesh);
    if (mlir::failed(placement))
      return mlir::failure();
    entry->second = std::move(*placement);
  }
  return &entry->second;
}

mlir::LogicalResult StageRun::executeKernel(mlir::Operation *ran,
                                            Frame &frame) {
  const runtime::reference::Kernel kernel = kernelOf(ran);
  if (!kernel)
    return ran->emitOpError("cannot be interpreted");
  auto placement = placementOf(ran);
  if (mlir::failed(placement))
    return mlir::failure();
  std::vector<std::vector<HostTensor>> results(ran->getNumResults());
  for (std::int64_t rank = 0; rank < shared.mesh.ranks(); ++rank) {
    llvm::SmallVector<const HostTensor *> operands;
    for (mlir::Value operand : ran->getOperands())
      operands.push_back(&(*frame.at(operand))[rank]);
    KernelCall call = callOf(ran, operands);
    call.moment = moment;
    (*placement)->place(call, shared.mesh, rank);
    kernel(call);
    for (auto [all, one] : llvm::zip_equal(results, takeResults(call)))
      all.push_back(std::move(one));
  }
  for (auto [result, values] : llvm::zip_equal(ran->getResults(), results))
    frame[result] =
        std::make_shared<const std::vector<HostTensor>>(std::move(values));
  return mlir::success();
}

mlir::LogicalResult StageRun::execute(mlir::Operation *ran, Frame &frame) {
  const auto input = [&]() -> const RankValues & {
    return frame.at(ran->getOperand(0));
  };
  return llvm::TypeSwitch<mlir::Operation *, mlir::LogicalResult>(ran)
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
        if (shared.partitioned)
          return reshard.emitOpError("in a partitioned module");
        return define(reshard.getResult(), input(), frame);
      })
      .Case([&](SendOp out) { return send(out, input()); })
      .Case([&](ReceiveOp in) { return receive(in, frame); })
      .Default([&](mlir::Operation *other) {
        auto sum = llvm::dyn_cast<AllReduceOp>(other);
        if (sum && shared.stages > 1 && sum.getAxis() == kStageAxis)
          return sumOverStages(sum, frame);
        if (axisOfCollective(other))
          return define(other->getResult(0), executeCollective(other, input()),
                        frame);
        return executeKernel(other, frame);
      });
}

} // namespace mtplan::ir

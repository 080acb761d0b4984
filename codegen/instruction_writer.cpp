//===- instruction_writer.cpp - Translates operations ---------------------===//

#include "codegen/instruction_writer.h"

#include <array>

#include "llvm/ADT/TypeSwitch.h"

#include "ir/decisions.h"
#include "ir/interpret/placement.h"
#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/plan_queries.h"

using namespace mlir;

namespace mtplan::codegen {

using runtime::CollectiveKind, runtime::Instruction, runtime::KernelCall,
    runtime::Program, runtime::Setting, runtime::Tensor;

namespace {

// Returns whether an attribute describes the IR and is not a kernel setting.
bool isStructure(StringRef name) {
  return name == "label" || name == "cause" || name == "layout" ||
         name == "copies" || name.starts_with("mtp.");
}

std::string labelOf(Operation *op) {
  for (const char *name : {"label", "cause"})
    if (auto label = op->getAttrOfType<StringAttr>(name))
      return label.str();
  return op->getName().stripDialect().str();
}

std::vector<Setting> firstTermOf(Operation *op) {
  std::vector<Setting> settings;
  auto first = op->getAttrOfType<DenseI64ArrayAttr>(ir::kFirstTermAttrName);
  constexpr std::array kNames{runtime::kFirstTerm, runtime::kFirstTermCopy};
  if (first)
    for (auto [number, name] : llvm::zip_first(first.asArrayRef(), kNames))
      settings.push_back({name, std::int64_t{number}});
  return settings;
}

std::vector<Setting> settingsOf(Operation *op) {
  std::vector<Setting> settings;
  for (auto &[name, value] : ir::kernelAttributesOf(op))
    if (!isStructure(name))
      settings.push_back({name, std::move(value)});
  return settings;
}

// Adds `op`, an epilogue or a bias gradient, to the kernel before it. The
// operands of an epilogue, except for the kernel's own result, are appended to
// the kernel's operands. If `op` is the epilogue of a bias gradient, the kernel
// has the same epilogue, so only the outputs of `op` are added.
void fuse(Operation *op, const Instruction &alone, Instruction &kernel) {
  std::vector<Setting> &settings = std::get<KernelCall>(kernel.what).settings;
  kernel.outputs.insert(kernel.outputs.end(), alone.outputs.begin(),
                        alone.outputs.end());
  if (ir::isFusedAs(op, ir::kBiasGradient)) {
    settings.push_back({runtime::kBiasGradient, std::int64_t{1}});
    return;
  }
  Operation *producer = op->getPrevNode();
  if (ir::isFused(producer))
    return;
  const auto &then = std::get<KernelCall>(alone.what);
  settings.push_back({runtime::kThen, then.kernel});
  settings.insert(settings.end(), then.settings.begin(), then.settings.end());
  for (auto [operand, tensor] :
       llvm::zip_equal(op->getOperands(), alone.inputs))
    if (operand != producer->getResult(0))
      kernel.inputs.push_back(tensor);
}

} // namespace

LogicalResult InstructionWriter::writeKernel(Operation *op,
                                             Instruction &instruction) {
  KernelCall call{op->getName().stripDialect().str(), settingsOf(op)};
  std::vector<Split> operands, results;
  if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op);
      compute && op->hasAttr(ir::kStrategyAttrName)) {
    FailureOr<ir::Placement> placement = ir::Placement::of(compute, names.mesh);
    if (failed(placement))
      return failure();
    auto copy = [](const ir::Placement::TensorAxes &all,
                   std::vector<Split> &splits) {
      for (const auto &tensor : all) {
        Split &split = splits.emplace_back();
        for (const auto &axes : tensor)
          split.emplace_back(axes.begin(), axes.end());
      }
    };
    copy(placement->operandAxes(), operands);
    copy(placement->resultAxes(), results);
  }
  if (auto axis = op->getAttrOfType<StringAttr>("axis"))
    for (Setting &setting : call.settings)
      if (setting.name == "axis")
        setting.value = std::int64_t{names.mesh.axis(axis.getValue())};
  std::string name = labelOf(op);
  if (failed(
          tensors.add(op->getOperands(), operands, name, instruction.inputs)) ||
      failed(tensors.add(op->getResults(), results, name, instruction.outputs)))
    return failure();
  instruction.what = std::move(call);
  return success();
}

bool InstructionWriter::writeCollective(Operation *op,
                                        Instruction &instruction) {
  runtime::Collective collective;
  auto reduction = [](bool max) {
    return max ? runtime::Reduction::max : runtime::Reduction::sum;
  };
  ArrayRef<int64_t> among;
  bool known = llvm::TypeSwitch<Operation *, bool>(op)
                   .Case([&](ir::AllReduceOp sum) {
                     collective.kind = CollectiveKind::allReduce;
                     collective.reduction = reduction(sum.getMax());
                     if (sum.getAmong())
                       among = *sum.getAmong();
                     return true;
                   })
                   .Case([&](ir::AllGatherOp gather) {
                     collective.kind = CollectiveKind::allGather;
                     collective.gathered = static_cast<int>(gather.getDim());
                     return true;
                   })
                   .Case([&](ir::ReduceScatterOp scatter) {
                     collective.kind = CollectiveKind::reduceScatter;
                     collective.reduction = reduction(scatter.getMax());
                     collective.scattered = static_cast<int>(scatter.getDim());
                     return true;
                   })
                   .Case([&](ir::AllToAllOp trade) {
                     collective.kind = CollectiveKind::allToAll;
                     collective.scattered = static_cast<int>(trade.getSplit());
                     collective.gathered = static_cast<int>(trade.getJoin());
                     return true;
                   })
                   .Default(false);
  if (!known)
    return false;
  collective.group =
      names.groupOver(op->getAttrOfType<StringAttr>("axis").getValue(), among);
  instruction.what = collective;
  return true;
}

LogicalResult InstructionWriter::writeAccumulate(ir::AccumulateOp op,
                                                 Instructions &written) {
  Instruction instruction;
  instruction.label = op.getLabel().str();
  instruction.what = KernelCall{"accumulate", firstTermOf(op)};
  auto places = op->getAttrOfType<ArrayAttr>(ir::kPlacesAttrName);
  if (!places)
    return op->emitOpError("has no place");
  std::string name = op.getLabel().str() + ".grad";
  if (failed(tensors.add(op.getValue(), {}, name, instruction.inputs)))
    return failure();
  instruction.outputs = {tensors.tensorAt(llvm::cast<ir::PlaceAttr>(places[0]),
                                          op.getValue().getType(), name)};
  written.push_back(std::move(instruction));
  return success();
}

LogicalResult InstructionWriter::writeAccumulated(ir::AccumulatedOp op,
                                                  Instructions &written) {
  auto others = op->getAttrOfType<ArrayAttr>(ir::kStateAttrName);
  if (!others)
    return success();
  std::string name = op.getLabel().str() + ".grad";
  for (auto other : others.getAsRange<ir::PlaceAttr>()) {
    Instruction instruction;
    instruction.label = op.getLabel().str();
    instruction.what = KernelCall{"accumulate", {}};
    instruction.inputs = {
        tensors.tensorAt(other, op.getValue().getType(), name)};
    if (failed(tensors.add(op.getValue(), {}, name, instruction.outputs)))
      return failure();
    written.push_back(std::move(instruction));
  }
  return success();
}

LogicalResult InstructionWriter::write(Operation *op,
                                       std::vector<Written> &program) {
  if (llvm::isa<ir::ParameterOp, ir::BackwardOp, ir::YieldOp>(op))
    return success();
  auto stream = op->getAttrOfType<StringAttr>(ir::kStreamAttrName);
  if (!stream)
    return op->emitOpError("has no stream");
  if (!llvm::is_contained(ir::kStreams, std::string_view(stream.getValue())))
    return op->emitOpError("is on stream ") << stream << ", which is unknown";
  Instructions written;
  if (failed(writeAlone(op, written)))
    return failure();
  if (ir::isFused(op)) {
    if (program.empty() || written.size() != 1)
      return op->emitOpError("has nothing to be fused with");
    fuse(op, written.front(), program.back().instruction);
    return success();
  }
  for (Instruction &instruction : written) {
    if (!llvm::isa<ir::AdamwOp>(op))
      instruction.stream = names.streamOf(stream.getValue());
    instruction.overlapped = ir::isOverlapped(op);
    program.push_back({std::move(instruction), ir::batchOf(op)});
  }
  return success();
}

ir::ParameterOp InstructionWriter::readOf(ir::AdamwOp op) const {
  auto state = op->getAttrOfType<ArrayAttr>(ir::kStateAttrName);
  auto known = reads.find(op.getLabel().str());
  if (known == reads.end())
    return {};
  for (ir::ParameterOp read : known->second) {
    FailureOr<ir::PlaceAttr> place = placeOf(read.getValue());
    if (succeeded(place) && state && *place == state[0])
      return read;
  }
  return {};
}

LogicalResult InstructionWriter::writeAdamw(ir::AdamwOp op,
                                            Instructions &written) {
  auto state = op->getAttrOfType<ArrayAttr>(ir::kStateAttrName);
  if (!state || state.size() < 3)
    return op->emitOpError("has no state");
  std::string label = op.getLabel().str();
  auto placed = [&](std::size_t i) {
    return llvm::cast<ir::PlaceAttr>(state[i]);
  };
  Type type = op.getGradient().getType();
  ir::ParameterOp read = readOf(op);
  if (!read)
    return op->emitOpError("updates a parameter that its stage does not read");
  Split stored = tensors.splitBy(read.getLayout().value_or(ir::LayoutAttr()));
  Split owned = op.getLayout() ? tensors.splitBy(*op.getLayout()) : stored;
  Instruction update;
  update.label = label;
  update.what = KernelCall{"adamw", settingsOf(op)};
  if (failed(tensors.add(op.getGradient(), {owned}, label, update.inputs)))
    return failure();
  Tensor value;
  if (op.getUpdated()) {
    FailureOr<ir::PlaceAttr> piece = placeOf(op.getUpdated());
    if (failed(piece))
      return failure();
    value = tensors.tensorAt(*piece, type, label, owned);
    if (state.size() == 3) { // there is no separate master weight
      Instruction take;
      take.label = label;
      take.what = KernelCall{"piece", {}};
      take.inputs = {
          tensors.tensorAt(placed(0), read.getType(), label, stored)};
      take.outputs = {value};
      written.push_back(std::move(take));
    }
  } else {
    value = tensors.tensorAt(placed(0), type, label, owned);
  }
  Tensor first = tensors.tensorAt(placed(1), type, label + ".exp_avg", owned);
  Tensor second =
      tensors.tensorAt(placed(2), type, label + ".exp_avg_sq", owned);
  Tensor master = value;
  if (state.size() > 3)
    master = tensors.tensorAt(placed(3), type, label + ".master", owned);
  if (state.size() == 3 || !runtime::isOnHost(stage, master)) {
    update.outputs = {value, master, first, second};
    written.push_back(std::move(update));
    return success();
  }
  // The gradient is copied to the host. The host updates its own copy of the
  // weights. The updated weights are copied back to the device.
  auto copy = [&](const Tensor &from, const Tensor &to, StringRef stream) {
    written.push_back({label,
                       KernelCall{"copy", {}},
                       {from},
                       {to},
                       names.streamOf(stream),
                       {}});
  };
  Tensor arrived =
      tensors.tensorAt(placed(4), type, label + ".grad.host", owned);
  Tensor updated = master;
  if (state.size() > 5)
    updated = tensors.tensorAt(placed(5), type, label + ".host", owned);
  copy(update.inputs[0], arrived, "down");
  update.inputs = {arrived};
  update.outputs = {updated, master, first, second};
  update.stream = names.streamOf("host");
  written.push_back(std::move(update));
  copy(updated, value, "up");
  return success();
}

LogicalResult InstructionWriter::writeAlone(Operation *op,
                                            Instructions &written) {
  if (auto sum = llvm::dyn_cast<ir::AccumulatedOp>(op))
    return writeAccumulated(sum, written);
  if (auto sum = llvm::dyn_cast<ir::AccumulateOp>(op))
    return writeAccumulate(sum, written);
  if (auto adamw = llvm::dyn_cast<ir::AdamwOp>(op))
    return writeAdamw(adamw, written);
  Instruction instruction;
  instruction.label = labelOf(op);
  std::vector<Split> results;
  if (auto input = llvm::dyn_cast<ir::InputOp>(op)) {
    runtime::Input what{input.getLabel().str(),
                        {},
                        static_cast<int64_t>(input.getLimit().value_or(0))};
    for (auto dim : input.getDims().getAsRange<StringAttr>())
      what.dims.push_back(dim.str());
    instruction.what = std::move(what);
    if (input.getLayout())
      results.push_back(tensors.splitBy(*input.getLayout()));
  } else if (auto send = llvm::dyn_cast<ir::SendOp>(op)) {
    instruction.what = runtime::Transfer{true, static_cast<int>(send.getTo()),
                                         names.channelOf(send.getLabel())};
  } else if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) {
    instruction.what =
        runtime::Transfer{false, static_cast<int>(receive.getFrom()),
                          names.channelOf(receive.getLabel())};
  } else if (auto report = llvm::dyn_cast<ir::ResultOp>(op)) {
    instruction.what = runtime::Report{report.getLabel().str()};
  } else if (auto store = llvm::dyn_cast<ir::StoreOp>(op)) {
    auto places = store->getAttrOfType<ArrayAttr>(ir::kPlacesAttrName);
    FailureOr<ir::PlaceAttr> made = placeOf(store.getValue());
    if (!places || failed(made))
      return store->emitOpError("has no place");
    if (*made == places[0])
      return success(); // the value is already in the parameter's memory
    instruction.what = KernelCall{"copy", {}};
    instruction.outputs = {
        tensors.tensorAt(llvm::cast<ir::PlaceAttr>(places[0]),
                         store.getValue().getType(), store.getLabel().str())};
  } else if (!writeCollective(op, instruction)) {
    if (failed(writeKernel(op, instruction)))
      return failure();
    written.push_back(std::move(instruction));
    return success();
  }
  if (failed(tensors.add(op->getOperands(), {}, instruction.label,
                         instruction.inputs)) ||
      failed(tensors.add(op->getResults(), results, instruction.label,
                         instruction.outputs)))
    return failure();
  written.push_back(std::move(instruction));
  return success();
}

Program programOf(const std::string &name, std::vector<Written> written,
                  int copies) {
  Program program;
  program.name = name;
  // The key includes the kernel, because one operation may become several
  // kernels. The key includes `overlapped`, because a backward program also
  // contains overlapped reductions of the update, whose launches are numbered
  // separately.
  std::map<std::tuple<int64_t, std::string, bool>, std::vector<int>> launches;
  for (Written &one : written) {
    if (one.batch >= 0) {
      const auto *call = std::get_if<KernelCall>(&one.instruction.what);
      launches[{one.batch, call ? call->kernel : "",
                one.instruction.overlapped}]
          .push_back(static_cast<int>(program.instructions.size()));
    }
    program.instructions.push_back(std::move(one.instruction));
  }
  for (auto &[key, instructions] : launches) {
    const bool isAll = instructions.size() == program.instructions.size();
    const bool ofAllCopies = copies > 1 && isAll;
    if (instructions.size() > 1 || ofAllCopies)
      program.batches.push_back({std::move(instructions), ofAllCopies});
  }
  llvm::sort(program.batches, [](const auto &one, const auto &other) {
    return one.instructions.front() < other.instructions.front();
  });
  return program;
}

} // namespace mtplan::codegen

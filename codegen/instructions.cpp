//===- instructions.cpp - What an operator becomes ------------------------===//

#include <array>

#include "llvm/ADT/TypeSwitch.h"

#include "codegen/stage_writer.h"
#include "ir/decisions.h"
#include "ir/interpret/placement.h"
#include "runtime/plan/first_term.h"

using namespace mlir;

namespace mtplan::codegen {

using runtime::CollectiveKind, runtime::Instruction, runtime::KernelCall,
    runtime::Program, runtime::Setting;

namespace {

// Kernels do not see the names of the program's structure.
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

// Adds an epilogue, or a bias's gradient, to the kernel before it. Operands of
// an epilogue that the kernel does not make come after the kernel's own; the
// epilogue of a bias's gradient is the same as that of the kernel.
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

std::vector<Setting> settingsOf(Operation *op) {
  std::vector<Setting> settings;
  for (NamedAttribute named : op->getAttrDictionary()) {
    std::string name = named.getName().str();
    if (isStructure(name))
      continue;
    Attribute value = named.getValue();
    Setting setting{name, std::int64_t{1}};
    if (auto text = llvm::dyn_cast<StringAttr>(value))
      setting.value = text.str();
    else if (auto flag = llvm::dyn_cast<BoolAttr>(value))
      setting.value = std::int64_t{flag.getValue()};
    else if (auto number = llvm::dyn_cast<FloatAttr>(value))
      setting.value = number.getValueAsDouble();
    else if (auto kind = llvm::dyn_cast<ir::ActivationAttr>(value);
             kind && name == "kind") // an enumeration, in the words of the IR
      setting.value = ir::stringifyEnum(kind.getValue()).str();
    else if (auto integer = llvm::dyn_cast<IntegerAttr>(value))
      setting.value = integer.getInt();
    else if (!llvm::isa<UnitAttr>(value))
      continue;
    settings.push_back(std::move(setting));
  }
  return settings;
}

LogicalResult StageWriter::writeKernel(Operation *op,
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
          addTensors(op->getOperands(), operands, name, instruction.inputs)) ||
      failed(addTensors(op->getResults(), results, name, instruction.outputs)))
    return failure();
  instruction.what = std::move(call);
  return success();
}

bool StageWriter::writeCollective(Operation *op, Instruction &instruction) {
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

LogicalResult StageWriter::writeAccumulate(ir::AccumulateOp op,
                                           Program &program) {
  Instruction instruction;
  instruction.label = op.getLabel().str();
  instruction.what = KernelCall{"accumulate", firstTermOf(op)};
  auto places = op->getAttrOfType<ArrayAttr>(ir::kPlacesAttrName);
  if (!places)
    return op->emitOpError("has no place");
  std::string name = op.getLabel().str() + ".grad";
  if (failed(addTensors(op.getValue(), {}, name, instruction.inputs)))
    return failure();
  instruction.outputs = {tensorAt(llvm::cast<ir::PlaceAttr>(places[0]),
                                  op.getValue().getType(), name)};
  program.instructions.push_back(std::move(instruction));
  return success();
}

// Adds up what segments that use the same weight have summed up apart.
LogicalResult StageWriter::writeAccumulated(ir::AccumulatedOp op,
                                            Program &program) {
  auto others = op->getAttrOfType<ArrayAttr>(ir::kStateAttrName);
  if (!others)
    return success();
  std::string name = op.getLabel().str() + ".grad";
  for (auto other : others.getAsRange<ir::PlaceAttr>()) {
    Instruction instruction;
    instruction.label = op.getLabel().str();
    instruction.what = KernelCall{"accumulate", {}};
    instruction.inputs = {tensorAt(other, op.getValue().getType(), name)};
    if (failed(addTensors(op.getValue(), {}, name, instruction.outputs)))
      return failure();
    program.instructions.push_back(std::move(instruction));
  }
  return success();
}

LogicalResult StageWriter::write(Operation *op, Program &program) {
  if (llvm::isa<ir::ParameterOp, ir::BackwardOp, ir::YieldOp>(op))
    return success();
  auto stream = op->getAttrOfType<StringAttr>(ir::kStreamAttrName);
  if (!stream)
    return op->emitOpError("has no stream");
  Program written;
  if (failed(writeAlone(op, written)))
    return failure();
  if (ir::isFused(op)) {
    if (program.instructions.empty() || written.instructions.size() != 1)
      return op->emitOpError("has nothing to be fused with");
    fuse(op, written.instructions.front(), program.instructions.back());
    return success();
  }
  for (Instruction &instruction : written.instructions) {
    if (!llvm::isa<ir::AdamwOp>(op))
      instruction.stream = names.streamOf(stream.getValue());
    program.instructions.push_back(std::move(instruction));
  }
  return success();
}

LogicalResult StageWriter::writeAlone(Operation *op, Program &program) {
  if (auto sum = llvm::dyn_cast<ir::AccumulatedOp>(op))
    return writeAccumulated(sum, program);
  if (auto sum = llvm::dyn_cast<ir::AccumulateOp>(op))
    return writeAccumulate(sum, program);
  if (auto adamw = llvm::dyn_cast<ir::AdamwOp>(op))
    return writeAdamw(adamw, program);
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
      results.push_back(splitBy(*input.getLayout()));
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
      return success(); // the value is made where it belongs
    instruction.what = KernelCall{"copy", {}};
    instruction.outputs = {tensorAt(llvm::cast<ir::PlaceAttr>(places[0]),
                                    store.getValue().getType(),
                                    store.getLabel().str())};
  } else if (!writeCollective(op, instruction)) {
    if (failed(writeKernel(op, instruction)))
      return failure();
    program.instructions.push_back(std::move(instruction));
    return success();
  }
  if (failed(addTensors(op->getOperands(), {}, instruction.label,
                        instruction.inputs)) ||
      failed(addTensors(op->getResults(), results, instruction.label,
                        instruction.outputs)))
    return failure();
  program.instructions.push_back(std::move(instruction));
  return success();
}

FailureOr<int> StageWriter::addProgram(const std::string &name, Block &block,
                                       int64_t firstCopy) {
  Program program;
  program.name = name;
  program.firstCopy = static_cast<int>(firstCopy);
  for (Operation &op : block)
    if (failed(write(&op, program)))
      return failure();
  if (program.instructions.empty())
    return -1;
  stage.programs.push_back(std::move(program));
  return static_cast<int>(stage.programs.size()) - 1;
}

} // namespace mtplan::codegen

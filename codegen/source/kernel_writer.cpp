//===- kernel_writer.cpp - Expressions of a kernel's call -----------------===//

#include "codegen/source/kernel_writer.h"

#include "codegen/source/cuda_source.h"
#include "runtime/backend/followed.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::codegen {

using namespace runtime;

KernelWriter::KernelWriter(const Instruction &theInstruction,
                           const Program &theProgram,
                           const StageNames &theNames, Text &theText,
                           Needs &theNeeds)
    : instruction(theInstruction), program(theProgram), names(theNames),
      text(theText), wanted(theNeeds) {
  const auto &call = std::get<KernelCall>(instruction.what);
  spec = {call.kernel, instruction.label, call.settings, {}, {}};
  for (const Tensor &tensor : instruction.inputs)
    spec.inputs.push_back({tensor.type, tensor.shape, {}});
  for (const Tensor &tensor : instruction.outputs)
    spec.outputs.push_back({tensor.type, tensor.shape, {}});
  real = usesDouble(spec) ? "double" : "float";
  if (spec.find("axis"))
    axis = names.axis(static_cast<int>(spec.integer("axis", 0)));
}

std::string KernelWriter::in(std::size_t i) const {
  return i < instruction.inputs.size() ? names.tensor(instruction.inputs[i])
                                       : "kNone";
}

std::string KernelWriter::out(std::size_t i) const {
  return i < instruction.outputs.size() ? names.tensor(instruction.outputs[i])
                                        : "kNowhere";
}

std::string KernelWriter::masks() const {
  const std::string label = spec.text("mask", "");
  return "Masks(now.rank.numbers, " + quoted(label) + ", " +
         names.layerOf(label, program.firstCopy) + ", " +
         names.real("rate", spec.number("rate", 0.0)) + ")";
}

std::string KernelWriter::adds() const {
  const FirstTerm first = firstTermOf(spec.settings);
  if (first.microBatch == FirstTerm::kNone)
    return "true";
  std::string isLater = "now.microBatch != " + count(first.microBatch);
  if (first.copy == FirstTerm::kNone)
    return isLater;
  return isLater + " || now.layer != " + count(first.copy - program.firstCopy);
}

void KernelWriter::callAs(const std::string &function,
                          std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "now.stream()");
  text.call(function, arguments);
}

std::string sizesText(const KernelWriter &to, const Tensor &from,
                      std::size_t columns) {
  const std::size_t end = from.shape.size() - columns,
                    samples = end > 0 ? 1 : 0;
  return "ColumnSizes" +
         listText(std::vector<std::string>{to.elements(from, 0, samples),
                                           to.elements(from, samples, end),
                                           to.elements(from, end)});
}

std::string summedSizes(const KernelWriter &to, const Tensor &from,
                        const Tensor &sums) {
  return sizesText(to, from, sums.shape.size());
}

void writeInTurn(const KernelWriter &to) {
  const auto [first, second] = halvesOf(to.spec);
  const Halves<Tensor> halves = halvesOf(
      pairingOf(to.spec), to.instruction.inputs, to.instruction.outputs);
  Instruction one = to.instruction;
  one.what = KernelCall{first.kernel, first.settings};
  one.inputs = halves.firstInputs;
  one.outputs = halves.firstOutputs;
  writeKernel(one, to.program, to.names, to.text, to.wanted);
  one.what = KernelCall{second.kernel, second.settings};
  one.inputs = halves.secondInputs;
  one.outputs = halves.secondOutputs;
  writeKernel(one, to.program, to.names, to.text, to.wanted);
}

void writeKernel(const Instruction &instruction, const Program &program,
                 const StageNames &names, Text &text, Needs &needs) {
  static const KernelTable kTable = [] {
    KernelTable table;
    addElementKernels(table);
    addAttentionKernels(table);
    addVocabularyKernels(table);
    addExpertKernels(table);
    addProducts(table);
    return table;
  }();
  const std::string &kernel = std::get<KernelCall>(instruction.what).kernel;
  const auto found = kTable.find(kernel);
  if (found == kTable.end())
    throw SourceError(instruction.label + " (" + kernel +
                      "): there is no way yet to write this kernel into a "
                      "program that stands alone");
  try {
    found->second(KernelWriter(instruction, program, names, text, needs));
  } catch (const std::runtime_error &fault) {
    throw SourceError(fault.what());
  }
}

} // namespace mtplan::codegen

//===- kernel_writer.h - Expressions of a kernel's call ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_KERNEL_WRITER_H
#define MTPLAN_CODEGEN_SOURCE_KERNEL_WRITER_H

#include <functional>
#include <map>

#include "codegen/source/kernel_lines.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/signature.h"

namespace mtplan::codegen {

/// Writes one kernel call. Tensors and sizes are expressions of the program.
class KernelWriter {
public:
  KernelWriter(const runtime::Instruction &theInstruction,
               const runtime::Program &theProgram, const StageNames &theNames,
               Text &theText, Needs &theNeeds);

  std::string in(std::size_t i) const;  ///< operand i, or "kNone"
  std::string out(std::size_t i) const; ///< result i, or "kNowhere"
  std::string integers(std::size_t i) const {
    return names.integers(instruction.inputs[i]);
  }
  const std::vector<std::int64_t> &shapeIn(std::size_t i) const {
    return instruction.inputs[i].shape;
  }
  const std::vector<std::int64_t> &shapeOut(std::size_t i) const {
    return instruction.outputs[i].shape;
  }
  std::string count(std::int64_t number) const {
    return std::to_string(number);
  }
  const runtime::Tensor &input(std::size_t i) const {
    return instruction.inputs[i];
  }
  const runtime::Tensor &output(std::size_t i) const {
    return instruction.outputs[i];
  }
  std::string extent(const runtime::Tensor &tensor, std::size_t dim) const {
    return names.extent(tensor, dim);
  }
  std::string elements(const runtime::Tensor &tensor, std::size_t first = 0,
                       std::size_t end = std::string::npos) const {
    return names.elements(tensor, first, end);
  }
  /// Returns the product of all dimensions except the last one.
  std::string rows(const runtime::Tensor &tensor) const {
    return elements(tensor, 0,
                    tensor.shape.empty() ? 0 : tensor.shape.size() - 1);
  }
  std::string width(const runtime::Tensor &tensor) const {
    return tensor.shape.empty() ? "1" : extent(tensor, tensor.shape.size() - 1);
  }
  /// Returns `function` with the type of the kernel's arithmetic as template
  /// argument: "layerNorm<float>".
  std::string of(const std::string &function) const {
    return function + "<" + real + ">";
  }
  std::string scratch(const std::string &bytes) const {
    return "now.scratch(" + bytes + ")";
  }
  std::string masks() const;
  /// Returns the condition under which a run adds to its accumulator instead of
  /// overwriting it: "now.microBatch != 0", or "true".
  std::string adds() const;
  void needs(const char *header) const {
    wanted.files.insert(std::string("runtime/cuda/device/") + header);
  }
  /// Writes the call "function<real>(now.stream(), arguments...);".
  void call(const std::string &function,
            std::vector<std::string> arguments) const {
    callAs(of(function), std::move(arguments));
  }
  void callAs(const std::string &function,
              std::vector<std::string> arguments) const;
  [[noreturn]] void refuse(const std::string &what) const {
    runtime::refuse(spec, what);
  }

  const runtime::Instruction &instruction;
  const runtime::Program &program;
  const StageNames &names;
  Text &text;
  Needs &wanted;
  runtime::KernelSpec spec; ///< has no shard offsets
  std::string real;         ///< "float" or "double"
  std::string axis;         ///< the constant for setting "axis", or ""
};

/// Returns "ColumnSizes{samples, rows, columns}" for a sum of `from` over all
/// dimensions except the last `columns`. The first dimension counts samples.
std::string sizesText(const KernelWriter &to, const runtime::Tensor &from,
                      std::size_t columns);
/// Returns sizesText() for a sum that keeps the dimensions of `sums`, which are
/// the last dimensions of `from`.
std::string summedSizes(const KernelWriter &to, const runtime::Tensor &from,
                        const runtime::Tensor &sums);

/// Writes a fused instruction as two kernels: the producer, then the consumer.
void writeInTurn(const KernelWriter &to);

using KernelTable =
    std::map<std::string, std::function<void(const KernelWriter &)>>;

/// Adds one family of kernels to `table`. The key is the name of a kernel, and
/// the value writes a call of the kernel.
void addElementKernels(KernelTable &table);
void addAttentionKernels(KernelTable &table);
void addVocabularyKernels(KernelTable &table);
void addExpertKernels(KernelTable &table);
void addProducts(KernelTable &table);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_KERNEL_WRITER_H

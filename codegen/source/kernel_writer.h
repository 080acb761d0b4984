//===- kernel_writer.h - What the call of a kernel is made of ---*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_KERNEL_WRITER_H
#define MTPLAN_CODEGEN_SOURCE_KERNEL_WRITER_H

#include <functional>
#include <map>

#include "codegen/source/kernel_lines.h"
#include "runtime/backend/made_kernel.h"
#include "runtime/backend/signature.h"

namespace mtplan::codegen {

/// One kernel instruction, as a spec and as words.
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
  /// "layerNorm<float>", in which type it computes
  std::string of(const std::string &function) const {
    return function + "<" + real + ">";
  }
  /// "now.scratch(sumScratch<float>(...))"
  std::string scratch(const std::string &bytes) const {
    return "now.scratch(" + bytes + ")";
  }
  std::string masks() const;
  /// What is equal, and so on, if a run has the first term of a sum; "" if none
  /// has: "now.microBatch == 0 && now.layer == 3"
  std::string firstTerm(const char *equal, const char *both) const;
  /// Whether a run adds to a sum: "now.microBatch != 0", or "true"
  std::string adds() const {
    const std::string later = firstTerm(" != ", " || ");
    return later.empty() ? "true" : later;
  }
  void needs(const char *header) const {
    wanted.files.insert(std::string("runtime/cuda/device/") + header);
  }
  /// A line, or some: function<R>(now.stream(), arguments...);
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
  runtime::KernelSpec spec; ///< without places: of any rank
  std::string real;         ///< "float" or "double"
  std::string axis;         ///< of setting "axis"; "" if there is none
};

/// "ColumnSizes{samples, rows, columns}"
std::string sizesText(std::int64_t samples, std::int64_t rows,
                      std::int64_t columns);
/// The same of what is summed down to the trailing dimensions.
std::string summedSizes(const runtime::Tensor &from, const runtime::Tensor &to);

/// Both kernels of an instruction that is two, one after the other.
void writeInTurn(const KernelWriter &to);

using KernelTable =
    std::map<std::string, std::function<void(const KernelWriter &)>>;

/// By kernel, those of layers, of losses and lookups, and of experts.
void addElementKernels(KernelTable &table);
void addAttentionKernels(KernelTable &table);
void addVocabularyKernels(KernelTable &table);
void addExpertKernels(KernelTable &table);
void addProducts(KernelTable &table);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_KERNEL_WRITER_H

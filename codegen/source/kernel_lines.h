//===- kernel_lines.h - Kernels as lines of a program -----------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H
#define MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/matrix_shape.h"

namespace mtplan::codegen {

/// Holds the members of a MatrixShape as expressions of the program.
struct MatrixText {
  std::string m, n, k, batches; ///< "B / dp * T"
  std::string a, b, c;          ///< strides: "{C, 1}"
  std::string vectorStep;       ///< stride between biases, in elements
  /// Each element names the buffers that three consecutive products of the
  /// batch use for one tensor: the left operand, the right operand or the
  /// result. The program asserts that the three buffers are at equal distances.
  std::vector<std::vector<std::string>> triples;
};

struct WantedProduct {
  runtime::MatrixShape shape;
  MatrixText text;
};

/// Lists the declarations that kernel calls need elsewhere in a program.
struct Needs {
  std::set<std::string> files;         ///< runtime files with the kernels
  std::vector<WantedProduct> products; ///< without duplicates
};

/// Writes the call of an instruction's kernel.
/// \param needs  receives the declarations that the call needs
/// \throws SourceError if the kernel cannot be written
void writeKernel(const runtime::Instruction &instruction,
                 const runtime::Program &program, const StageNames &names,
                 Text &text, Needs &needs);

/// Describes products of one program that run as one batched product.
struct ProductBatch {
  std::vector<int> instructions; ///< as in runtime::Batch
  runtime::EvenRuns runs;        ///< strides from one product to the next
};

/// Returns whether one call of cuBLASLt can compute the batched product.
bool isOneCall(const runtime::Program &program, const ProductBatch &batch);

/// \pre isOneCall() is true for the batch
void writeBatchedProduct(const runtime::Program &program,
                         const ProductBatch &batch, const StageNames &names,
                         Text &text, Needs &needs);

/// Writes the calls that make cuBLASLt choose an algorithm for each product,
/// and the assertions on the distances between buffers.
void writeChoices(const Needs &needs, Text &text);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H

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

/// The numbers of a product's shape, as the program writes them.
struct MatrixText {
  std::string m, n, k, batches; ///< "B / dp * T"
  std::string a, b, c;          ///< "{C, 1}"
  std::string vectorStep;       ///< elements to the next matrix's bias
};

struct WantedProduct {
  runtime::MatrixShape shape;
  MatrixText text;
};

/// Things that calls of kernels need elsewhere in a program.
struct Needs {
  std::set<std::string> files;         ///< of the runtime, that declare them
  std::vector<WantedProduct> products; ///< each shape once
};

/// Writes the call of an instruction's kernel.
/// \param needs  receives what the call needs
/// \throws SourceError if there is no way to write it
void writeKernel(const runtime::Instruction &instruction,
                 const runtime::Program &program, const StageNames &names,
                 Text &text, Needs &needs);

/// Products of one program that are one batched product.
struct ProductBatch {
  std::vector<int> instructions; ///< as in runtime::Batch
  runtime::EvenRuns runs;        ///< bytes from one to the next
};

/// Returns whether one call of cuBLASLt computes them.
bool isOneCall(const runtime::Program &program, const ProductBatch &batch);

/// Writes the call of a batched product.
/// \param batch  for which isOneCall holds
void writeBatchedProduct(const runtime::Program &program,
                         const ProductBatch &batch, const StageNames &names,
                         Text &text, Needs &needs);

/// Writes the lines that have cuBLASLt choose algorithms for the products.
void writeChoices(const Needs &needs, Text &text);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_KERNEL_LINES_H

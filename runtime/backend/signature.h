//===- signature.h - What shapes a kernel takes -----------------*- C++ -*-===//
//
// One line per kernel, in letters: "*h,h->*h" takes rows of any number of
// dimensions and a vector of their length. All backends check with it when a
// kernel is prepared, so that none has to while it runs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_SIGNATURE_H
#define MTPLAN_RUNTIME_BACKEND_SIGNATURE_H

#include <string>
#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Throws what Backend::prepare promises if there is no such kernel or its
/// operands, results or settings do not fit it and each other.
void checkSpec(const KernelSpec &spec);

/// Throws with the label and the kernel before `what`.
[[noreturn]] void refuse(const KernelSpec &spec, const std::string &what);

/// Of a dimension; a tensor without pieces is whole.
Span pieceOf(const TensorView &view, std::size_t dim);

/// An einsum's letters.
struct Equation {
  std::string lhs, rhs, result;

  explicit Equation(const KernelSpec &spec);
};

/// All that kernels are known by, in the order of names.
std::vector<std::string> kernelNames();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_SIGNATURE_H

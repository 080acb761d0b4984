//===- signature.h - The shapes of kernels ----------------------*- C++ -*-===//
//
// One line per kernel, in letters: "*h,h->*h" takes rows of any number of
// dimensions and a vector of their length. All backends check specs with it
// when a kernel is prepared, so that no kernel has to check while it runs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_SIGNATURE_H
#define MTPLAN_RUNTIME_BACKEND_SIGNATURE_H

#include <string>
#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Throws what Backend::prepare promises if there is no such kernel, or if
/// operands, results or settings do not fit it and each other.
void checkSpec(const KernelSpec &spec);

/// Throws with the label and the kernel before `what`.
[[noreturn]] void refuse(const KernelSpec &spec, const std::string &what);

/// Returns the local range of a dimension; a tensor that is not sharded has the
/// full range.
Span pieceOf(const TensorView &view, std::size_t dim);

/// The letters of an einsum.
struct Equation {
  std::string lhs, rhs, result;

  explicit Equation(const KernelSpec &spec);
};

/// Returns the names of all kernels, sorted.
std::vector<std::string> kernelNames();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_SIGNATURE_H

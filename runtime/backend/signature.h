//===- signature.h - The shapes of kernels ----------------------*- C++ -*-===//
//
// A signature states the shapes of a kernel in letters. "*h,h->*h" means: the
// operands are rows of length h, in any number of dimensions, and a vector of
// length h; the result has the shape of the rows. All backends check specs when
// a kernel is prepared, so that no kernel has to check while it runs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_SIGNATURE_H
#define MTPLAN_RUNTIME_BACKEND_SIGNATURE_H

#include <string>
#include <vector>

#include "runtime/backend/activation_kind.h"
#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Checks that the kernel exists and that the spec matches its signature.
/// \throws std::runtime_error like Backend::prepare
void checkSpec(const KernelSpec &spec);

/// Throws std::runtime_error with the label and the kernel before `what`.
[[noreturn]] void refuse(const KernelSpec &spec, const std::string &what);

/// Returns the local range of a dimension: the full range unless sharded.
Span pieceOf(const TensorView &view, std::size_t dim);

std::vector<std::string> kernelNames();

/// Lists the values of the setting `kind`, in the order of Activation.
inline constexpr const char *kActivations[] = {"gelu", "gelu_tanh", "silu",
                                               "relu", "tanh",      "sigmoid"};

/// Parses the setting `kind`.
/// \throws std::runtime_error if the setting names no activation function
Activation activationOf(const KernelSpec &spec);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_SIGNATURE_H

//===- activation.h - Activation functions by name --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_ACTIVATION_H
#define MTPLAN_RUNTIME_BACKEND_ACTIVATION_H

#include "runtime/backend/activation_kind.h"
#include "runtime/backend/signature.h"

namespace mtplan::runtime {

/// Names in the order of Activation, as the setting `kind` has them.
inline constexpr const char *kActivations[] = {"gelu", "gelu_tanh", "silu",
                                               "relu", "tanh",      "sigmoid"};

/// Parses the setting `kind`.
inline Activation activationOf(const KernelSpec &spec) {
  const std::string kind = spec.text("kind", "");
  for (int i = 0; i < 6; ++i)
    if (kind == kActivations[i])
      return static_cast<Activation>(i);
  refuse(spec, "kind '" + kind +
                   "' is none of gelu, gelu_tanh, silu, relu, tanh, sigmoid");
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_ACTIVATION_H

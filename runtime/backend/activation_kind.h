//===- activation_kind.h - Activation functions -----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_ACTIVATION_KIND_H
#define MTPLAN_RUNTIME_BACKEND_ACTIVATION_KIND_H

namespace mtplan::runtime {

enum class Activation { gelu, geluTanh, silu, relu, tanh, sigmoid };

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_ACTIVATION_KIND_H

//===- cost_class.h - What the time of an operator depends on ---*- C++ -*-===//

#ifndef MTPLAN_IR_COST_CLASS_H
#define MTPLAN_IR_COST_CLASS_H

#include <cstdint>

namespace mtplan::ir {

/// Names what software is known to take for an operator. Each operator's
/// definition says its class (`costClass` in compute_ops.td). Products and
/// attention have prices of their own, by their factors.
enum class CostClass : std::uint8_t {
  traffic, ///< reads its operands and writes its results
  layerNorm,
  rmsNorm,
  residual,   ///< adds two tensors
  activation, ///< applies a function to one tensor
  gated,      ///< multiplies one tensor by a function of another
  rope,
  dropout,
  biasGradient,   ///< sums a gradient over all tokens
  logitsRead,     ///< one of two passes over the logits in the forward half
  logitsGradient, ///< reads the logits and writes their gradient
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_COST_CLASS_H

//===- bias_gradients.h - Sums beside products of gradients -----*- C++ -*-===//
//
// The gradient of a bias is the sum of what is above, over all that the product
// of the weight's gradient goes over, too. They are written as one instruction
// (setting `bias_gradient`), so that a device reads what is above once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_BIAS_GRADIENTS_H
#define MTPLAN_CODEGEN_BIAS_GRADIENTS_H

#include "codegen/meetings.h"

namespace mtplan::codegen {

/// Moves sums to the product before them that takes what they take, if what
/// follows both is the same, and begins in the same run.
/// Complexity: instructions of the program between the two, each with what it
/// touches.
void joinBiasGradients(runtime::Program &program, const Meetings &meetings);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_BIAS_GRADIENTS_H

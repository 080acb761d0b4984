//===- instruction_side.h - Whether host or device executes -----*- C++ -*-===//
//
// Arenas of class `host` lie in the host's memory, all others in the device's.
// The side with an instruction's operands executes it; a copy may move data
// between the two. On CPU ranks both are one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_INSTRUCTION_SIDE_H
#define MTPLAN_RUNTIME_PLAN_INSTRUCTION_SIDE_H

#include <cstdint>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

enum class Side : std::uint8_t {
  device,
  host,
  down,  ///< copies from the device to the host
  up,    ///< copies from the host to the device
  mixed, ///< none of these, and therefore invalid
};

bool isOnHost(const Stage &stage, const Tensor &tensor);

Side sideOf(const Stage &stage, const Instruction &instruction);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_SIDE_H

//===- instruction_side.h - Where an instruction works ----------*- C++ -*-===//
//
// Arenas of class `host` lie in the host's memory, all others in the device's.
// An instruction works where its operands lie; a copy may lead from one to the
// other. On CPU ranks both are one.
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
  down,  ///< copies what the device has to the host
  up,    ///< copies what the host has to the device
  mixed, ///< none of these: it can work nowhere
};

bool isOnHost(const Stage &stage, const Tensor &tensor);

Side sideOf(const Stage &stage, const Instruction &instruction);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_SIDE_H

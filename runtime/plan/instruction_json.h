//===- instruction_json.h - Reads what a rank does --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H
#define MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H

#include "runtime/plan/node_json.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// \throws PlanError, as does readInstruction
Tensor readTensor(const Node &node);
Instruction readInstruction(const Node &node);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H

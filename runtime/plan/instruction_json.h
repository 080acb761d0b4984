//===- instruction_json.h - Reads instructions ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H
#define MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H

#include "base/json_node.h"
#include "base/json_text.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// \throws base::JsonError, as does readInstruction
Tensor readTensor(const base::JsonNode &node);
Instruction readInstruction(const base::JsonNode &node);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H

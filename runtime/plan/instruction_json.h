//===- instruction_json.h - Reads instructions ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H
#define MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H

#include "base/json_node.h"
#include "base/json_text.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Reads a tensor from its JSON object.
/// \throws base::JsonError for an invalid member
Tensor readTensor(const base::JsonNode &node);

/// Reads an instruction from its JSON object.
/// \throws base::JsonError for an invalid member
Instruction readInstruction(const base::JsonNode &node);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_JSON_H

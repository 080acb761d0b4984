//===- instruction_class.h - Classes of instructions in reports -*- C++ -*-===//
//
// The rows of the table that compares predicted and measured times: few, and
// the same on both sides.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_INSTRUCTION_CLASS_H
#define MTPLAN_RUNTIME_PLAN_INSTRUCTION_CLASS_H

#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

inline constexpr char kProducts[] = "products", kAttention[] = "attention",
                      kPointwise[] = "norms, pointwise",
                      kCopies[] = "sums, copies",
                      kGradientNorm[] = "gradient norm",
                      kOptimizer[] = "optimizer",
                      kMessages[] = "messages, waits", kRest[] = "rest";

/// Returns the class of a kernel, which has the name of an operator.
std::string_view classOfKernel(std::string_view kernel);

/// Returns "collectives tp" for group "tp" and "collectives pp" for "pp 0 3".
std::string classOfGroup(std::string_view group);

std::string classOf(const Plan &plan, const Instruction &instruction);

/// Returns all classes that a plan's instructions can have, and that of the
/// gradient norm, which is no instruction, in the order of the table.
std::vector<std::string> classesOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_CLASS_H

//===- instruction_class.h - What instructions are counted as ---*- C++ -*-===//
//
// The rows of the table in which what a step was to take stands beside what it
// took: few, and the same on both sides.
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

/// Of a kernel of this name, which is also an operator's.
std::string_view classOfKernel(std::string_view kernel);

/// "collectives tp" of group "tp"; of "pp 0 3" "collectives pp".
std::string classOfGroup(std::string_view group);

std::string classOf(const Plan &plan, const Instruction &instruction);

/// All that the instructions of a plan can be, and the norm of gradients, which
/// is none, in the order of a table.
std::vector<std::string> classesOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_CLASS_H

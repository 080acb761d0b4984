//===- instruction_class.h - Classes of instructions in reports -*- C++ -*-===//
//
// Names the rows of the table that compares predicted and measured times. Both
// sides use the same few classes.
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

/// Returns the class of a kernel, given the name in KernelCall::kernel.
std::string_view classOfKernel(std::string_view kernel);

/// Returns "collectives tp" for group "tp" and "collectives pp" for "pp 0 3".
std::string classOfGroup(std::string_view group);

/// Returns the class of an instruction of the plan.
std::string classOf(const Plan &plan, const Instruction &instruction);

/// Returns the classes of a plan's instructions, and of the gradient norm,
/// which no program contains, in the order of the table's rows.
std::vector<std::string> classesOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INSTRUCTION_CLASS_H

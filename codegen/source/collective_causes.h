//===- collective_causes.h - Why ranks talk, and how often ------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_COLLECTIVE_CAUSES_H
#define MTPLAN_CODEGEN_SOURCE_COLLECTIVE_CAUSES_H

#include <string>
#include <vector>

#include "runtime/plan/joint_collectives.h"

namespace mtplan::codegen {

/// "each rank has a term of the sum in h.*.attn.proj (einsum)"
/// \param instruction  of the program, whose call it is
std::string causeOf(const runtime::Collective &call,
                    const runtime::Program &program,
                    const runtime::Instruction &instruction);

/// The instruction after those that are one launch of NCCL's with instruction
/// i, if they begin there; else the next.
std::size_t endOfGroup(const std::vector<runtime::JointCollectives> &joints,
                       int program, std::size_t i);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_COLLECTIVE_CAUSES_H

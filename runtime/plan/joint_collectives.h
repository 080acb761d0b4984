//===- joint_collectives.h - Collectives that may be one --------*- C++ -*-===//
//
// A layer has a dozen parameters, most of them small, and what ranks say to
// each other of one takes them less time than to begin to. A library makes what
// it is told at once one launch.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_JOINT_COLLECTIVES_H
#define MTPLAN_RUNTIME_PLAN_JOINT_COLLECTIVES_H

#include <cstddef>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Collectives of one group that follow each other on a stream and in their
/// program and wait for nothing between them: all may begin when the first
/// does. All-to-alls, which ranks make of messages, are not among them.
struct JointCollectives {
  int program = 0;                ///< of Stage::programs
  std::size_t first = 0, end = 0; ///< instructions of it
};

/// In the order of the stage's programs. There are at least two in each, of
/// which none writes what another reads or writes, in any run of the program.
/// None is of a group that ranks of other stages are in, nor longer than 64.
/// \param stage  of the plan, which checkPlan finds nothing wrong with
std::vector<JointCollectives> jointCollectives(const Plan &plan,
                                               const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_JOINT_COLLECTIVES_H

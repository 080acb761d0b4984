//===- joint_collectives.h - Collectives that may be grouped ----*- C++ -*-===//
//
// A layer has a dozen parameters, most of them small, whose collectives take
// less time than their launch. A library can launch several calls as one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_JOINT_COLLECTIVES_H
#define MTPLAN_RUNTIME_PLAN_JOINT_COLLECTIVES_H

#include <cstddef>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Collectives of one group that are consecutive on a stream and in their
/// program, without a wait between them: all may begin when the first does.
/// All-to-alls, which ranks compose of messages, are excluded.
struct JointCollectives {
  int program = 0;                ///< of Stage::programs
  std::size_t first = 0, end = 0; ///< instructions of it
};

/// Returns groups in the order of the stage's programs. Each has at least two
/// collectives, none of which writes what another reads or writes, in any run
/// of the program. No group includes ranks of other stages or more than 64
/// calls.
/// \param stage  of the plan, has passed checkPlan
std::vector<JointCollectives> jointCollectives(const Plan &plan,
                                               const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_JOINT_COLLECTIVES_H

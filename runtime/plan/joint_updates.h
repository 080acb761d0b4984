//===- joint_updates.h - Updates that may be one kernel ---------*- C++ -*-===//
//
// A layer has a dozen parameters, most of them small, whose updates take a
// device less time than their launch.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_JOINT_UPDATES_H
#define MTPLAN_RUNTIME_PLAN_JOINT_UPDATES_H

#include <cstddef>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Kernels of one kind that are consecutive on a stream of the device, without
/// a wait between them, in a program that a step runs by one entry.
struct JointUpdates {
  std::size_t entry = 0;          ///< of Stage::apply
  std::size_t first = 0, end = 0; ///< instructions of its program
  /// Nothing else is in the program: the kernels of all layers may be one.
  bool ofAllCopies = false;
};

/// Returns sets in the order of the plan. Each has at least two kernels, none
/// of which writes what another reads or writes.
/// \param stage  has passed checkPlan
std::vector<JointUpdates> jointUpdates(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_JOINT_UPDATES_H

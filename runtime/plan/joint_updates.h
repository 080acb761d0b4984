//===- joint_updates.h - Updates that may be one kernel ---------*- C++ -*-===//
//
// A layer has a dozen parameters, most of them small, and what updates one
// takes a device less time than to begin it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_JOINT_UPDATES_H
#define MTPLAN_RUNTIME_PLAN_JOINT_UPDATES_H

#include <cstddef>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Kernels of one kind that follow each other on a stream of the device and
/// wait for nothing between them, in a program that a step runs by one entry.
struct JointUpdates {
  std::size_t entry = 0;          ///< of Stage::apply
  std::size_t first = 0, end = 0; ///< instructions of its program
  /// Nothing else is in the program: those of all its copies are one.
  bool ofAllCopies = false;
};

/// In the order of the plan. There are at least two kernels in each, of which
/// none writes what another reads or writes.
/// \param stage  that checkPlan finds nothing wrong with
std::vector<JointUpdates> jointUpdates(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_JOINT_UPDATES_H

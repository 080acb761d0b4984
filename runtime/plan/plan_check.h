//===- plan_check.h - Whether an executable plan fits together --*- C++ -*-===//
//
// What is looked at before anything runs, on every stage once, for its ranks
// run one program:
//   - numbers are in range, indices refer to something, offsets are aligned;
//   - every rank is in one stage; groups are disjoint and of one size;
//   - operands are those that the instruction can work on; collectives' shapes
//     agree with the size of the group;
//   - whoever has all operands in the host's memory is a kernel of `apply`, and
//     whoever has some there a copy between it and the device's;
//   - what training keeps of a parameter has one global shape and places of its
//     own, is updated, and is counted once;
//   - buffers lie inside their arenas, and what is kept over a step overlaps
//     nothing;
//   - with the schedule followed from the first instruction to the last, no
//     value is read before it was written, after another took its place, or as
//     that of another copy or micro-batch;
//   - in every run of a program, of two instructions on different streams that
//     touch the same bytes, one writing, the later follows the earlier by
//     streams and `waits`; so do calls of one group and messages of one
//     channel;
//   - every program of `schedule` runs alike for every micro-batch;
//   - sends and receives of a channel, and the calls of a group by all stages
//     that have a part in it, agree in number, order, label, shape and type;
//   - all stages come to an end if each does one thing at a time. Streams only
//     take waits away: what ends so ends with them.
//
// Between two runs all streams join: within one, two instructions may meet.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H
#define MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H

#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// All that is wrong, or the first hundred, each one sentence that starts with
/// the JSON pointer of the fault; empty if the plan can run. Where numbers are
/// out of range, or ranks not where they belong, nothing else is looked at.
///
/// Complexity: linear in the instructions that a step runs, over all stages;
/// independent of the number of ranks but for the lists that name them.
std::vector<std::string> checkPlan(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H

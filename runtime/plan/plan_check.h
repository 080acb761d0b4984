//===- plan_check.h - Whether an executable plan fits together --*- C++ -*-===//
//
// The check runs before anything else, once for every stage, because all ranks
// of a stage run one program. It requires that
//   - numbers are in range, indices refer to something, offsets are aligned;
//   - every rank is in one stage; groups are disjoint and of one size;
//   - instructions can work on their operands; collectives' shapes agree with
//     the size of the group;
//   - an instruction with all operands in the host's memory is a kernel of
//     `apply`, and one with some there copies between it and the device's;
//   - all state of a parameter has one global shape and bytes of its own, is
//     updated, and is counted once;
//   - buffers lie inside their arenas, and nothing overlaps bytes that are kept
//     over a step;
//   - when the schedule is followed from the first instruction to the last, no
//     value is read before it was written, after another took its bytes, or
//     instead of that of another copy or micro-batch;
//   - in every run of a program, of two instructions on different streams that
//     touch the same bytes, one writing, the later follows the earlier by
//     streams and `waits`; so do calls of one group and messages of one
//     channel;
//   - every program of `schedule` runs alike for every micro-batch;
//   - the instructions of a batch can be one launch: they are of one kind,
//     start together and do not touch what others of it write, and products
//     lie at even distances;
//   - sends and receives of a channel, and the calls of a group by all stages
//     that take part in it, agree in number, order, label, shape and type;
//   - no stages deadlock if each does one thing at a time. Streams only remove
//     waits, so that a step with streams does not deadlock either.
//
// All streams join between two runs, so only instructions of one run can touch
// the same bytes at the same time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H
#define MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H

#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns all errors, or the first hundred, each one sentence that starts with
/// the JSON pointer of the fault; empty if the plan can run. If numbers are out
/// of range or ranks misplaced, nothing else is checked.
///
/// Complexity: linear in the instructions that a step runs, over all stages;
/// independent of the number of ranks except for the lists that name them.
std::vector<std::string> checkPlan(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H

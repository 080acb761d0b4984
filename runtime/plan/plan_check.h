//===- plan_check.h - Checks that an executable plan is valid ---*- C++ -*-===//
//
// The check precedes execution. It covers each stage once, because all ranks of
// a stage run the same programs. It requires that
//   - numbers and indices are in range, and offsets are aligned;
//   - every rank is in one stage; communicators of a group are disjoint and of
//     equal size;
//   - operands fit their buffers; the shapes of collectives agree with the size
//     of the group;
//   - an instruction with all operands in host memory is a kernel of `apply`;
//     an instruction with operands in host and in device memory is a copy;
//   - all tensors of a parameter have one global shape and separate bytes;
//     `apply` reads the gradient and writes all other tensors of the parameter;
//     one stage counts the parameter in the norm;
//   - buffers are inside their arenas, and nothing overlaps bytes that are kept
//     over steps;
//   - when the schedule is followed from the first instruction to the last, no
//     instruction reads a value that was not written, was overwritten, or
//     belongs to another layer or micro-batch;
//   - if two instructions of a run are on different streams, touch the same
//     bytes and one writes them, streams and `waits` order them; the same holds
//     for calls of one group and for messages of one channel;
//   - every program of `schedule` runs the same layers for every micro-batch;
//   - the instructions of a batch can be one launch: they are of one kind, may
//     start together, and do not write bytes that another one uses; products
//     have constant distances between their tensors;
//   - sends and receives of a channel, and the calls of a group by all stages
//     that take part in it, agree in number, order, label, shape and type;
//   - the stages do not deadlock if each executes one instruction at a time.
//     With streams, an instruction waits for fewer instructions, so a step
//     with streams does not deadlock either.
//
// All streams join between two runs, so only instructions of one run, and
// overlapped collectives, can touch the same bytes at the same time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H
#define MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H

#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns all errors; if there are more than a hundred, returns the first
/// hundred and a note. The result is empty if the plan can run. Each error is a
/// sentence that starts with the JSON pointer of the fault. If numbers are out
/// of range or lists of ranks are wrong, nothing else is checked. Batches and
/// messages are checked only if there is no other error.
///
/// Takes time linear in the number of instructions that a step runs, over all
/// stages. The number of ranks affects only the time to check the lists of
/// ranks.
std::vector<std::string> checkPlan(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_CHECK_H

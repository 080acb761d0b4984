//===- pass_schedule.h - A stage's schedule as passes -----------*- C++ -*-===//
//
// A pass takes one micro-batch through one part of a stage, forward or
// backward: it receives, computes and sends. Every schedule is an order of
// passes: 1F1B (Narayanan et al. 2021, section 2.2.1) alternates forward and
// backward passes, and the interleaved schedule (section 2.2.2) takes groups of
// micro-batches through the parts of a stage by turns.
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_PASS_SCHEDULE_H
#define MTPLAN_CODEGEN_SOURCE_PASS_SCHEDULE_H

#include <cstddef>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Describes what a stage runs for one micro-batch in one direction.
struct Pass {
  std::vector<runtime::ScheduleEntry> entries; ///< for micro-batch 0
  bool isBackward = false;
  std::size_t part = 0; ///< counts the parts of the stage, which are virtual
                        ///< stages, in the order of their first forward pass
};

/// Describes the run of a pass for one micro-batch.
struct PassRun {
  std::size_t pass; ///< index into PassSchedule::passes
  int microBatch;
};

struct PassSchedule {
  std::vector<Pass> passes; ///< each differs from the others
  std::vector<PassRun> runs;
  std::size_t parts = 1;
  /// If positive, the schedule takes groups of this many micro-batches through
  /// the parts by turns: forward run i of the stage is for part
  /// i / groupSize % parts and for micro-batch
  /// i / (groupSize * parts) * groupSize + i % groupSize. Backward runs take
  /// the parts in the reverse order. 0 if the stage has one part or another
  /// order.
  int groupSize = 0;
};

/// Divides each backward program that begins with recomputation into two
/// programs, "h.recompute.backward" and "h.backward", so that the second equals
/// that of layers without recomputation. Their schedule entries are adjacent,
/// and for each layer the two programs run one after the other.
void splitRecomputation(runtime::Plan &plan);

/// Returns whether a program is the recomputation of a divided program. The
/// next entry of the schedule then runs the rest of the backward.
bool isRecomputation(const runtime::Program &program);

/// Returns whether a program belongs to the backward of a micro-batch.
bool isBackward(const runtime::Program &program);

/// Divides the schedule of a stage into passes. Linear in the schedule's
/// entries times the number of different passes.
PassSchedule passesOf(const runtime::Stage &stage);

/// Returns the number of forward runs before the first backward run.
int runsBeforeBackward(const PassSchedule &schedule);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PASS_SCHEDULE_H

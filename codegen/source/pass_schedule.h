//===- pass_schedule.h - A stage's schedule as passes -----------*- C++ -*-===//
//
// A pass takes one micro-batch through one virtual stage, forward or backward:
// the pass receives, computes and sends. Every schedule is an order of passes.
// 1F1B (Narayanan et al. 2021, section 2.2.1) alternates forward and backward
// passes. The interleaved schedule (section 2.2.2) takes groups of
// micro-batches through the virtual stages of a stage in turn. The code calls a
// virtual stage a part.
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_PASS_SCHEDULE_H
#define MTPLAN_CODEGEN_SOURCE_PASS_SCHEDULE_H

#include <cstddef>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

struct Pass {
  std::vector<runtime::ScheduleEntry> entries; ///< for micro-batch 0
  bool isBackward = false;
  /// Holds the number of the pass's virtual stage. The numbers are in the order
  /// of the first forward passes.
  std::size_t part = 0;
};

struct PassRun {
  std::size_t pass; ///< index into PassSchedule::passes
  int microBatch;
};

struct PassSchedule {
  std::vector<Pass> passes; ///< without duplicates
  std::vector<PassRun> runs;
  std::size_t parts = 1;
  /// If positive, the schedule takes groups of this many micro-batches through
  /// the virtual stages in turn. Let g be groupSize and p be parts. Then
  /// forward run i is for part i / g % p and for micro-batch i / (g * p) * g +
  /// i % g. Backward runs take the parts in reverse order. The value is 0 if
  /// the stage has one part, or if its schedule has another order.
  int groupSize = 0;
};

/// Divides backward programs that begin with recomputation into two programs,
/// "h.recompute.backward" and "h.backward". The second program then equals the
/// backward program of layers without recomputation. The schedule entries of
/// both programs are adjacent, and for each layer the second program runs right
/// after the first. A program is not divided if its second half waits for the
/// first half, or if a batch crosses the division or covers all layers.
void splitRecomputation(runtime::Plan &plan);

/// Returns whether a program is the recomputation of a divided program. If so,
/// the next schedule entry runs the rest of the backward program.
bool isRecomputation(const runtime::Program &program);

bool isBackward(const runtime::Program &program);

/// Divides the schedule of a stage into passes. The time is linear in the
/// schedule's entries times the number of different passes.
PassSchedule passesOf(const runtime::Stage &stage);

int runsBeforeBackward(const PassSchedule &schedule);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_PASS_SCHEDULE_H

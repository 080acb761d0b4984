//===- schedule_lines.h - A schedule as loops -------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H

#include <string>
#include <vector>

#include "codegen/source/pass_schedule.h"
#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes the calls of an entry, for each of its layers.
/// \param functions   the functions of the entry's programs
/// \param microBatch  the expression for the entry's micro-batch
void writeEntry(const StageNames &names, const runtime::ScheduleEntry &entry,
                const std::vector<std::string> &functions,
                const std::string &microBatch, Text &text);

/// Writes the runs of a schedule's passes as calls, in loops over micro-batches
/// or, if the schedule takes groups of them by turns, over the stage's runs.
/// \param microBatches  of a step
/// \param functions  the function of each pass, or, if the schedule has groups,
///                   the function of each direction: forward, backward
void writeRuns(int microBatches, const PassSchedule &schedule,
               const std::vector<std::string> &functions, Text &text);

/// Returns the name of a program's function. A program that only sends or
/// receives is named after this action, and any other has its name in the plan.
std::string functionNameOf(const runtime::Program &program,
                           const StageNames &names);

/// Returns a sentence on what a program does that only sends or receives.
std::string purposeOfMessages(const runtime::Program &program,
                              const StageNames &names);

/// Returns what a program of Stage::reduce does: "sums gradients over ranks".
std::string purposeOfReduction(const runtime::Program &program);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H

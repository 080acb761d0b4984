//===- schedule_lines.h - A schedule as loops -------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H

#include <string>
#include <vector>

#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns a number of layers as text. All layers of the model are "L", the
/// layers of one of `pp` equal stages are "L / pp", and others are digits.
std::string layersText(const runtime::Plan &plan, int layers);

/// Writes a schedule as calls of the programs' functions, with loops over
/// layers and micro-batches. Entries that repeat, each time for the next
/// micro-batch, become one loop.
/// \param functions  names of the functions, by program
/// \param inFlight   micro-batches that run forward before the first backward,
///                   which the program calls inFlight; 0 for no such name
void writeSchedule(const runtime::Plan &plan,
                   const std::vector<runtime::ScheduleEntry> &schedule,
                   const std::vector<std::string> &functions, Text &text,
                   int inFlight = 0);

/// Returns the name of a program's function. A program that only sends or
/// receives is named after this action, and any other has its name in the plan.
std::string functionNameOf(const runtime::Program &program);

/// Returns a sentence on what a program does that only sends or receives.
std::string purposeOfMessages(const runtime::Program &program);

/// Returns what a program of Stage::reduce does: "sums gradients over ranks".
std::string purposeOfReduction(const runtime::Program &program);

/// Returns the number of micro-batches that run forward before the first
/// backward, or 0 if there are fewer than two.
int microBatchesInFlight(const runtime::Stage &stage);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H

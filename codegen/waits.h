//===- waits.h - Waits between instructions ---------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_WAITS_H
#define MTPLAN_CODEGEN_WAITS_H

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Computes the waits of every instruction from streams and memory. An
/// instruction waits for an earlier one on another stream if both access the
/// same bytes in any run of the program, and at least one of the two
/// instructions writes these bytes. A wait that other waits imply is omitted.
/// The first instruction of a launch has the waits of the whole launch.
///
/// The work is proportional to the number of pairs of instructions on different
/// streams. Buffers with several entries or slots multiply the work by the
/// number of runs of the program.
void writeWaits(runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_WAITS_H

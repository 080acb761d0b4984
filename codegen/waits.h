//===- waits.h - Which instructions wait for which --------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_WAITS_H
#define MTPLAN_CODEGEN_WAITS_H

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes the waits of every instruction, which follow from the streams and
/// from where memory has been placed: an instruction waits for one on another
/// stream that touches the same bytes, in any run of the program, if one of the
/// two writes. A wait that other waits imply is left out. The first instruction
/// of a launch waits for all of the launch.
///
/// Complexity: pairs of instructions on different streams, times the runs in
/// which their pieces of buffers with entries or slots do not overlap.
void writeWaits(runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_WAITS_H

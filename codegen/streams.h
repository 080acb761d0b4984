//===- streams.h - Which stream does what, and who waits --------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_STREAMS_H
#define MTPLAN_CODEGEN_STREAMS_H

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes Plan::streams and the stream and waits of every instruction, whatever
/// they were. Collectives go by their group, messages are one stream, the rest
/// is "compute"; so calls of one group stay in order. Groups are named after
/// their axis, with whatever follows it after a space.
///
/// An instruction waits for one on another stream that touches the same bytes,
/// in any run of the program, if one of the two writes, unless that follows
/// from streams and other waits: the waits are as few as can be.
///
/// Complexity: pairs of instructions on different streams, times the runs in
/// which their pieces of buffers with entries or slots do not meet.
void assignStreams(runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_STREAMS_H

//===- termination.h - Whether this process was told to end -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TERMINATION_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TERMINATION_H

namespace mtplan::runtime {

/// Makes SIGTERM end this rank's patience, so that it says whom it waited for:
/// launchers send it to all when one has died, and soon after SIGKILL. A rank
/// that waits for nobody ends soon after, too. A process with a handler of its
/// own keeps that: whoever has one knows what to do.
void listenForTermination();

/// Whether SIGTERM has come since somebody listens.
bool isTerminated();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TERMINATION_H

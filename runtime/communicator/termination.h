//===- termination.h - Requests to end this process -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TERMINATION_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TERMINATION_H

namespace mtplan::runtime {

/// Makes SIGTERM end this rank's patience, so that it names the ranks it waited
/// for: launchers send SIGTERM to all ranks when one has died, and SIGKILL soon
/// after. A rank that waits for none ends soon after, too. A handler that the
/// process already has stays in place.
void listenForTermination();

/// Returns whether SIGTERM has come since listenForTermination().
bool isTerminated();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TERMINATION_H

//===- waiting.h - Finds the rank that others wait for ----------*- C++ -*-===//
//
// A rank that lost its patience may wait for one that waits itself. These
// functions find the rank that keeps all of them waiting.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_WAITING_H
#define MTPLAN_RUNTIME_COMMUNICATOR_WAITING_H

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Repeats the failure of another rank.
struct Echo : CommunicationError {
  Echo(int rank, const std::string &why)
      : CommunicationError("rank " + std::to_string(rank) + " failed: " + why) {
  }
};

/// What a rank waits for.
struct Waiting {
  std::string what;         ///< formatted like wordsOf(Call, GroupName)
  std::vector<int> missing; ///< ranks that have not come, ascending
};

/// What another rank is doing.
struct Doing {
  enum { working, waiting, ended } state = working;
  Waiting wait; ///< if waiting
};

/// Explains why `rank` gives up after `waited`: follows who waits for whom to a
/// rank that does not wait, or around a cycle. `wait.missing` is not empty.
std::string explain(int rank, const Waiting &wait,
                    std::chrono::milliseconds waited,
                    const std::function<Doing(int)> &doing);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_WAITING_H

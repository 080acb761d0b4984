//===- crew.h - Work that all ranks do beside training ----------*- C++ -*-===//
//
// Every rank gives its part of a task to a thread of its own and continues. At
// points that all ranks reach, usually between steps, they ask together whether
// all parts are done. So no rank waits for a slow disk inside a collective, and
// a rank that writes slowly is not taken for a dead one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_CREW_H
#define MTPLAN_RUNTIME_CHECKPOINT_CREW_H

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// All methods but the destructor are collective.
class Crew {
public:
  explicit Crew(World &theWorld);
  /// Waits for this rank's part.
  ~Crew();
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;

  struct State {
    bool running = false; ///< the part of some rank
    bool wished = false;  ///< by some rank
    /// Once no part runs: the error of the lowest rank whose part threw, "rank
    /// 1:
    /// ..."; "" if none did.
    std::string fault;
  };

  /// Starts a task; none may be running.
  void start(std::function<void()> work);
  /// \param wish  anything that the ranks must agree on at this point
  State ask(bool wish = false);
  /// Asks until no part runs. Returns the same error on all ranks if one threw.
  std::string finish();

  Communicator &all() { return *allRanks; }

private:
  struct Part; ///< outlives a crew that is destroyed while it runs

  World &world;
  std::unique_ptr<Communicator> allRanks;
  std::shared_ptr<Part> part; ///< null: no task
  std::thread thread;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_CREW_H

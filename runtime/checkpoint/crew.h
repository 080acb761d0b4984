//===- crew.h - Work that all ranks do beside training ----------*- C++ -*-===//
//
// Every rank gives its part of a task to a thread of its own and goes on; at
// points that all ranks come to, usually between steps, they ask together
// whether all parts are done. So nobody waits for a slow disk inside a
// collective, and a rank that is slow to write is not taken for one that died.
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
  /// Waits for its own part.
  ~Crew();
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;

  struct State {
    bool running = false; ///< somebody's part
    bool wished = false;  ///< by somebody
    /// Once nobody's runs: what went wrong, of the lowest rank whose part
    /// threw, "rank 1: ..."; "" if all went well.
    std::string fault;
  };

  /// No task is running.
  void start(std::function<void()> work);
  /// \param wish  anything that ranks must know of each other at this point
  State ask(bool wish = false);
  /// Asks until no part runs. The same words on all ranks if one threw.
  std::string finish();

  Communicator &all() { return *allRanks; }

private:
  struct Part; ///< outlives a crew that is unwound while it runs

  World &world;
  std::unique_ptr<Communicator> allRanks;
  std::shared_ptr<Part> part; ///< null: no task
  std::thread thread;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_CREW_H

//===- runs_apart.h - Instructions that are independent ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_RUNS_APART_H
#define MTPLAN_RUNTIME_PLAN_RUNS_APART_H

#include <cstddef>
#include <vector>

#include "runtime/plan/arena_bytes.h"

namespace mtplan::runtime {

/// Runs of instructions that are to start together.
class RunsApart {
public:
  /// \param theStage  has passed checkPlan
  explicit RunsApart(const Stage &theStage) : stage(theStage) {}

  void add(const Instruction &instruction, int copy, int microBatch);
  /// Returns whether there are at least two runs, none of which writes what
  /// another reads or writes.
  bool areSeveral();

private:
  /// Bytes that a run reads or writes.
  struct Touched : ArenaBytes {
    std::size_t run = 0;
    bool isWritten = false;
  };

  const Stage &stage;
  std::vector<Touched> touched;
  std::size_t count = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_RUNS_APART_H

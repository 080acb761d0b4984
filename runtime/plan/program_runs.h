//===- program_runs.h - The runs of a program, and their bytes --*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H
#define MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H

#include <cstdint>
#include <tuple>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

struct ProgramRun {
  int copy = 0, microBatch = 0;
  bool operator<(const ProgramRun &other) const {
    return std::tie(copy, microBatch) < std::tie(other.copy, other.microBatch);
  }
};

/// Returns the runs of a program in a step, in ascending order, without those
/// whose tensors all lie where another run has them.
/// \param stage  has passed checkRanges
std::vector<ProgramRun> runsOf(const Stage &stage, int program);

struct ArenaBytes {
  int arena = 0; ///< of Stage::arenas
  std::int64_t begin = 0, end = 0;

  bool overlaps(const ArenaBytes &other) const {
    return arena == other.arena && begin < other.end && other.begin < end;
  }
};

/// Returns the bytes of a tensor in a run.
/// \param stage  has passed checkRanges
ArenaBytes arenaBytesOf(const Stage &stage, const Tensor &tensor,
                        const ProgramRun &run);

/// Whether the instructions of a batch are consecutive.
inline bool isConsecutive(const Batch &batch) {
  return batch.instructions.back() - batch.instructions.front() + 1 ==
         static_cast<int>(batch.instructions.size());
}

/// Whether a kernel writes an output: one with a fused consumer writes every
/// second.
bool isWritten(const Instruction &kernel, std::size_t output);

/// The distances in bytes from the tensors of a product to those of the next
/// product of its batch. An output that only a fused consumer reads has 0: it
/// is not written.
struct BatchSteps {
  std::vector<std::int64_t> inputs, outputs;
};

/// \param batch  of products, has passed checkPlan
BatchSteps stepsOf(const Stage &stage, int program, const Batch &batch);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H

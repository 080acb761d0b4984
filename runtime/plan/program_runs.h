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

/// Returns the runs of a program in a step, in ascending order. The result has
/// only one of several runs that use the same bytes, unless too many
/// micro-batches use different bytes.
/// \param stage  must have passed checkRanges
std::vector<ProgramRun> runsOf(const Stage &stage, int program);

struct ArenaBytes {
  int arena = 0; ///< index into Stage::arenas
  std::int64_t begin = 0, end = 0;

  bool overlaps(const ArenaBytes &other) const {
    return arena == other.arena && begin < other.end && other.begin < end;
  }
};

/// \param stage  must have passed checkRanges
ArenaBytes arenaBytesOf(const Stage &stage, const Tensor &tensor,
                        const ProgramRun &run);

inline bool isConsecutive(const Batch &batch) {
  return batch.instructions.back() - batch.instructions.front() + 1 ==
         static_cast<int>(batch.instructions.size());
}

/// Returns whether a kernel of a batch has to write an output. A kernel with a
/// fused consumer (`add` or `accumulate`) has to write only every second
/// output, because these are the outputs of the consumer.
bool isWritten(const Instruction &kernel, std::size_t output);

/// Holds the distances in bytes between the tensors of consecutive products of
/// a batch; 0 for an output that is not written.
struct BatchSteps {
  std::vector<std::int64_t> inputs, outputs;
};

/// \param batch  must belong to a plan that has passed checkPlan
BatchSteps stepsOf(const Stage &stage, int program, const Batch &batch);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H

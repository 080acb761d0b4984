//===- drawn_run.h - A random plan for emulated GPUs ------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EMULATOR_RUNS_DRAWN_RUN_H
#define MTPLAN_TESTS_EMULATOR_RUNS_DRAWN_RUN_H

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <gtest/gtest.h>

#include "passes/verify/prove.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/executable/run_plan.h"
#include "tests/passes/verify/drawn_plan.h"

namespace mtplan::passes {

/// Draws a plan of a model family with two layers, in double precision.
struct DrawnRun {
  DrawnRun(Family theFamily, std::uint64_t salt)
      : family(shortened(theFamily)), drawn(drawnOf(family, salt)),
        made(family, drawn),
        pair(buildProofPair(*made.step.module, *made.planned)) {
    if (!pair)
      throw std::runtime_error("no program of " + textOf(drawn));
    for (mlir::ModuleOp step : {*pair->partitioned, *pair->logical})
      setElementType(step, mlir::Float64Type::get(step->getContext()));
    options.seed = drawn.seed;
    options.microBatches = drawn.microBatches;
    options.adam.epsilon = 1e-3; // Keeps rounding small.
  }

  const Family family;
  const Drawn drawn;
  DrawnStep made;
  std::optional<ProofPair> pair;
  ir::RunOptions options;

private:
  static Family shortened(Family family) {
    if (family.layers > 0)
      family.layers = 2;
    return family;
  }
  static Drawn drawnOf(const Family &family, std::uint64_t salt) {
    Random random = randomOf(family, salt);
    return draw(random, family.splits.contains("expert"),
                planner::layersOf(Step(family, 1, 1).graph));
  }
};

/// Returns the families of these examples.
inline std::vector<Family> familiesOf(const std::set<std::string> &examples) {
  std::vector<Family> some = families();
  std::erase_if(some, [&](const Family &family) {
    return !examples.contains(family.example);
  });
  return some;
}

/// Holds the next device of makeOnOwnDevice(). Tests set it to 0 before a run.
inline std::atomic<int> ranksOnDevices{0};

/// Makes the backend of this thread's rank, on a device of its own.
inline std::unique_ptr<runtime::Backend> makeOnOwnDevice() {
  cudaSetDevice(ranksOnDevices++);
  return runtime::makeCudaBackend();
}

inline void expectSame(const Gathered &ran, const Gathered &expected) {
  EXPECT_EQ(ran.faults, std::vector<std::string>());
  std::string worst;
  EXPECT_LE(worstDifference(ran, expected, worst, 1e-3), 1e-10) << worst;
  EXPECT_EQ(ran.collectives, expected.collectives);
}

} // namespace mtplan::passes

#endif // MTPLAN_TESTS_EMULATOR_RUNS_DRAWN_RUN_H

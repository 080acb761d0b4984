//===- small_plan.h - A plan that trains quickly ----------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EMULATOR_RUNS_SMALL_PLAN_H
#define MTPLAN_TESTS_EMULATOR_RUNS_SMALL_PLAN_H

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/executable/run_process.h"

namespace mtplan {

/// Compiles a GPT-2 with one layer for two replicas. Returns the plan's folder.
/// \param flags  more flags of mtplan
inline std::string compileTwoReplicas(const TestFolder &folder,
                                      const std::vector<std::string> &flags) {
  const std::string model = folder / "model.json";
  std::string plan = folder / "plan";
  std::ofstream(model) << R"({"model_type": "gpt2", "n_layer": 1,
    "n_embd": 16, "n_head": 2, "n_positions": 8, "vocab_size": 256})";
  std::vector<std::string> all = {"--gpus", "2", "--dp", "2"};
  all.insert(all.end(), flags.begin(), flags.end());
  EXPECT_EQ(compileExample(model, plan, all), "");
  return plan;
}

} // namespace mtplan

#endif // MTPLAN_TESTS_EMULATOR_RUNS_SMALL_PLAN_H

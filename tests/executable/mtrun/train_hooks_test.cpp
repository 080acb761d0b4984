//===- train_hooks_test.cpp - State that is copied during a step ----------===//
//
// A checkpoint is copied while the next forward and backward passes run. The
// state must not change before the hook `beforeUpdate` is called.
//
//===----------------------------------------------------------------------===//

#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "runtime/executor/train.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using namespace runtime;

// Returns weights, master weights and moments of a rank as bytes.
std::string stateOf(const RankExecutor &rank) {
  std::string bytes;
  auto add = [&](const Tensor &tensor, int copy) {
    std::int64_t size = bytesOf(tensor.type);
    for (const std::int64_t extent : tensor.shape)
      size *= extent;
    rank.read(tensor, copy, [&](const std::byte *data) {
      bytes.append(reinterpret_cast<const char *>(data),
                   static_cast<std::size_t>(size));
    });
  };
  for (const Parameter &parameter : rank.stage().parameters)
    for (int copy = 0; copy < parameter.copies; ++copy) {
      add(parameter.value, copy);
      if (parameter.master)
        add(*parameter.master, copy);
      add(parameter.firstMoment, copy);
      add(parameter.secondMoment, copy);
    }
  return bytes;
}

/// Counts over all ranks and all steps but the first: states before the update
/// that equal the state after the previous update (`same`) or differ from it
/// (`others`), and updates that change the state (`updates`).
struct Seen {
  int same = 0, others = 0, updates = 0;
};

Seen train(const std::vector<std::string> &flags) {
  const TestFolder folder;
  EXPECT_EQ(compileExample("tiny-gpt2", folder / "run", flags), "");
  const Plan plan = readPlanFile(folder / "run/plan.json");
  TrainOptions options;
  options.steps = 4;
  Seen seen;
  std::mutex guard;
  runOnThreads(plan.ranks, {}, [&](World &world) {
    const auto backend = makeCpuBackend(1);
    const RankExecutor *rank = nullptr;
    std::string before;
    TrainHooks hooks;
    hooks.resume = [&](RankExecutor &executor) {
      rank = &executor;
      return std::nullopt;
    };
    hooks.after = [&](const TrainState &state) {
      const std::string now = stateOf(*rank);
      if (!before.empty()) {
        const std::lock_guard lock(guard);
        seen.updates += now != before ? 1 : 0;
      }
      before = state.step < options.steps ? now : "";
      return true;
    };
    hooks.beforeUpdate = [&] {
      if (before.empty())
        return;
      const std::lock_guard lock(guard);
      (stateOf(*rank) == before ? seen.same : seen.others) += 1;
    };
    runtime::train(
        plan, world, *backend, options,
        {[&](std::int64_t step) {
           return std::make_unique<DrawnData>(
               drawnDataOf(plan, options.seed, step));
         },
         {}},
        [](const StepRecord &) {}, hooks);
  });
  return seen;
}

TEST(TrainHooks, StateIsUnchangedUntilTheUpdate) {
  for (const std::vector<std::string> &flags :
       {std::vector<std::string>{"--gpus", "1", "--precision", "fp32"},
        {"--gpus", "4", "--dp", "2", "--tp", "2", "--zero", "3"},
        {"--gpus", "2", "--pp", "2", "--precision", "bf16"}}) {
    const Seen seen = train(flags);
    const int ranks = std::stoi(flags[1]);
    EXPECT_EQ(seen.same, 3 * ranks);
    EXPECT_EQ(seen.others, 0);
    EXPECT_EQ(seen.updates, 3 * ranks);
  }
}

} // namespace
} // namespace mtplan

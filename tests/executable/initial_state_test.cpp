//===- initial_state_test.cpp - The state of a rank before step 1 ---------===//
//
// Compares weights and master weights of several layouts, byte by byte, with
// values that one thread draws.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cstring>
#include <mutex>

#include <gtest/gtest.h>

#include "runtime/backend/element.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/plan/plan_json.h"
#include "runtime/training/initial_values.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using namespace runtime;

/// Counts over all ranks: weights (`values`), master weights, weights of layers
/// after a rank's first (`copies`), tensors that differ from the drawn values
/// (`wrong`), elements of weights and of master weights, and drawn elements.
struct Seen {
  int values = 0, masters = 0, copies = 0, wrong = 0;
  std::int64_t ofValues = 0, ofMasters = 0, drawn = 0;
};

class InitialState {
public:
  explicit InitialState(const Plan &plan) : how{7, 0.02, plan.layers} {}

  void see(const Plan &plan, World &world) {
    const auto backend = makeCpuBackend(1);
    RankExecutor rank(plan, world, *backend);
    std::atomic<std::int64_t> drawn = 0;
    rank.initialise(
        [&](const Parameter &parameter, int copy, const TensorView &piece,
            double *values) {
          drawn += piece.elements();
          draw(parameter, copy, piece, values);
        },
        3);
    const std::lock_guard lock(guard);
    seen.drawn += drawn;
    for (const Parameter &parameter : rank.stage().parameters)
      for (int copy = 0; copy < parameter.copies; ++copy) {
        seen.ofValues += check(rank, parameter, parameter.value, copy);
        ++seen.values;
        seen.copies += copy > 0;
        if (!parameter.master)
          continue;
        seen.ofMasters += check(rank, parameter, *parameter.master, copy);
        ++seen.masters;
      }
  }

  Seen seen;

private:
  void draw(const Parameter &parameter, int copy, const TensorView &piece,
            double *values) const {
    fillInitial(how, parameter.label, parameter.firstCopy + copy,
                parameter.init, piece, values);
  }

  /// Compares a tensor with drawn values. Returns its number of elements.
  std::int64_t check(const RankExecutor &rank, const Parameter &parameter,
                     const Tensor &tensor, int copy) {
    const TensorView view = rank.place().viewOf(tensor);
    const auto elements = static_cast<std::size_t>(view.elements());
    std::vector<double> values(elements);
    draw(parameter, copy, view, values.data());
    std::vector<std::byte> expected(
        elements * static_cast<std::size_t>(bytesOf(tensor.type)));
    for (std::size_t i = 0; i < elements; ++i)
      writeElement(tensor.type, expected.data(), static_cast<std::int64_t>(i),
                   values[i]);
    rank.read(tensor, copy, [&](const std::byte *data) {
      seen.wrong += std::memcmp(data, expected.data(), expected.size()) != 0;
    });
    return view.elements();
  }

  const Initialisation how;
  std::mutex guard;
};

Seen stateOf(const std::vector<std::string> &flags) {
  const TestFolder folder;
  EXPECT_EQ(compileExample("tiny-gpt2", folder / "run", flags), "");
  const Plan plan = readPlanFile(folder / "run/plan.json");
  InitialState state(plan);
  runOnThreads(plan.ranks, {}, [&](World &world) { state.see(plan, world); });
  EXPECT_EQ(state.seen.wrong, 0);
  return state.seen;
}

// A weight and a master weight of the same shard are drawn once.
TEST(InitialState, IsDrawnOnceForWeightAndMaster) {
  const Seen seen = stateOf({"--gpus", "1", "--precision", "bf16"});
  EXPECT_GT(seen.copies, 0);
  EXPECT_EQ(seen.masters, seen.values);
  EXPECT_EQ(seen.drawn, seen.ofValues);
}

TEST(InitialState, IsTheSameInEveryLayout) {
  stateOf({"--gpus", "1", "--precision", "fp32"});
  stateOf({"--gpus", "4", "--dp", "1", "--tp", "2", "--pp", "2", "--precision",
           "bf16"});
  const Seen shared = stateOf({"--gpus", "4", "--dp", "2", "--tp", "2",
                               "--zero", "1", "--precision", "bf16"});
  EXPECT_LT(shared.ofMasters, shared.ofValues);
  EXPECT_GT(shared.drawn, shared.ofValues);
}

} // namespace
} // namespace mtplan

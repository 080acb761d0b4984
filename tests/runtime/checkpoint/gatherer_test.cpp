//===- gatherer_test.cpp - State moves to the ranks that write it ---------===//

#include <cstring>
#include <mutex>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/gatherer.h"
#include "runtime/checkpoint/model_state.h"

namespace mtplan::runtime {
namespace {

// Returns a plan of dp 2 x tp 2 with one stage.
Plan fourRanks() {
  Plan plan;
  plan.ranks = 4;
  plan.mesh = {{"dp", 2}, {"tp", 2}};
  plan.stages.emplace_back();
  plan.stages[0].ranks = {0, 1, 2, 3};
  return plan;
}

constexpr int kDp = 0, kTp = 1;

Tensor tensorOf(const std::vector<std::int64_t> &whole,
                const std::vector<std::vector<int>> &split) {
  Tensor tensor;
  tensor.shape = whole;
  tensor.split = split;
  for (std::size_t d = 0; d < split.size(); ++d)
    tensor.shape[d] /= std::int64_t{1} << split[d].size();
  return tensor;
}

/// Returns a parameter whose value is split over the axes `value`, and its
/// gradient and moments over `moments`.
Parameter parameterOf(const std::string &label,
                      const std::vector<std::int64_t> &whole,
                      const std::vector<std::vector<int>> &value,
                      const std::vector<std::vector<int>> &moments) {
  Parameter parameter;
  parameter.label = label;
  parameter.value = tensorOf(whole, value);
  parameter.gradient = tensorOf(whole, moments);
  parameter.firstMoment = parameter.secondMoment = parameter.gradient;
  std::set<int> alike{kDp, kTp};
  for (const std::vector<int> &axes : moments)
    for (const int axis : axes)
      alike.erase(axis);
  parameter.alike.assign(alike.begin(), alike.end());
  return parameter;
}

float valueOf(int tensor, std::int64_t element) {
  return static_cast<float>(tensor * 100'000 + element);
}

// Returns a rank's snapshot: the bytes of the state that the rank owns.
std::vector<std::byte> snapshotOf(const Plan &plan, const ModelState &state,
                                  int rank) {
  const RankCoordinates place(plan, rank);
  std::vector<std::byte> all;
  for (const StateSlice &slice : ownedSlices(plan, state, place)) {
    const TensorView held = place.viewOf(*slice.local);
    std::vector<float> local(static_cast<std::size_t>(held.elements()),
                             -1.0F); // padding
    forEachRun(held,
               state.tensors[static_cast<std::size_t>(slice.tensor)].shape,
               [&](std::int64_t global, std::int64_t in, std::int64_t count) {
                 for (std::int64_t k = 0; k < count; ++k)
                   local[static_cast<std::size_t>(in + k)] =
                       valueOf(slice.tensor, global + k);
               });
    const std::size_t before = all.size();
    all.resize(before + static_cast<std::size_t>(slice.bytes()));
    copySlice(slice, reinterpret_cast<const std::byte *>(local.data()),
              all.data() + before);
  }
  return all;
}

/// Expects that all ranks together write every element once, with its value.
void expectWhole(const Plan &plan, std::int64_t longRun, std::int64_t round) {
  const ModelState state = modelStateOf(plan);
  std::mutex mutex;
  std::multiset<std::pair<int, std::int64_t>> written;
  runOnThreads(plan.ranks, {}, [&](World &world) {
    Gatherer gatherer(plan, state, world, longRun, round);
    const std::vector<std::byte> snapshot =
        snapshotOf(plan, state, world.rank());
    for (int time = 0; time < 2; ++time)
      gatherer.gather(snapshot);
    for (std::size_t i = 0; i < gatherer.mine().size(); ++i) {
      const Part &part = gatherer.mine()[i];
      std::vector<float> found(static_cast<std::size_t>(part.count));
      std::memcpy(found.data(), gatherer.data(i, snapshot),
                  found.size() * sizeof(float));
      const std::lock_guard lock(mutex);
      EXPECT_EQ(part.writer, world.rank());
      for (std::int64_t k = 0; k < part.count; ++k) {
        EXPECT_EQ(found[static_cast<std::size_t>(k)],
                  valueOf(part.tensor, part.first + k));
        written.emplace(part.tensor, part.first + k);
      }
    }
  });
  std::multiset<std::pair<int, std::int64_t>> all;
  for (std::size_t t = 0; t < state.tensors.size(); ++t)
    for (std::int64_t k = 0; k < state.tensors[t].bytes() / 4; ++k)
      all.emplace(static_cast<int>(t), k);
  EXPECT_EQ(written, all);
}

TEST(Gatherer, BringsEveryElementToItsWriter) {
  Plan plan = fourRanks();
  std::vector<Parameter> &parameters = plan.stages[0].parameters;
  // Weights are split over tp, and moments also over dp (ZeRO 1), so that two
  // ranks hold each weight.
  parameters.push_back(
      parameterOf("fc1", {8, 12}, {{}, {kTp}}, {{kDp}, {kTp}}));
  parameters.push_back(
      parameterOf("fc2", {12, 8}, {{kTp}, {}}, {{kTp}, {kDp}}));
  parameters.push_back(parameterOf("norm", {10}, {{}}, {{}}));
  parameters.push_back(parameterOf("bias", {12}, {{kTp}}, {{kTp, kDp}}));
  parameters.push_back(
      parameterOf("wte", {16, 6}, {{kTp}, {}}, {{kTp}, {kDp}}));
  parameters.back().unpadded = {13, 6};
  parameters.push_back(
      parameterOf("head", {6, 16}, {{}, {kTp}}, {{kDp}, {kTp}}));
  parameters.back().unpadded = {6, 7};
  for (Parameter &parameter : parameters)
    parameter.copies = 1;
  // The first two cases gather all sharded tensors, in many rounds and in one.
  // In the third, several ranks write a tensor. In the last, ranks write their
  // own long runs.
  for (const auto &[longRun, round] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{
           {100'000, 20}, {100'000, 1 << 20}, {8, 52}, {100, 64}}) {
    SCOPED_TRACE(std::to_string(longRun) + ", " + std::to_string(round));
    expectWhole(plan, longRun, round);
  }
}

TEST(Gatherer, MovesNothingOfOneRank) {
  Plan plan;
  plan.stages.emplace_back();
  plan.stages[0].ranks = {0};
  plan.stages[0].parameters.push_back(parameterOf("fc", {4, 6}, {}, {}));
  plan.stages[0].parameters[0].alike.clear(); // there are no axes
  expectWhole(plan, 8, 16);
}

TEST(Gatherer, RejectsStateThatIsNotOwnedOnce) {
  Plan plan = fourRanks();
  plan.stages[0].parameters.push_back(
      parameterOf("fc", {8, 12}, {{}, {kTp}}, {{}, {kTp}}));
  plan.stages[0].parameters[0].alike.clear();
  const ModelState state = modelStateOf(plan);
  try {
    runOnThreads(4, {}, [&](World &world) {
      const Gatherer gatherer(plan, state, world);
    });
    FAIL() << "made of a plan that writes a tensor twice";
  } catch (const CheckpointError &error) {
    EXPECT_STREQ(error.what(),
                 "fc: the plan's ranks write 768 bytes of its 384");
  }
}

} // namespace
} // namespace mtplan::runtime

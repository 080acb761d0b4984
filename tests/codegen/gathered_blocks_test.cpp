//===- gathered_blocks_test.cpp - ZeRO 3 moves blocks ---------------------===//
//
// With ZeRO 3, a micro-batch gathers the weights of a block twice and scatters
// their gradients once, each with one launch. If traffic overlaps, the weights
// arrive while the previous block computes.
//
//===----------------------------------------------------------------------===//

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/program_runs.h"
#include "tests/executable/batching_backend.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kLayers = 2;

/// Compiles a plan of ZeRO 3 for CPU ranks, with 8 samples a step and 2 a
/// micro-batch.
Plan planOf(const std::string &model, int ranks, const std::string &overlap,
            const std::vector<std::string> &more = {}) {
  const std::string count = std::to_string(ranks);
  std::vector<std::string> flags = {"--gpus", count, "--dp",      count,
                                    "--zero", "3",   "--overlap", overlap};
  flags.insert(flags.end(), more.begin(), more.end());
  return examplePlan(model, flags);
}

const Program &programOf(const Stage &stage, const ScheduleEntry &entry) {
  return stage.programs[static_cast<std::size_t>(entry.program)];
}

const Program *named(const Stage &stage, const std::string &name) {
  for (const Program &program : stage.programs)
    if (program.name == name)
      return &program;
  return nullptr;
}

bool isA(const Instruction &instruction, CollectiveKind kind) {
  const auto *call = std::get_if<Collective>(&instruction.what);
  return call && call->kind == kind;
}

/// Returns the first instruction of each launch of collectives of a kind.
std::vector<const Instruction *> launchesOf(const Program &program,
                                            CollectiveKind kind) {
  std::vector<const Instruction *> launches;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const auto isLater = [&](const Batch &batch) {
      return std::ranges::find(batch.instructions.begin() + 1,
                               batch.instructions.end(),
                               static_cast<int>(i)) != batch.instructions.end();
    };
    if (isA(program.instructions[i], kind) &&
        std::ranges::none_of(program.batches, isLater))
      launches.push_back(&program.instructions[i]);
  }
  return launches;
}

/// Counts launches of a step: all-gathers by direction, and reduce-scatters.
struct Launches {
  int forward = 0, backward = 0, scatters = 0;
  bool operator==(const Launches &) const = default;
};
void PrintTo(const Launches &one, std::ostream *out) {
  *out << one.forward << " " << one.backward << " " << one.scatters;
}

/// Counts the launches of the layers, and those of the embedding and the head.
std::pair<Launches, Launches> launchesOf(const Stage &stage) {
  Launches layers, others;
  for (const ScheduleEntry &entry : stage.schedule) {
    const Program &program = programOf(stage, entry);
    const auto of = [&](const Instruction *first) -> Launches & {
      return first->label.find('*') != std::string::npos ? layers : others;
    };
    for (const Instruction *first :
         launchesOf(program, CollectiveKind::allGather))
      (program.name.ends_with(".forward") ? of(first).forward
                                          : of(first).backward) += entry.count;
    for (const Instruction *first :
         launchesOf(program, CollectiveKind::reduceScatter))
      of(first).scatters += entry.count;
  }
  return {layers, others};
}

// The backward of the embedding reads no weight.
TEST(GatheredBlocks, MoveWithThreeLaunches) {
  for (const char *model : {"tiny-gpt2", "tiny-llama"})
    for (const int ranks : {2, 4})
      for (const char *overlap : {"off", "on"}) {
        SCOPED_TRACE(std::string(model) + " " + std::to_string(ranks) + " " +
                     overlap);
        const Plan plan = planOf(model, ranks, overlap);
        ASSERT_EQ(plan.microBatches, 4 / ranks);
        const auto [layers, others] = launchesOf(plan.stages[0]);
        const int runs = kLayers * plan.microBatches;
        EXPECT_EQ(layers, (Launches{runs, runs, runs}));
        EXPECT_EQ(others, (Launches{2 * plan.microBatches, plan.microBatches,
                                    2 * plan.microBatches}));
      }
}

// Recomputation and gradients read the same gathered weights.
TEST(GatheredBlocks, MoveAsOftenWithRecomputation) {
  for (const char *overlap : {"off", "on"}) {
    const Plan plan = planOf("tiny-gpt2", 2, overlap, {"--recompute", "full"});
    const int runs = kLayers * plan.microBatches;
    EXPECT_EQ(launchesOf(plan.stages[0]).first, (Launches{runs, runs, runs}));
  }
}

/// Returns the bytes, counted once, that all-gathers write in the programs of a
/// direction. The labels of the all-gathers start with `labels`.
std::int64_t gatheredBytes(const Stage &stage, const std::string &direction,
                           const std::string &labels) {
  std::set<std::pair<std::int64_t, std::int64_t>> pieces;
  for (const ScheduleEntry &entry : stage.schedule) {
    const Program &program = programOf(stage, entry);
    for (const Instruction &one : program.instructions)
      for (int i = 0; i < entry.count; ++i)
        if (program.name.ends_with(direction) &&
            isA(one, CollectiveKind::allGather) &&
            one.label.starts_with(labels)) {
          const ArenaBytes bytes =
              arenaBytesOf(stage, one.outputs[0],
                           {entry.first + i * entry.step, entry.microBatch});
          pieces.insert({bytes.begin, bytes.end});
        }
  }
  std::int64_t sum = 0;
  for (const auto &[begin, end] : pieces)
    sum += end - begin;
  return sum;
}

// A layer of tiny-gpt2 has 12 C^2 + 13 C weights, with C = 64. Each tensor is
// divisible by two ranks, and all sizes are multiples of the alignment.
TEST(GatheredBlocks, TakeAShareAndOneBlockOrTwo) {
  constexpr std::int64_t kWidth = 64, kBytes = 4;
  constexpr std::int64_t kBlock = (12 * kWidth + 13) * kWidth * kBytes;
  std::map<std::string, std::int64_t> forward;
  for (const char *overlap : {"off", "on"}) {
    const Plan plan = planOf("tiny-gpt2", 2, overlap);
    const Stage &stage = plan.stages[0];
    std::int64_t share = 0;
    for (const Parameter &parameter : stage.parameters)
      if (parameter.label.starts_with("h."))
        share += parameter.copies *
                 stage.buffers[static_cast<std::size_t>(parameter.value.buffer)]
                     .size;
    EXPECT_EQ(share, kLayers * kBlock / 2);
    forward[overlap] = gatheredBytes(stage, ".forward", "h.");
  }
  EXPECT_EQ(forward["off"], kBlock);
  EXPECT_EQ(forward["on"], 2 * kBlock);
}

/// Returns whether two tensors share bytes when a program runs for a layer.
bool meet(const Stage &stage, const Tensor &one, const Tensor &other,
          int copy) {
  return arenaBytesOf(stage, one, {copy, 0})
      .overlaps(arenaBytesOf(stage, other, {copy, 0}));
}

// When a program runs for a layer, its all-gathers wait for nothing, are on
// another stream than its kernels, and write bytes that none of the kernels
// reads. The all-gathers therefore begin before the kernels end. The kernels
// read the weights that the previous run gathered.
TEST(GatheredBlocks, ArriveWhileTheBlockBeforeComputes) {
  const Plan plan = planOf("tiny-gpt2", 2, "on");
  const Stage &stage = plan.stages[0];
  for (const char *direction : {".forward", ".backward"}) {
    SCOPED_TRACE(direction);
    const Program *program = named(stage, std::string("h") + direction);
    ASSERT_TRUE(program);
    const auto launches = launchesOf(*program, CollectiveKind::allGather);
    ASSERT_EQ(launches.size(), 1U);
    EXPECT_EQ(launches[0], &program->instructions[0]);
    EXPECT_THAT(launches[0]->waits, IsEmpty());
    for (const Instruction &gather : program->instructions) {
      if (!isA(gather, CollectiveKind::allGather))
        continue;
      EXPECT_NE(gather.stream, 0);
      for (const Instruction &one : program->instructions)
        for (const Tensor &tensor : one.inputs)
          EXPECT_FALSE(meet(stage, gather.outputs[0], tensor, 0))
              << gather.label << " " << one.label;
    }
  }
  // The program before the layers gathers the block of the first layer. A
  // separate program gathers the weights that a forward or backward pass reads
  // first.
  std::vector<std::string> names;
  for (const ScheduleEntry &entry : stage.schedule)
    if (entry.microBatch == 0)
      names.push_back(programOf(stage, entry).name);
  EXPECT_THAT(names,
              ElementsAre("embed.weights.forward", "embed.forward", "h.forward",
                          "h.last.forward", "head.forward",
                          "head.weights.backward", "head.backward",
                          "h.backward", "h.last.backward", "embed.backward"));
}

void expectEqual(const Gathered::Table &one, const Gathered::Table &other) {
  ASSERT_EQ(one.size(), other.size());
  for (const auto &[key, whole] : one)
    EXPECT_EQ(whole.elements, other.at(key).elements);
}

TEST(GatheredBlocks, GiveTheSameBitsWithOverlap) {
  for (const char *model : {"tiny-gpt2", "tiny-llama"})
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(std::string(model) + " " + std::to_string(ranks));
      const auto run = [&](const char *overlap) {
        return runPlan(
            planOf(model, ranks, overlap), {},
            [] { return runtime::makeCpuBackend(1); }, 0.0, 2);
      };
      const Gathered off = run("off"), on = run("on");
      EXPECT_THAT(off.faults, IsEmpty());
      EXPECT_THAT(on.faults, IsEmpty());
      EXPECT_EQ(off.reports, on.reports);
      EXPECT_EQ(off.gradientNorm, on.gradientNorm);
      EXPECT_EQ(off.collectives, on.collectives);
      expectEqual(off.gradients, on.gradients);
      expectEqual(off.parameters, on.parameters);
      expectEqual(off.firstMoments, on.firstMoments);
    }
}

} // namespace
} // namespace mtplan

//===- waits_test.cpp - Waits between streams, and their check ------------===//
//
// The plans are hand-made or random and not compiled; stream_run_test.cpp runs
// compiled plans.
//
//===----------------------------------------------------------------------===//

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_check.h"
#include "tests/codegen/hand_streams.h"
#include "tests/codegen/stream_order.h"
#include "tests/runtime/plan/pipeline_plan.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// Builds a plan of one program. Its instructions access entry 0 of the buffers
// that they read and write.
class OneProgram {
public:
  OneProgram() {
    plan.mesh = {{"pp", 2}, {"zero", 2}, {"tp", 2}};
    plan.groups = {{"tp", {}}, {"zero", {}}, {"pp 0 1", {}}};
    plan.stages.resize(1);
    stage().arenas = {{MemoryClass::workspace, 0},
                      {MemoryClass::activations, 0},
                      {MemoryClass::host, 0}};
    stage().programs.resize(1);
    stage().schedule.push_back({0, 0, 0, 1, 1});
  }

  Stage &stage() { return plan.stages[0]; }
  int buffer(std::int64_t offset, std::int64_t size, int entries = 1,
             int slots = 1) {
    Buffer made;
    made.offset = offset;
    made.size = size;
    made.entries = entries;
    made.entryStride = entries > 1 ? 256 : 0;
    made.slots = slots;
    made.slotStride = slots > 1 ? 256 * entries : 0;
    stage().buffers.push_back(made);
    return static_cast<int>(stage().buffers.size()) - 1;
  }
  void add(decltype(Instruction::what) what, const std::vector<int> &reads,
           const std::vector<int> &writes, int entryStep = 0) {
    Instruction made;
    made.what = std::move(what);
    auto append = [&](const std::vector<int> &buffers,
                      std::vector<Tensor> &tensors) {
      for (int number : buffers) {
        Tensor tensor;
        tensor.buffer = number;
        tensor.entryStep = entryStep;
        tensors.push_back(tensor);
      }
    };
    append(reads, made.inputs);
    append(writes, made.outputs);
    stage().programs[0].instructions.push_back(std::move(made));
  }
  std::vector<std::vector<int>> waits() {
    writeStreamsAndWaits(plan);
    std::vector<std::vector<int>> all;
    for (const Instruction &one : stage().programs[0].instructions)
      all.push_back(one.waits);
    return all;
  }

  Plan plan;
};

const KernelCall kKernel{"k", {}};
const Collective kTensor{CollectiveKind::allReduce, 0},
    kData{CollectiveKind::allReduce, 1}, kTied{CollectiveKind::allReduce, 2};
const Transfer kSend{true, 1, 0};
const std::vector<int> kNobody;

TEST(Streams, DependOnTheKindOfInstruction) {
  OneProgram one;
  for (decltype(Instruction::what) what :
       {decltype(Instruction::what)(kSend), {kTied}, {kData}, {kKernel}})
    one.add(std::move(what), {}, {});
  one.add(Input{"ids", {}, 0}, {}, {});
  one.add(Report{"loss"}, {}, {});
  one.waits();
  EXPECT_THAT(one.plan.streams, ElementsAre("compute", "data", "pipeline"));
  std::vector<int> streams;
  for (const Instruction &made : one.stage().programs[0].instructions)
    streams.push_back(made.stream);
  EXPECT_THAT(streams, ElementsAre(2, 2, 1, 0, 0, 0));
  one.add(kTensor, {}, {});
  one.waits();
  EXPECT_THAT(one.plan.streams,
              ElementsAre("compute", "tensor", "data", "pipeline"));
}

// The program has two offloaded updates. In each, a gradient is copied to the
// host, the host updates the state, and the weights are copied back.
TEST(Streams, OffloadHasHostAndCopyStreams) {
  OneProgram one;
  const int gradients = one.buffer(0, 256, 2), arrived = one.buffer(0, 256, 2),
            state = one.buffer(512, 256, 2), weights = one.buffer(512, 256, 2);
  for (const int onHost : {arrived, state})
    one.stage().buffers[static_cast<std::size_t>(onHost)].arena = 2;
  const KernelCall copy{"copy", {}};
  auto both = [&](const KernelCall &call, int from, int to) {
    for (int which : {0, 1}) {
      one.add(call, {from}, {to});
      Instruction &made = one.stage().programs[0].instructions.back();
      made.inputs[0].entry = made.outputs[0].entry = which;
    }
  };
  both(copy, gradients, arrived);    // instructions 0 and 1
  both(kKernel, arrived, state);     // instructions 2 and 3
  both(copy, state, weights);        // instructions 4 and 5
  both(kKernel, weights, gradients); // instructions 6 and 7
  EXPECT_THAT(one.waits(),
              ElementsAre(kNobody, kNobody, ElementsAre(0), ElementsAre(1),
                          ElementsAre(2), ElementsAre(3), ElementsAre(4),
                          ElementsAre(5)));
  EXPECT_THAT(one.plan.streams, ElementsAre("compute", "down", "host", "up"));
  std::vector<int> streams;
  for (const Instruction &made : one.stage().programs[0].instructions)
    streams.push_back(made.stream);
  EXPECT_THAT(streams, ElementsAre(1, 1, 2, 2, 3, 3, 0, 0));
}

TEST(Streams, ComputeExistsWithoutAKernel) {
  OneProgram one;
  one.add(kData, {}, {});
  one.waits();
  EXPECT_THAT(one.plan.streams, ElementsAre("compute", "data"));
}

TEST(Streams, WaitIfEitherInstructionWrites) {
  OneProgram one;
  const int a = one.buffer(0, 512), b = one.buffer(256, 256),
            c = one.buffer(512, 256);
  one.add(kKernel, {}, {a});  // 0
  one.add(kTensor, {b}, {c}); // 1: reads what 0 writes
  one.add(kData, {a}, {});    // 2: reads what 0 writes
  one.add(kKernel, {}, {b});  // 3: writes what 1 and 2 read
  one.add(kData, {}, {c});    // 4: writes what 1 writes
  EXPECT_THAT(one.waits(), ElementsAre(kNobody, ElementsAre(0), ElementsAre(0),
                                       ElementsAre(1, 2), ElementsAre(1)));
}

TEST(Streams, OmitImpliedWaits) {
  OneProgram one;
  const int a = one.buffer(0, 256), b = one.buffer(256, 256),
            c = one.buffer(512, 256);
  one.add(kKernel, {}, {a, b}); // 0
  one.add(kKernel, {}, {c});    // 1
  one.add(kTensor, {a, c}, {}); // 2: waits for 1; 1 runs after 0 on one stream
  one.add(kTensor, {b}, {b});   // 3: runs after 2, which waits for 1
  one.add(kData, {a, b}, {c});  // 4: waits for 3, which runs after 0, 1 and 2
  EXPECT_THAT(one.waits(), ElementsAre(kNobody, kNobody, ElementsAre(1),
                                       kNobody, ElementsAre(3)));
}

// Layer c uses entry c % 3 of `rolling`; only entry 2 overlaps `fixed`.
TEST(Streams, WaitForAConflictInAnyLayer) {
  auto waitsOf = [](ScheduleEntry entry) {
    OneProgram one;
    const int rolling = one.buffer(0, 256, 3), fixed = one.buffer(512, 256);
    one.stage().schedule = {entry};
    one.add(kKernel, {}, {rolling}, 1);
    one.add(kTensor, {fixed}, {});
    return one.waits()[1];
  };
  EXPECT_THAT(waitsOf({0, 0, 0, 1, 2}), IsEmpty());
  EXPECT_THAT(waitsOf({0, 0, 0, 1, 3}), ElementsAre(0));
  EXPECT_THAT(waitsOf({0, 0, 4, -1, 2}), IsEmpty()); // layers 4 and 3
  EXPECT_THAT(waitsOf({0, 0, 6, -1, 2}), ElementsAre(0));
}

// One buffer has two slots and another three. Only their last slots overlap,
// and micro-batch 5 is the first to use both.
TEST(Streams, WaitForAConflictInAnyMicroBatch) {
  for (int microBatches : {5, 6}) {
    OneProgram one;
    const int two = one.buffer(256, 256, 1, 2),
              three = one.buffer(0, 256, 1, 3);
    const int apart = one.buffer(1024, 256);
    one.stage().buffers[static_cast<std::size_t>(two)].slotStride = 256;
    one.stage().schedule.clear();
    for (int m = 0; m < microBatches; ++m)
      if (m % 2 == 1) // `two` is at offset 512
        one.stage().schedule.push_back({0, m, 0, 1, 1});
    one.add(kKernel, {}, {two, apart});
    one.add(kTensor, {three}, {});
    EXPECT_EQ(one.waits()[1].empty(), microBatches == 5);
  }
}

// In random programs, the waits equal those of the brute-force reference.
TEST(Streams, AreOrderedByTheFewestWaits) {
  std::mt19937_64 random(11);
  auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(limit));
  };
  int waits = 0, shared = 0;
  for (int round = 0; round < 5000; ++round) {
    OneProgram one;
    const int buffers = 2 + below(8), roll = below(2);
    for (int b = 0; b < buffers; ++b)
      one.buffer(256 * below(16), 1 + below(600), 1 + roll * below(3),
                 1 + roll * below(3));
    for (Buffer &buffer : one.stage().buffers) {
      buffer.entryStride = buffer.entries > 1 ? 256 * (3 + below(2)) : 0;
      buffer.slotStride = buffer.slots > 1 ? 256 * below(14) : 0;
      buffer.arena = below(2);
    }
    one.stage().schedule.clear();
    for (int m = 0; m < 1 + below(4); ++m)
      one.stage().schedule.push_back({0, m, 3, 1 - 2 * below(2), 1 + below(3)});
    for (int i = 0; i < 2 + below(14); ++i) {
      const decltype(Instruction::what) what[] = {kKernel, kTensor, kData,
                                                  kSend};
      auto some = [&] {
        std::vector<int> list(random() % 3);
        for (int &number : list)
          number = below(buffers);
        return list;
      };
      one.add(what[below(4)], some(), some(), below(2));
    }
    one.waits();
    const Program &program = one.stage().programs[0];
    const Pairs meet = meetings(one.stage(), 0);
    const std::vector<std::vector<int>> least = leastWaits(program, meet);
    for (std::size_t i = 0; i < least.size(); ++i) {
      EXPECT_EQ(program.instructions[i].waits, least[i])
          << "round " << round << " instruction " << i;
      waits += static_cast<int>(least[i].size());
      for (std::size_t j = i + 1; j < least.size(); ++j)
        shared += meet[i][j] && !queued(program)[i][j] ? 1 : 0;
    }
  }
  EXPECT_GT(waits, 5000);
  EXPECT_GT(shared, 2 * waits);
}

// Returns whether two unordered instructions access the same memory, group or
// channel.
bool isLoose(const Stage &stage, int number) {
  const Program &program = stage.programs[static_cast<std::size_t>(number)];
  const Pairs meet = meetings(stage, number), order = ordered(program);
  auto calls = [](const Instruction &a, const Instruction &b) {
    const auto *group = std::get_if<Collective>(&a.what),
               *other = std::get_if<Collective>(&b.what);
    if (group && other)
      return group->group == other->group;
    const auto *message = std::get_if<Transfer>(&a.what),
               *next = std::get_if<Transfer>(&b.what);
    return message && next && message->sends == next->sends &&
           message->stage == next->stage && message->channel == next->channel;
  };
  for (std::size_t i = 0; i < meet.size(); ++i)
    for (std::size_t j = i + 1; j < meet.size(); ++j)
      if (!order[i][j] && (meet[i][j] || calls(program.instructions[i],
                                               program.instructions[j])))
        return true;
  return false;
}

std::string pointerOf(std::size_t s, std::size_t p, std::size_t i) {
  return "/stages/" + std::to_string(s) + "/programs/" + std::to_string(p) +
         "/instructions/" + std::to_string(i) +
         "/waits: must order this after ";
}

TEST(Streams, CheckReportsEveryRemovedWait) {
  int taken = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Plan plan = randomPlan(seed);
    writeStreamsAndWaits(plan);
    EXPECT_THAT(checkPlan(plan), IsEmpty()) << "seed " << seed;
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      for (std::size_t p = 0; p < plan.stages[s].programs.size(); ++p) {
        std::vector<Instruction> &list =
            plan.stages[s].programs[p].instructions;
        for (std::size_t i = 0; i < list.size(); ++i)
          for (std::size_t w = 0; w < list[i].waits.size(); ++w, ++taken) {
            const std::vector<int> was = list[i].waits;
            list[i].waits.erase(list[i].waits.begin() +
                                static_cast<std::ptrdiff_t>(w));
            EXPECT_THAT(
                checkPlan(plan),
                Contains(StartsWith(pointerOf(s, p, i) + "instruction " +
                                    std::to_string(was[w]) + " (")));
            list[i].waits = was;
          }
      }
  }
  EXPECT_GT(taken, 300);
}

// Moves each instruction to each other stream: the plan check must fail if and
// only if two conflicting instructions are then unordered.
TEST(Streams, CheckRejectsAStreamThatLeavesAConflict) {
  int refused = 0, taken = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Plan plan = randomPlan(seed);
    writeStreamsAndWaits(plan);
    plan.streams.emplace_back("another");
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      for (std::size_t p = 0; p < plan.stages[s].programs.size(); ++p)
        for (Instruction &one : plan.stages[s].programs[p].instructions) {
          const int was = one.stream;
          for (int other = 0; other < static_cast<int>(plan.streams.size());
               ++other) {
            one.stream = other;
            const bool loose = isLoose(plan.stages[s], static_cast<int>(p));
            EXPECT_EQ(!checkPlan(plan).empty(), loose)
                << "seed " << seed << ' ' << one.label << " on " << other;
            ++(loose ? refused : taken);
          }
          one.stream = was;
        }
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(taken, 200);
}

} // namespace
} // namespace mtplan

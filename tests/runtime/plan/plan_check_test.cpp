//===- plan_check_test.cpp - Faults of plans and their pointers -----------===//

#include <cmath>
#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tests/runtime/plan/pipeline_plan.h"

using namespace mtplan::runtime;
using nlohmann::ordered_json;
using testing::Contains;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

// Returns a plan of two stages, three micro-batches, and state that is sharded
// over two replicas.
const Plan &wholePlan() {
  static const Plan plan = PipelinePlan({.pp = 2,
                                         .dp = 2,
                                         .tp = 2,
                                         .layers = 2,
                                         .microBatches = 3,
                                         .chain = 2,
                                         .samples = 1,
                                         .positions = 2,
                                         .hidden = 4,
                                         .zero = true,
                                         .forwardsFirst = false,
                                         .type = ElementType::bf16})
                               .make();
  return plan;
}

// Describes a change of a plan: the member at `pointer` gets `value`, or is
// erased if `value` is null. The check must then find `fault`.
struct Break {
  const char *pointer;
  const char *value;
  const char *fault;
};

// Shows the pointer of a failing case.
void PrintTo(const Break &one, std::ostream *out) {
  *out << one.pointer << " = " << (one.value ? one.value : "(erased)");
}

std::vector<std::string> faultsOf(const Break &one) {
  ordered_json text = ordered_json::parse(planText(wholePlan()));
  ordered_json::json_pointer pointer(one.pointer);
  if (one.value) {
    text[pointer] = ordered_json::parse(one.value);
  } else {
    ordered_json &parent = text.at(pointer.parent_pointer());
    if (parent.is_array())
      parent.erase(std::stoul(pointer.back()));
    else
      parent.erase(pointer.back());
  }
  return checkPlan(parsePlan(text.dump()));
}

class BrokenPlan : public testing::TestWithParam<Break> {};

TEST_P(BrokenPlan, FaultHasItsPointer) {
  EXPECT_THAT(faultsOf(GetParam()), Contains(StartsWith(GetParam().fault)));
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, BrokenPlan,
    testing::Values(
        Break{"/ranks", "4",
              "/groups/0/communicators/2/0: refers to number 4 of 4 ranks"},
        Break{"/mesh/0/size", "4",
              "/ranks: is 8, but the axes of the mesh have 16 places"},
        Break{"/mesh/1/name", "\"pp\"",
              "/mesh/1/name: \"pp\" is the name of axis 0 as well"},
        Break{"/groups/1/name", "\"tp\"",
              "/groups/1/name: \"tp\" is the name of group 0 as well"},
        Break{"/groups/0/communicators", "[]",
              "/groups/0/communicators: has none"},
        Break{"/groups/0/communicators/0/1", "2",
              "/groups/0/communicators/1/0: rank 2 is in communicator 0 as "
              "well"},
        Break{"/groups/0/communicators/0", "[0]",
              "/groups/0/communicators/1: has 2 ranks; all of a group have as "
              "many as the first, 1"},
        Break{"/groups/0/communicators/0", nullptr,
              "/stages/0/programs/1/instructions/2/group: rank 0 calls group "
              "\"tp\", but is in none of its communicators"},
        Break{"/stages/0/ranks/3", "4",
              "/stages/1/ranks/0: rank 4 is in stage 0 as well"},
        Break{"/stages/0/ranks/3", nullptr,
              "/stages: rank 3 is in none of them (ranks in none: 1)"},
        Break{"/stages/0/ranks", "[1, 0, 2, 3]",
              "/stages/0/ranks/1: rank 0 comes after rank 1"},
        Break{"/global_batch", "7",
              "/global_batch: 7 samples cannot be divided evenly among 3 "
              "micro-batches"},
        Break{"/global_batch", "12",
              "/stages/0/programs/0/instructions/0/outputs/0/shape/0: 1 "
              "samples in each of 3 micro-batches are 6 over the axes that "
              "split them, but the global batch is 12"}));

INSTANTIATE_TEST_SUITE_P(
    Memory, BrokenPlan,
    testing::Values(
        Break{"/stages/0/buffers/1/offset", "256",
              "/stages/0/programs/6/instructions/0/inputs/0: reads buffer 1 "
              "(\"h.*.weight.sum\"), whose memory buffer 2 "
              "(\"h.*.weight.gradient\") has overwritten"},
        Break{"/stages/0/buffers/1/arena", "6",
              "/stages/0/buffers/1/arena: refers to number 6 of 6 arenas"},
        Break{"/stages/0/arenas/1/size", "2048",
              "/stages/0/buffers/11: ends at byte 2064 of arena 1 "
              "(optimizer), which has 2048 bytes"},
        // The buffer's last slot must fit, too.
        Break{"/stages/0/arenas/3/size", "1792",
              "/stages/0/buffers/13: ends at byte 1800 of arena 3 "
              "(activations), which has 1792 bytes"},
        Break{"/stages/0/arenas/5/class", "\"workspace\"",
              "/stages/0/arenas/5/class: workspace is the class of arena 4"},
        Break{"/stages/0/buffers/12/entry_stride", "0",
              "/stages/0/buffers/12: its entries or slots overlap each other"},
        Break{"/stages/0/buffers/12/slot_stride", "512",
              "/stages/0/buffers/12: its entries or slots overlap each other"},
        // Two micro-batches in flight share one slot.
        Break{"/stages/0/buffers/12/slots", "1",
              "/stages/0/programs/4/instructions/4/inputs/0: reads buffer 12 "
              "(\"carry\"), which has the value of micro-batch 1 in its 1 "
              "slots, in /stages/0/schedule/7 (micro-batch 0, copy 1)"},
        // Backward needs three values, but there are two entries.
        Break{"/stages/0/buffers/12/entries", "2",
              "/stages/0/programs/4/instructions/4/inputs/0: reads buffer 12 "
              "(\"carry\") as entry 0, which has entry 2 there"},
        Break{"/stages/0/buffers/14/entries", "1",
              "/stages/0/programs/4/instructions/3/outputs/0: overlaps input "
              "0; it needs bytes of its own"},
        // A program's workspace overlaps a value that one program writes and
        // another reads.
        Break{"/stages/0/buffers/17/offset", "0",
              "/stages/0/programs/4/instructions/3/inputs/0: reads buffer 14 "
              "(\"carry.grad\"), whose memory buffer 17 (\"h.*.dx0\") has "
              "overwritten"},
        Break{"/stages/0/buffers/16/offset", "512",
              "/stages/0/programs/1/instructions/1/outputs/0: overlaps input "
              "0; it needs bytes of its own"},
        Break{"/stages/0/programs/4/instructions/5/settings/first_term", "1",
              "/stages/0/programs/4/instructions/5/outputs/0: reads buffer 1 "
              "(\"h.*.weight.sum\"), which nothing has written"},
        Break{"/stages/0/programs/1/instructions/1/inputs/0/shape", "[1, 2, 2]",
              "/stages/0/programs/1/instructions/1/inputs/0: reads buffer 15 "
              "(\"h.*0\") as 4 elements of bf16, written as 8 of bf16"},
        Break{"/stages/0/programs/1/instructions/1/inputs/0/type", "\"f16\"",
              "/stages/0/programs/1/instructions/1/inputs/0: reads buffer 15 "
              "(\"h.*0\") as 8 elements of f16, written as 8 of bf16"},
        Break{"/stages/0/programs/1/instructions/0/outputs/0/type", "\"f32\"",
              "/stages/0/programs/1/instructions/0/outputs/0/shape: [1, 2, 4] "
              "of f32 takes 32 bytes, but buffer 15 (\"h.*0\") has pieces of "
              "16"},
        Break{"/stages/0/programs/4/instructions/3/outputs/0/entry_step", "-1",
              "/stages/0/programs/4/instructions/3/outputs/0/entry_step: "
              "reaches entry -1; entries start at 0"},
        // Backward accumulates only the gradient of the first layer.
        Break{"/stages/0/programs/4/instructions/5/outputs/0/entry_step", "0",
              "/stages/0/programs/6/instructions/0/inputs/0: reads buffer 1 "
              "(\"h.*.weight.sum\"), which nothing has written, in "
              "/stages/0/reduce/0 (micro-batch 0, copy 1)"},
        // All layers begin the same accumulator.
        Break{"/stages/0/programs/4/instructions/5/outputs/0/entry_step", "0",
              "/stages/0/programs/4/instructions/5/outputs/0: begins buffer 1 "
              "(\"h.*.weight.sum\") anew, to which was added before"},
        Break{"/stages/0/programs/4/instructions/5/settings/first_term", "3",
              "/stages/0/programs/4/instructions/5/settings/first_term: refers "
              "to number 3 of 3 micro-batches"},
        Break{"/stages/0/programs/4/instructions/5/settings",
              "{\"first_term_copy\": 0}",
              "/stages/0/programs/4/instructions/5/settings/first_term_copy: "
              "needs first_term"},
        Break{
            "/stages/0/programs/4/instructions/5/settings",
            "{\"first_term\": 0.5}",
            "/stages/0/programs/4/instructions/5/settings/first_term: must be "
            "an integer"},
        Break{
            "/stages/0/programs/1/instructions/2/waits", "[]",
            "/stages/0/programs/1/instructions/2/waits: must order this after "
            "instruction 1 (\"h.*\"), which writes the same bytes on stream 0"},
        Break{"/stages/0/programs/1/instructions/2/waits", "[2]",
              "/stages/0/programs/1/instructions/2/waits/0: refers to number "
              "2 of 2 instructions before it"},
        Break{"/stages/0/programs/1/instructions/2/stream", "9",
              "/stages/0/programs/1/instructions/2/stream: refers to number 9 "
              "of 4 streams"}));

INSTANTIATE_TEST_SUITE_P(
    Parameters, BrokenPlan,
    testing::Values(
        Break{"/stages/0/parameters/0/alike", "[1]",
              "/stages/0/parameters/0/alike: has axis 1 (\"dp\"), which splits "
              "the gradient"},
        Break{"/stages/0/parameters/0/gradient/split", "[[], [2]]",
              "/stages/0/parameters/0/alike: needs axis 1 (\"dp\")"},
        Break{"/stages/0/parameters/0/gradient/split", "[[], [2]]",
              "/stages/0/parameters/0/gradient/shape: [2, 2] is [2, 4] over "
              "the axes that split it, but the value is [4, 4]"},
        Break{"/stages/0/parameters/0/master/split", "[[2], [1]]",
              "/stages/0/parameters/0/master/split: must be that of the "
              "gradient"},
        Break{"/stages/0/parameters/0/value/split", "[[], [1]]",
              "/stages/0/parameters/0/gradient/split: dimension 1 must be "
              "split by axis 1 (\"dp\"), as the value's"},
        Break{"/stages/0/parameters/0/value/split", "[[2], [2]]",
              "/stages/0/parameters/0/value/split/1: splits by axis 2 a second "
              "time"},
        Break{"/stages/0/parameters/0/first_moment/shape", "[1, 2]",
              "/stages/0/parameters/0/first_moment/shape: must be [2, 2] as "
              "the gradient's, got [1, 2]"},
        Break{"/stages/0/parameters/0/second_moment/type", "\"i32\"",
              "/stages/0/parameters/0/second_moment/type: must be a "
              "floating-point type, got i32"},
        Break{"/stages/0/parameters/0/gradient/type", "\"bf16\"",
              "/stages/0/parameters/0/gradient: is 4 elements of bf16, but is "
              "written as 4 of f32"},
        Break{"/stages/0/parameters/0/copies", "3",
              "/stages/0/parameters/0/value/entry_step: copy 2 is in entry 2, "
              "but buffer 0 (\"h.*.weight\") has 2"},
        Break{"/stages/0/parameters/0/value/entry_step", nullptr,
              "/stages/0/parameters/0/value/entry_step: copy 1 is in entry 0 "
              "of buffer 0 (\"h.*.weight\"), which "
              "/stages/0/parameters/0/value has"},
        Break{"/stages/0/parameters/0/second_moment/buffer", "4",
              "/stages/0/parameters/0/second_moment/buffer: copy 0 is in entry "
              "0 of buffer 4 (\"h.*.weight.first\"), which "
              "/stages/0/parameters/0/first_moment has"},
        Break{"/stages/0/parameters/0/value/buffer", "1",
              "/stages/0/parameters/0/value/buffer: buffer 1 "
              "(\"h.*.weight.sum\") is of class gradients; it must be "
              "parameters"},
        Break{"/stages/0/parameters/0/label", "\"h.weight\"",
              "/stages/0/parameters/0/label: \"h.weight\" stands for 2 copies, "
              "but has no *"},
        Break{"/stages/0/parameters/0/unpadded", "[4]",
              "/stages/0/parameters/0/unpadded: has 1 extents, but the value "
              "has 2 dimensions"},
        // Each rank has a [4][2] shard of the value, which is [4][4].
        Break{"/stages/0/parameters/0/unpadded", "[3, 5]",
              "/stages/0/parameters/0/unpadded/1: must be from 1 to 4, the "
              "value's extent, got 5"},
        Break{"/stages/0/parameters/0/unpadded", "[5, 4]",
              "/stages/0/parameters/0/unpadded/0: must be from 1 to 4, the "
              "value's extent, got 5"},
        Break{"/stages/1/parameters/1/counted_elsewhere", "false",
              "/stages/1/parameters/1/counted_elsewhere: must be true: stage 0 "
              "has \"wte.weight\", too"},
        Break{"/stages/0/parameters/1/counted_elsewhere", "true",
              "/stages/0/parameters/1/counted_elsewhere: must be false: no "
              "earlier stage has \"wte.weight\""},
        Break{"/stages/1/parameters/0/first_copy", "1",
              "/stages/1/parameters/0/counted_elsewhere: must be true: stage 0 "
              "has \"h.*.weight\", too"},
        Break{"/stages/0/parameters/1/label", "\"h.*.weight\"",
              "/stages/0/parameters/1/label: \"h.*.weight\" is parameter 0 as "
              "well, with the same copies"},
        Break{"/stages/0/apply/0/3", "1",
              "/stages/0/parameters/0/value: is not written by /apply, for "
              "copy 1 of 2"},
        Break{"/stages/0/programs/7/instructions/0/inputs/0/entry_step", "0",
              "/stages/0/parameters/0/gradient: is not read by /apply, for "
              "copy 1 of 2"},
        Break{"/stages/0/reduce/0/3", "1",
              "/stages/0/parameters/0/gradient: is never written, for copy 1 "
              "of 2"}));

INSTANTIATE_TEST_SUITE_P(
    Calls, BrokenPlan,
    testing::Values(
        Break{"/stages/0/programs/7/instructions/1/outputs/0/shape", "[2, 4]",
              "/stages/0/programs/7/instructions/1/outputs/0/shape: must be "
              "[4, 2], as all_gather over 2 ranks makes of [2, 2], got [2, 4]"},
        Break{"/stages/0/programs/7/instructions/1/gathered", "1",
              "/stages/0/programs/7/instructions/1/outputs/0/shape: must be "
              "[2, 4], as all_gather over 2 ranks makes of [2, 2], got [4, 2]"},
        Break{"/stages/0/programs/7/instructions/1/gathered", "2",
              "/stages/0/programs/7/instructions/1/gathered: refers to number "
              "2 of 2 dimensions"},
        Break{"/stages/0/programs/6/instructions/0/scattered", "1",
              "/stages/0/programs/6/instructions/0/outputs/0/shape: must be "
              "[4, 1], as reduce_scatter over 2 ranks makes of [4, 2], got "
              "[2, 2]"},
        Break{"/stages/0/programs/6/instructions/0/inputs/0/shape", "[3, 2]",
              "/stages/0/programs/6/instructions/0/inputs/0/shape/0: 3 "
              "elements cannot be divided evenly among the 2 ranks of group "
              "\"dp\""},
        Break{"/stages/0/programs/6/instructions/0/group", "3",
              "/stages/0/programs/6/instructions/0/group: refers to number 3 "
              "of 3 groups"},
        Break{"/stages/0/programs/1/instructions/2/outputs", "[]",
              "/stages/0/programs/1/instructions/2: has 1 input and 0 outputs; "
              "it takes 1 input and 1 output"},
        Break{"/stages/0/programs/1/instructions/2/outputs/0/type", "\"f16\"",
              "/stages/0/programs/1/instructions/2/outputs/0/type: must be "
              "bf16 as the input, got f16"},
        Break{"/stages/0/programs/1/instructions/3/outputs", "[]",
              "/stages/0/programs/1/instructions/3: computes nothing"},
        Break{"/stages/0/programs/2/instructions/0/send_to", "0",
              "/stages/0/programs/2/instructions/0/send_to: is stage 0 itself"},
        Break{"/stages/0/programs/0/instructions/0/dims", "[\"batch\"]",
              "/stages/0/programs/0/instructions/0/dims: names 1 dimension, "
              "but the output has 2"},
        Break{"/stages/0/programs/0/instructions/0/limit", "0",
              "/stages/0/programs/0/instructions/0/limit: is 0, but i32 is "
              "drawn below a limit"},
        Break{"/stages/1/programs/10/instructions/0/inputs/0/shape", "[2]",
              "/stages/1/programs/10/instructions/0/inputs/0/shape: must be "
              "one number, got [2]"},
        Break{"/stages/0/schedule/0/1", "3",
              "/stages/0/schedule/0/1: refers to number 3 of 3 micro-batches"},
        Break{"/stages/0/reduce/0/1", "1",
              "/stages/0/reduce/0/1: must be 0, as it runs once for all "
              "micro-batches, got 1"},
        Break{"/stages/0/schedule/7", "[4, 0, 0, 2, -1]",
              "/stages/0/schedule/7/3: goes from copy 0 to copy -1"},
        Break{"/stages/0/schedule/9", nullptr,
              "/stages/0/schedule: program 0 (\"in.forward\") runs for 2 of 3 "
              "micro-batches; number 2 is missing"},
        Break{"/stages/0/schedule/1", "[1, 0]",
              "/stages/0/schedule: program 1 (\"h.forward\") runs 2 copies for "
              "micro-batch 1 and 1 copies, or others, for micro-batch 0"},
        Break{"/stages/0/schedule/1", "[1, 0, 1, 2]",
              "/stages/0/schedule: program 1 (\"h.forward\") runs 2 copies for "
              "micro-batch 1 and 2 copies, or others, for micro-batch 0"},
        Break{"/stages/0/apply/1", nullptr,
              "/stages/0/programs/9: \"apply wte.weight\" is never run"}));

INSTANTIATE_TEST_SUITE_P(
    Messages, BrokenPlan,
    testing::Values(
        Break{"/stages/0/programs/2/instructions/0/channel", "7",
              "/stages/0/programs/2/instructions/0: channel 7 from stage 0 to "
              "stage 1 sends 3 messages a step and receives 0"},
        Break{"/stages/1/programs/0/instructions/0/label", "\"other\"",
              "/stages/1/programs/0/instructions/0: message 0 of channel 1 "
              "from stage 0 to stage 1 is \"carried\", [1, 2, 4] of bf16, of "
              "micro-batch 0, but is received as \"other\", [1, 2, 4] of bf16, "
              "of micro-batch 0"},
        Break{"/stages/1/programs/0/instructions/0/outputs/0/shape",
              "[1, 4, 2]",
              "/stages/1/programs/0/instructions/0: message 0 of channel 1"},
        Break{"/stages/1/programs/8/instructions/0/reduction", "\"max\"",
              "/stages/1/programs/8/instructions/0: call 0 of group \"pp of "
              "the tied\" is all_reduce of \"wte.weight\", [4, 2] of f32, max, "
              "but stage 0 calls all_reduce of \"wte.weight\", [4, 2] of f32, "
              "sum"},
        Break{"/stages/1/programs/8/instructions/0", nullptr,
              "/stages/0/programs/8/instructions/0: group \"pp of the tied\" "
              "is called 1 times a step by stage 0 and 0 times by stage 1"}));

INSTANTIATE_TEST_SUITE_P(
    Batches, BrokenPlan,
    testing::Values(
        Break{"/stages/0/programs/1/batches", R"([{"instructions": [0]}])",
              "/stages/0/programs/1/batches/0: has 1 instructions, needs at "
              "least 2"},
        Break{"/stages/0/programs/1/batches", R"([{"instructions": [0, 4]}])",
              "/stages/0/programs/1/batches/0: needs ascending instructions of "
              "the program, which has 4, got 4 after 0"},
        Break{"/stages/0/programs/1/batches", R"([{"instructions": [0, 1]}])",
              "/stages/0/programs/1/batches/0: has instruction 1, which needs "
              "what comes after the first"}));

TEST(PlanCheck, ValidPlanHasNoFaults) {
  EXPECT_THAT(checkPlan(wholePlan()), IsEmpty());
  EXPECT_THAT(checkPlan(twoReplicas()), IsEmpty());
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    EXPECT_THAT(checkPlan(randomPlan(seed)), IsEmpty()) << "seed " << seed;
}

TEST(PlanCheck, ReportsAllFaults) {
  Plan plan = wholePlan();
  plan.stages[0].programs[1].instructions[2].waits = {};
  std::get<KernelCall>(plan.stages[1].programs[4].instructions.back().what)
      .settings.clear();
  plan.stages[1].parameters[0].label = "h";
  std::vector<std::string> faults = checkPlan(plan);
  EXPECT_EQ(faults.size(), 3U) << testing::PrintToString(faults);
}

// A parameter needs no master weight if the rank's value has all elements that
// the rank updates.
TEST(PlanCheck, WeightIsMasterOfItsShards) {
  const char *missing = "/stages/0/parameters/0/master: is missing";
  Plan plan = twoReplicas();
  Parameter &weight = plan.stages[0].parameters[0];
  weight.gradient.split = {{}, {0}};
  EXPECT_THAT(checkPlan(plan), testing::Not(Contains(StartsWith(missing))));
  weight.value.split = {{0}, {}};
  EXPECT_THAT(checkPlan(plan), Contains(StartsWith(missing)));
}

// A stream that overwrites a value must wait for its readers on other streams.
TEST(PlanCheck, WritersWaitForReaders) {
  Plan plan = twoReplicas();
  Program &backward = plan.stages[0].programs[1];
  Instruction clear = kernelCall("clear", "zeros", {}, {},
                                 {backward.instructions[0].inputs[0]});
  clear.stream = 1;
  backward.instructions.push_back(clear);
  EXPECT_THAT(checkPlan(plan),
              testing::ElementsAre(
                  StartsWith("/stages/0/programs/1/instructions/2/waits: must "
                             "order this after instruction 0 (\"fc.dw\"), "
                             "which reads the same bytes on stream 0")));
  // Instruction 1 follows instruction 0 on its stream.
  backward.instructions[2].waits = {1};
  EXPECT_THAT(checkPlan(plan), IsEmpty());
  // The third stream waits for the second, and the second waits for the first.
  plan.streams.emplace_back("third");
  clear.waits = {2};
  clear.stream = 2;
  backward.instructions.push_back(clear);
  EXPECT_THAT(checkPlan(plan), IsEmpty());
}

TEST(PlanCheck, AnEinsumThatAccumulatesReadsItsSum) {
  Plan plan = wholePlan();
  auto &list = plan.stages[0].programs[4].instructions;
  Instruction &einsum = list[4];
  auto &settings = std::get<KernelCall>(einsum.what).settings;
  settings = {{"then", std::string("accumulate")},
              {"first_term", std::int64_t{0}}};
  einsum.outputs.push_back(list[5].outputs[0]);
  list.erase(list.begin() + 5);
  EXPECT_THAT(checkPlan(plan), IsEmpty());
  const std::string where = "/stages/0/programs/4/instructions/4/outputs/1: ";
  const Tensor own = std::exchange(einsum.outputs[0], einsum.outputs[1]);
  EXPECT_THAT(checkPlan(plan),
              Contains(StartsWith(where + "overlaps output 0")));
  einsum.outputs[0] = own;
  settings.back().value = std::int64_t{1};
  EXPECT_THAT(
      checkPlan(plan),
      Contains(StartsWith(where + "reads buffer 1 (\"h.*.weight.sum\"), "
                                  "which nothing has written")));
}

// A plan in memory may have settings that a file cannot have.
TEST(PlanCheck, ReportsSettingsThatNoFileCanHave) {
  auto faults = [](std::vector<Setting> settings) {
    Plan plan = wholePlan();
    std::get<KernelCall>(plan.stages[0].programs[1].instructions[0].what)
        .settings = std::move(settings);
    return checkPlan(plan);
  };
  const std::string where = "/stages/0/programs/1/instructions/0/settings/";
  EXPECT_THAT(faults({{"eps", std::nan("")}}),
              Contains(StartsWith(where + "eps: must be a finite number")));
  EXPECT_THAT(faults({{"a", 1.0}, {"a", 2.0}}),
              Contains(StartsWith(where + "a: is given twice")));
  EXPECT_THAT(faults({{"axis", std::int64_t{3}}}),
              Contains(StartsWith(where + "axis: refers to number 3 of 3 ")));
  EXPECT_THAT(faults({{"axis", std::int64_t{2}}}), IsEmpty());
  EXPECT_THAT(
      faults({{"first_term", std::int64_t{0}}}),
      testing::ElementsAre(
          where +
          "first_term: is set, but the instruction does not accumulate"));
}

// The reader rejects these numbers in files. A plan in memory may have them.
TEST(PlanCheck, ReportsNumbersOutOfRange) {
  Plan plan = wholePlan();
  plan.version = 1;
  Stage &stage = plan.stages[0];
  stage.buffers[0].offset = 100;
  stage.buffers[1].entries = 0;
  stage.buffers[2].size = std::numeric_limits<std::int64_t>::max();
  stage.programs[0].instructions[0].outputs[0].entry = -1;
  stage.programs[1].instructions[0].inputs[0].shape = {1 << 30, 1 << 30};
  stage.schedule[0].count = 0;
  const std::vector<std::string> faults = checkPlan(plan);
  for (const char *fault :
       {"/version: is 1, but this program runs version 7",
        "/stages/0/buffers/0/offset: must be a multiple of 256 bytes, got 100",
        "/stages/0/buffers/1/entries: must be a whole number from 1",
        "/stages/0/buffers/2/size: must be a whole number from 1 to",
        "/stages/0/programs/0/instructions/0/outputs/0/entry: must be",
        "/stages/0/programs/1/instructions/0/inputs/0/shape: has more than",
        "/stages/0/schedule/0/3: must be a whole number from 1"})
    EXPECT_THAT(faults, Contains(StartsWith(fault)));
}

} // namespace

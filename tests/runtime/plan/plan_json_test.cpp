//===- plan_json_test.cpp - Plans as text, both directions ----------------===//

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_json.h"
#include "tests/runtime/plan/two_replicas.h"

using namespace mtplan::runtime;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

namespace {

// Returns the first block of JSON in docs/executable-plan.md.
std::string exampleInDocs() {
  std::ifstream file(MTPLAN_SOURCE_DIR "/docs/executable-plan.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string page = text.str(), fence = "```json\n";
  std::size_t start = page.find(fence);
  if (start == std::string::npos)
    return "no example";
  start += fence.size();
  return page.substr(start, page.find("```", start) - start);
}

std::string faultOf(const std::string &text) {
  try {
    (void)parsePlan(text);
  } catch (const PlanError &error) {
    return error.what();
  }
  return "no fault";
}

// Returns `text` with the first `from` replaced by `to`.
std::string with(std::string text, const std::string &from,
                 const std::string &to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Returns a plan in which every member of every kind has a value of its own.
// The plan is not valid, but the reader does not check that.
Plan everyMember() {
  Tensor tensor{.buffer = 11,
                .entry = 12,
                .entryStep = -13,
                .type = ElementType::bf16,
                .shape = {14, 15},
                .split = {{16, 17}, {}}};
  auto typed = [&](ElementType type) {
    Tensor made = tensorAt(1, {}, type);
    made.entry = static_cast<int>(type);
    return made;
  };
  Program program{"a \"name\"\n", {}};
  auto add = [&](decltype(Instruction::what) what) {
    program.instructions.push_back({.label = "op",
                                    .what = std::move(what),
                                    .inputs = {},
                                    .outputs = {},
                                    .stream = 2,
                                    .waits = {}});
  };
  add(KernelCall{"k",
                 {{"whole", std::int64_t{1}},
                  {"point", 1.0},
                  {"large", 1e300},
                  {"least", std::numeric_limits<std::int64_t>::min()},
                  {"a/b", "text"}}});
  program.instructions.back().inputs = {tensor, typed(ElementType::f64)};
  program.instructions.back().outputs = {typed(ElementType::i32)};
  program.instructions.back().waits = {4, 5};
  add(Collective{CollectiveKind::allReduce, 1, Reduction::max});
  add(Collective{CollectiveKind::allGather, 2, Reduction::sum, 3});
  add(Collective{CollectiveKind::reduceScatter, 4, Reduction::max, 0, 5});
  add(Collective{CollectiveKind::allToAll, 6, Reduction::sum, 7, 8});
  add(Transfer{true, 9, 10});
  add(Transfer{false, 11, 12});
  add(Input{"ids", {"batch", "sequence", "other"}, 13});
  add(Report{"loss"});
  program.batches = {{{20, 21}, false}, {{22}, true}};

  Stage stage;
  stage.ranks = {0, 3};
  stage.arenas = {{MemoryClass::parameters, 1}, {MemoryClass::optimizer, 2},
                  {MemoryClass::gradients, 3},  {MemoryClass::activations, 4},
                  {MemoryClass::workspace, 5},  {MemoryClass::host, 6}};
  stage.buffers = {{"b", 1, 256, 2, 3, 512, 4, 768}, {"c", 0, 0, 1}};
  stage.parameters = {{"p.*",
                       "residual",
                       1,
                       2,
                       typed(ElementType::bf16),
                       typed(ElementType::f32),
                       typed(ElementType::f64),
                       typed(ElementType::f16),
                       typed(ElementType::i32),
                       std::vector<int>{0, 1},
                       true,
                       {}},
                      {"q",
                       "ones",
                       0,
                       1,
                       tensor,
                       tensor,
                       std::nullopt,
                       tensor,
                       tensor,
                       std::vector<int>{},
                       false,
                       {18, 19}}};
  stage.programs = {program, {"empty", {}}};
  stage.schedule = {{0, 1, 2, -1, 3}, {0, 1, 2, 1, 3}, {0, 1, 2, 1, 1},
                    {0, 1, 0, 1, 1},  {0, 1, 0, 1, 2}, {0, 0, 0, 1, 1}};
  stage.reduce = {{4, 0, 0, 1, 1}};
  stage.apply = {{5, 0, 0, 1, 1}};

  Plan plan;
  plan.model = "m";
  plan.ranks = 4;
  plan.mesh = {{"dp", 2}, {"tp", 2}};
  plan.groups = {{"tp", {{0, 1}, {2, 3}}}, {"none", {}}};
  plan.streams = {"compute", "tensor"};
  plan.microBatches = 5;
  plan.globalBatch = 6;
  plan.sequence = 7;
  plan.layers = 8;
  plan.stages = {stage, {}};
  return plan;
}

const char *const kEveryMember =
    R"json({"version": 7,
"model": "m",
"ranks": 4,
"mesh": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}],
"groups": [
{"name": "tp", "communicators": [[0, 1], [2, 3]]},
{"name": "none", "communicators": []}],
"streams": ["compute", "tensor"],
"micro_batches": 5,
"global_batch": 6,
"sequence": 7,
"layers": 8,
"stages": [
{"ranks": [0, 3],
"arenas": [
{"class": "parameters", "size": 1},
{"class": "optimizer", "size": 2},
{"class": "gradients", "size": 3},
{"class": "activations", "size": 4},
{"class": "workspace", "size": 5},
{"class": "host", "size": 6}],
"buffers": [
{"name": "b", "arena": 1, "offset": 256, "size": 2, "entries": 3, "entry_stride": 512, "slots": 4, "slot_stride": 768},
{"name": "c", "arena": 0, "offset": 0, "size": 1}],
"parameters": [
{"label": "p.*", "init": "residual", "first_copy": 1, "copies": 2, "value": {"buffer": 1, "entry": 3, "type": "bf16", "shape": []}, "gradient": {"buffer": 1, "entry": 1, "type": "f32", "shape": []}, "master": {"buffer": 1, "type": "f64", "shape": []}, "first_moment": {"buffer": 1, "entry": 2, "type": "f16", "shape": []}, "second_moment": {"buffer": 1, "entry": 4, "type": "i32", "shape": []}, "alike": [0, 1], "counted_elsewhere": true},
{"label": "q", "init": "ones", "value": {"buffer": 11, "entry": 12, "entry_step": -13, "type": "bf16", "shape": [14, 15], "split": [[16, 17], []]}, "gradient": {"buffer": 11, "entry": 12, "entry_step": -13, "type": "bf16", "shape": [14, 15], "split": [[16, 17], []]}, "first_moment": {"buffer": 11, "entry": 12, "entry_step": -13, "type": "bf16", "shape": [14, 15], "split": [[16, 17], []]}, "second_moment": {"buffer": 11, "entry": 12, "entry_step": -13, "type": "bf16", "shape": [14, 15], "split": [[16, 17], []]}, "unpadded": [18, 19]}],
"programs": [
{"name": "a \"name\"\n", "instructions": [
{"label": "op", "kernel": "k", "settings": {"whole": 1, "point": 1.0, "large": 1e+300, "least": -9223372036854775808, "a/b": "text"}, "inputs": [{"buffer": 11, "entry": 12, "entry_step": -13, "type": "bf16", "shape": [14, 15], "split": [[16, 17], []]}, {"buffer": 1, "type": "f64", "shape": []}], "outputs": [{"buffer": 1, "entry": 4, "type": "i32", "shape": []}], "stream": 2, "waits": [4, 5]},
{"label": "op", "collective": "all_reduce", "group": 1, "reduction": "max", "stream": 2},
{"label": "op", "collective": "all_gather", "group": 2, "gathered": 3, "stream": 2},
{"label": "op", "collective": "reduce_scatter", "group": 4, "reduction": "max", "scattered": 5, "stream": 2},
{"label": "op", "collective": "all_to_all", "group": 6, "gathered": 7, "scattered": 8, "stream": 2},
{"label": "op", "send_to": 9, "channel": 10, "stream": 2},
{"label": "op", "receive_from": 11, "channel": 12, "stream": 2},
{"label": "op", "input": "ids", "dims": ["batch", "sequence", "other"], "limit": 13, "stream": 2},
{"label": "op", "report": "loss", "stream": 2}], "batches": [{"instructions": [20, 21]}, {"instructions": [22], "of_all_copies": true}]},
{"name": "empty", "instructions": []}],
"schedule": [[0,1,2,3,-1],[0,1,2,3],[0,1,2],[0,1],[0,1,0,2],[0,0]],
"reduce": [[4,0]],
"apply": [[5,0]]},
{"ranks": [],
"arenas": [],
"buffers": [],
"parameters": [],
"programs": [],
"schedule": [],
"reduce": [],
"apply": []}]}
)json";

TEST(PlanJson, ExampleOfTheDocsIsThisPlan) {
  EXPECT_EQ(planText(twoReplicas()), exampleInDocs());
  EXPECT_EQ(planText(parsePlan(exampleInDocs())), exampleInDocs());
}

TEST(PlanJson, EveryMemberIsWritten) {
  EXPECT_EQ(planText(everyMember()), kEveryMember);
}

// This test and the test before it show that each member is read from the same
// position to which it is written.
TEST(PlanJson, EveryMemberIsRead) {
  EXPECT_EQ(planText(parsePlan(kEveryMember)), kEveryMember);
}

TEST(PlanJson, SettingsKeepTheirTypes) {
  Plan read = parsePlan(kEveryMember);
  const auto &settings =
      std::get<KernelCall>(
          read.stages.at(0).programs.at(0).instructions.at(0).what)
          .settings;
  EXPECT_EQ(std::get<std::int64_t>(settings.at(0).value), 1);
  EXPECT_EQ(std::get<double>(settings.at(1).value), 1.0);
  EXPECT_EQ(std::get<double>(settings.at(2).value), 1e300);
  EXPECT_EQ(std::get<std::int64_t>(settings.at(3).value),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(std::get<std::string>(settings.at(4).value), "text");
}

TEST(PlanJson, BatchesAreOfTheirProgram) {
  const Plan read = parsePlan(kEveryMember);
  const std::vector<Program> &programs = read.stages.at(0).programs;
  ASSERT_THAT(programs.at(0).batches, SizeIs(2));
  EXPECT_THAT(programs[0].batches[0].instructions, ElementsAre(20, 21));
  EXPECT_FALSE(programs[0].batches[0].ofAllCopies);
  EXPECT_THAT(programs[0].batches[1].instructions, ElementsAre(22));
  EXPECT_TRUE(programs[0].batches[1].ofAllCopies);
  EXPECT_THAT(programs.at(1).batches, IsEmpty());
}

TEST(PlanJson, DoublesRoundTripToTheBit) {
  for (double value : {0.1, -0.0, 1e22, 3.0, 5e-324, 1.7976931348623157e308}) {
    Plan plan = twoReplicas();
    auto &what = plan.stages[0].programs[1].instructions[0].what;
    std::get<KernelCall>(what).settings = {{"value", value}};
    Plan read = parsePlan(planText(plan));
    const auto &call =
        std::get<KernelCall>(read.stages[0].programs[1].instructions[0].what);
    double back = std::get<double>(call.settings.at(0).value);
    EXPECT_EQ(back, value);
    EXPECT_EQ(std::signbit(back), std::signbit(value));
  }
}

TEST(PlanJson, RejectsNumbersThatJsonCannotHold) {
  auto faultOfSetting = [](Setting setting) -> std::string {
    Plan plan = twoReplicas();
    auto &what = plan.stages[0].programs[1].instructions[0].what;
    std::get<KernelCall>(what).settings = {std::move(setting)};
    try {
      (void)planText(plan);
    } catch (const PlanError &error) {
      return error.what();
    }
    return "no fault";
  };
  const std::string where = "/stages/0/programs/1/instructions/0/settings/";
  EXPECT_THAT(faultOfSetting({"a/b", std::nan("")}),
              StartsWith(where + "a~1b: must be a finite number, got nan"));
  EXPECT_THAT(faultOfSetting({"s", "\xff"}),
              StartsWith(where + "s: must be UTF-8"));
}

// Describes a change of the text, and the error that it causes. The message has
// the pointer, the value, and the valid values.
struct Fault {
  std::string from, to, said;
};

TEST(PlanJson, NamesThePointerOfAFault) {
  const std::vector<Fault> faults = {
      {R"("version": 7)", R"("version": 6)",
       "/version: is 6, but this program reads version 7"},
      {R"("version": 7,)", "", "/version: is missing"},
      {R"("ranks": 2)", R"("ranks": "2")",
       "/ranks: must be a whole number from 1 to 1048576, got \"2\""},
      {R"("ranks": 2)", R"("ranks": 2.0)", "/ranks: must be a whole number"},
      {R"("ranks": 2)", R"("ranks": 0)",
       "/ranks: must be a whole number from 1 to 1048576, got 0"},
      {R"("ranks": 2)", R"("ranks": 18446744073709551615)",
       "/ranks: must be a whole number"},
      {R"("ranks": 2)", R"("ranks": 1e999)", "number overflow"},
      {R"("ranks": 2)", R"("ranks": 2, "ranks": 2)",
       "/ranks: the key is given twice"},
      {R"("micro_batches")", R"("microbatches")",
       "/microbatches: unknown key; the nearest valid key is "
       "\"micro_batches\""},
      {R"("class": "gradients")", R"("class": "gradient")",
       "/stages/0/arenas/2/class: must be one of \"parameters\", \"optimizer\","
       " \"gradients\", \"activations\", \"workspace\", \"host\", got "
       "\"gradient\"; the nearest is \"gradients\""},
      {R"("slot_stride": 256)", R"("slot_stride": 255)",
       "/stages/0/buffers/4/slot_stride: must be a multiple of 256 bytes, got "
       "255; the next is 256"},
      {R"("shape": [6, 4])", R"("shape": [6, 0])",
       "/stages/0/parameters/0/value/shape/1: must be a whole number from 1 to "
       "1099511627776, got 0"},
      {R"("split": [[0], []])", R"("split": [0])",
       "/stages/0/programs/0/instructions/0/outputs/0/split/0: must be an "
       "array, got 0"},
      {R"("kernel": "einsum")", R"("kernels": "einsum")",
       "/stages/0/programs/0/instructions/1: does nothing: it needs one of "
       "\"kernel\", \"collective\", \"send_to\", \"receive_from\", \"input\", "
       "\"report\""},
      {R"("kernel": "einsum")", R"("kernel": "einsum", "report": "loss")",
       "/stages/0/programs/0/instructions/1: has both \"kernel\" and "
       "\"report\"; it does one thing"},
      {R"("reduction": "sum")", R"("reduction": "sum", "gathered": 0)",
       "/stages/0/programs/2/instructions/0/gathered: is not read by "
       "all_reduce; leave it out"},
      {R"("equation": "bi,bo->io")", R"("equation": [1])",
       "/stages/0/programs/1/instructions/0/settings/equation: must be a "
       "whole number, a number with a point, or a string, got an array"},
      {R"("decay": 1)", R"("decay": 18446744073709551615)",
       "/stages/0/programs/3/instructions/0/settings/decay: must be a whole "
       "number from -9223372036854775808 to 9223372036854775807, got "
       "18446744073709551615"},
      {R"("stream": 1}])", R"("stream": 1}], "batches": [[0, 1]])",
       "/stages/0/programs/2/batches/0: must be an object, got an array"},
      {R"("stream": 1}])", R"("stream": 1}], "batches": [{}])",
       "/stages/0/programs/2/batches/0/instructions: is missing"},
      {R"("stream": 1}])", R"("stream": 1}], "batches": [{"instruction": []}])",
       "/stages/0/programs/2/batches/0/instruction: unknown key; the nearest "
       "valid key is \"instructions\""},
      {R"("stream": 1}])",
       R"("stream": 1}], "batches": [{"instructions": [0, -1]}])",
       "/stages/0/programs/2/batches/0/instructions/1: must be a whole number "
       "from 0 to 2147483647, got -1"},
      {R"("stream": 1}])",
       R"("stream": 1}], "batches": [{"instructions": [], "of_all_copies": 1}])",
       "/stages/0/programs/2/batches/0/of_all_copies: must be true or false, "
       "got 1"},
      {R"("schedule": [[0,0])", R"("schedule": [[0])",
       "/stages/0/schedule/0: must have 2 to 5 numbers"},
      {R"("schedule": [[0,0])", R"("schedule": [[0,0,0,1,0])",
       "/stages/0/schedule/0/4: must be 1, or -1 in backward, got 0"},
      {R"("stages": [)", R"("stages": [3, )",
       "/stages/0: must be an object, got 3"}};
  const std::string text = planText(twoReplicas());
  for (const Fault &fault : faults)
    EXPECT_THAT(faultOf(with(text, fault.from, fault.to)),
                HasSubstr(fault.said))
        << fault.to;
}

TEST(PlanJson, SaysWhereTextIsNotJson) {
  EXPECT_THAT(faultOf(""), StartsWith("1:1: "));
  EXPECT_THAT(faultOf("{\"version\": 2,\n  x}"), StartsWith("2:3: "));
  EXPECT_THAT(faultOf("null"), StartsWith("must be an object, got null"));
  EXPECT_THAT(faultOf(R"({"model_type": "gpt2"})"), StartsWith("is no plan: "));
  EXPECT_THAT(faultOf(std::string(100'000, '[')),
              StartsWith("1:33: nested deeper than 32 levels"));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

class PlanFile : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "plan_file_" +
             testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directory(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string faultOfReading(const std::filesystem::path &path) {
    try {
      (void)readPlanFile(path);
    } catch (const PlanError &error) {
      return error.what();
    }
    return "no fault";
  }

  std::filesystem::path folder;
};

TEST_F(PlanFile, ReadsWhatItWrote) {
  std::filesystem::path path = folder / "plan.json";
  writePlanFile(path, everyMember());
  writePlanFile(path, twoReplicas()); // replaces the first
  EXPECT_EQ(planText(readPlanFile(path)), planText(twoReplicas()));
  // No temporary file is left.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(PlanFile, ReportsFilesThatCannotBeReadOrWritten) {
  std::filesystem::path missing = folder / "missing" / "plan.json";
  EXPECT_THAT(faultOfReading(missing),
              StartsWith(missing.string() +
                         ": cannot be opened: No such file or directory"));
  EXPECT_THAT(faultOfReading(folder),
              StartsWith(folder.string() + ": cannot be read: Is a directory"));
  try {
    writePlanFile(missing, twoReplicas());
    FAIL() << "wrote into a folder that is not there";
  } catch (const PlanError &error) {
    EXPECT_THAT(error.what(), StartsWith(missing.string() +
                                         ": cannot be written: No such file"));
  }
  std::ofstream(folder / "bad.json") << "{\"version\": 4}";
  EXPECT_THAT(faultOfReading(folder / "bad.json"),
              StartsWith((folder / "bad.json").string() + ": /version: is 4"));
}

// A write that fails leaves the old file unchanged.
TEST_F(PlanFile, KeepsTheOldFileUntilTheNewOneIsComplete) {
  std::filesystem::path path = folder / "plan.json";
  writePlanFile(path, twoReplicas());
  // A folder with the name of the temporary file makes the next write fail.
  std::filesystem::create_directory(folder / "plan.json.part");
  EXPECT_THROW(writePlanFile(path, everyMember()), PlanError);
  EXPECT_EQ(planText(readPlanFile(path)), planText(twoReplicas()));
}

} // namespace

//===- run_times_test.cpp - Measured and predicted times of a step --------===//

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/plan/plan_json.h"
#include "runtime/plan/plan_queries.h"
#include "tests/executable/run_process.h"
#include "tools/exchange/prediction.h"
#include "tools/run/run_command.h"
#include "tools/run/run_flags.h"

namespace mtplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Ran run(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(),
                   {"--data", kText, "--steps", "4", "--threads", "1"});
  return runHere(arguments);
}

/// Counts the instructions that a rank of a stage runs in a step.
std::size_t runsOf(const runtime::Stage &stage) {
  std::size_t count = 0;
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const runtime::ScheduleEntry &entry : *entries)
      count += static_cast<std::size_t>(entry.count) *
               stage.programs[static_cast<std::size_t>(entry.program)]
                   .instructions.size();
  return count;
}

/// Returns complete events, by process, in the order in which they started.
std::map<int, std::vector<json>> eventsOf(const std::string &file) {
  std::map<int, std::vector<json>> events;
  const json all = json::parse(contentOf(file), nullptr, false);
  EXPECT_TRUE(all.is_object()) << file;
  for (const json &event : all.value("traceEvents", json::array()))
    if (event["ph"] == "X")
      events[event["pid"].get<int>()].push_back(event);
  return events;
}

// Returns the name, category and arguments of each event, without times.
std::vector<std::string> wordsOf(const std::vector<json> &events) {
  std::vector<std::string> words;
  words.reserve(events.size());
  for (const json &event : events)
    words.push_back(event["name"].get<std::string>() + " " +
                    event["cat"].get<std::string>() + " " +
                    event["args"].dump());
  return words;
}

TEST(RunTimes, TraceHasEveryInstructionOfEveryRank) {
  TestFolder folder;
  for (const std::vector<std::string> &flags :
       std::vector<std::vector<std::string>>{
           {"--gpus", "4", "--dp", "2", "--tp", "2"},
           {"--gpus", "4", "--dp", "2", "--pp", "2", "--recompute", "full"}}) {
    SCOPED_TRACE(testing::PrintToString(flags));
    ASSERT_EQ(compileExample("tiny-gpt2", folder / "run", flags), "");
    const runtime::Plan plan = runtime::readPlanFile(folder / "run/plan.json");
    const std::string file = folder / "trace.json";
    const Ran ran = run({folder / "run", "--trace", file});
    ASSERT_EQ(ran.code, 0) << ran.err;
    auto events = eventsOf(file);
    ASSERT_EQ(events.size(), 4 + plan.stages.size());
    for (const runtime::Stage &stage : plan.stages)
      for (int rank : stage.ranks) {
        EXPECT_EQ(events[rank].size(), runsOf(stage));
        long long before = 0; // nanoseconds
        std::set<std::string> programs;
        for (const json &event : events[rank]) {
          const auto nanos = [&](const char *key) {
            return std::llround(1000.0 * event[key].get<double>());
          };
          EXPECT_GE(nanos("ts"), before);
          before = nanos("ts") + nanos("dur");
          EXPECT_EQ(event["args"]["step"], 4); // the last step
          programs.insert(event["args"]["program"].get<std::string>());
        }
        EXPECT_EQ(programs.size(), stage.programs.size());
      }
    // The trace also has every task of the simulated step.
    const tools::Prediction predicted =
        tools::parsePrediction(contentOf(folder / "run/predicted.json"));
    std::size_t tasks = 0;
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
      tasks += events[4 + static_cast<int>(stage)].size();
    EXPECT_EQ(tasks, predicted.tasks.size());
  }
}

TEST(RunTimes, ProcessesTraceWhatThreadsDo) {
  TestFolder folder;
  ASSERT_EQ(
      compileExample("tiny-gpt2", folder / "run", {"--gpus", "2", "--pp", "2"}),
      "");
  const std::vector<std::string> command =
      underMpi(2, {folder / "run", "--data", kText, "--steps", "4", "--trace",
                   folder / "processes.json", "--trace-step", "2"});
  if (command.empty())
    GTEST_SKIP() << "no mpirun, or built without MPI";
  const Ended ended = RunProcess(command).end();
  ASSERT_EQ(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("messages, waits"));
  ASSERT_EQ(run({folder / "run", "--trace", folder / "threads.json",
                 "--trace-step", "2"})
                .code,
            0);
  auto processes = eventsOf(folder / "processes.json"),
       threads = eventsOf(folder / "threads.json");
  ASSERT_EQ(processes.size(), 4U);
  for (int process = 0; process < 4; ++process)
    EXPECT_EQ(wordsOf(processes[process]), wordsOf(threads[process]));
}

TEST(RunTimes, TracingChangesNothing) {
  TestFolder folder;
  ASSERT_EQ(
      compileExample("tiny-gpt2", folder / "run", {"--gpus", "2", "--tp", "2"}),
      "");
  const auto lossesOf = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {folder / "run", "--metrics", folder / "log.jsonl"});
    EXPECT_EQ(run(more).code, 0);
    std::vector<std::string> lines;
    std::ifstream log(folder / "log.jsonl");
    for (std::string line; std::getline(log, line);)
      lines.push_back(line.substr(0, line.find(", \"skipped\"")));
    EXPECT_EQ(lines.size(), 4U);
    return lines;
  };
  EXPECT_EQ(lossesOf({}),
            lossesOf({"--trace", folder / "t.json", "--trace-step", "2"}));
}

TEST(RunTimes, ClassesAddUpToThePredictedStep) {
  TestFolder folder;
  for (const std::vector<std::string> &flags :
       std::vector<std::vector<std::string>>{
           {"--gpus", "1"},
           {"--gpus", "4", "--dp", "2", "--tp", "2", "--recompute", "full"},
           {"--gpus", "4", "--dp", "4", "--zero", "3"}}) {
    SCOPED_TRACE(testing::PrintToString(flags));
    ASSERT_EQ(compileExample("tiny-gpt2", folder / "run", flags), "");
    const tools::Prediction predicted =
        tools::parsePrediction(contentOf(folder / "run/predicted.json"));
    double sum = 0.0;
    std::set<std::string> names;
    for (const auto &[name, seconds] : predicted.classes) {
      sum += seconds;
      if (seconds > 0.0)
        names.insert(name);
    }
    EXPECT_NEAR(sum, predicted.step, 1e-9 * predicted.step);
    EXPECT_THAT(names,
                testing::IsSupersetOf({"products", "attention",
                                       "norms, pointwise", "optimizer"}));
    EXPECT_EQ(names.count("collectives dp"), flags.size() > 2 ? 1U : 0U);
  }
}

TEST(RunTimes, FlopsAreThoseOfAllRanks) {
  // The model runs on one rank and on two stages, one of which has the head.
  const auto flopsOf = [](const std::vector<std::string> &flags) {
    TestFolder folder;
    EXPECT_EQ(compileExample("tiny-gpt2", folder / "run", flags), "");
    EXPECT_EQ(run({folder / "run", "--metrics", folder / "log.jsonl"}).code, 0);
    std::ifstream log(folder / "log.jsonl");
    std::string line;
    std::getline(log, line);
    const json step = json::parse(line);
    EXPECT_GT(step["share_of_peak"].get<double>(), 0.0);
    return step["flops_per_rank"].get<double>() * step["seconds"].get<double>();
  };
  const double one = flopsOf({"--gpus", "1"});
  EXPECT_NEAR(flopsOf({"--gpus", "2", "--pp", "2"}), one / 2, 1e-6 * one);
  EXPECT_NEAR(flopsOf({"--gpus", "2", "--dp", "2"}), one / 2, 1e-6 * one);
}

TEST(RunTimes, TableHasMeasuredAndPredictedTimes) {
  TestFolder folder;
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "run",
                           {"--gpus", "4", "--dp", "2", "--tp", "2"}),
            "");
  const Ran with = run({folder / "run"});
  EXPECT_THAT(with.out, HasSubstr("a step, mean of 3 and all ranks"));
  EXPECT_THAT(with.out, HasSubstr("measured / predicted"));
  for (const char *name : {"products", "collectives tp", "collectives dp",
                           "gradient norm", "optimizer", "rest", "step"})
    EXPECT_THAT(with.out, HasSubstr(std::string("\n  ") + name + "  "));
  EXPECT_EQ(with.err, "");

  std::filesystem::remove(folder / "run/predicted.json");
  const Ran without = run({folder / "run"});
  EXPECT_THAT(without.out, HasSubstr("\n  products  "));
  EXPECT_THAT(without.out, Not(HasSubstr("predicted")));
  EXPECT_EQ(without.err, "");

  for (const auto &[text, words] : std::map<std::string, std::string>{
           {"[]", "no JSON object"},
           {"{\"version\": 9}", "version 9, 1 is known"},
           {"{\"version\": 1, \"step\": \"x\"}", "expected a number"},
           {"{\"version\": 1, \"step\": 1.0}", "no list \"classes\""},
           {"{\"version\": 1, \"step\": 1.0, \"classes\": [[1]]}",
            "a row of \"classes\" is not a list of 2"}}) {
    std::ofstream(folder / "run/predicted.json") << text;
    const Ran spoiled = run({folder / "run"});
    EXPECT_EQ(spoiled.code, 0);
    EXPECT_THAT(spoiled.err,
                testing::AllOf(HasSubstr("warning: "), HasSubstr(words)));
  }
}

TEST(RunTimes, EveryInstructionHasAClass) {
  using namespace runtime;
  EXPECT_EQ(classOfKernel("einsum"), "products");
  EXPECT_EQ(classOfKernel("attention_grad"), "attention");
  EXPECT_EQ(classOfKernel("adamw"), "optimizer");
  EXPECT_EQ(classOfKernel("accumulate"), "sums, copies");
  EXPECT_EQ(classOfKernel("layer_norm"), "norms, pointwise");
  EXPECT_EQ(classOfGroup("pp 0 3"), "collectives pp");
  EXPECT_EQ(classOfGroup("tp"), "collectives tp");
}

// In long steps, ranks compute for a long time between collectives, so the
// timeout of collectives grows with the predicted step. A timeout on the
// command line takes precedence.
TEST(RunTimes, TimeoutGrowsWithThePredictedStep) {
  TestFolder folder;
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "run", {"--gpus", "1"}), "");
  tools::RunFlags flags;
  flags.folder = folder / "run";
  EXPECT_EQ(tools::patienceOf(flags).count(), 8000);
  tools::Prediction prediction;
  prediction.step = 2.5;
  std::ofstream(folder / "run/predicted.json") << textOf(prediction);
  EXPECT_EQ(tools::patienceOf(flags).count(), 25000);
  flags.folder = folder / "run/plan.json";
  EXPECT_EQ(tools::patienceOf(flags).count(), 25000);
  flags.patience = 3.0;
  EXPECT_EQ(tools::patienceOf(flags).count(), 3000);
}

} // namespace
} // namespace mtplan

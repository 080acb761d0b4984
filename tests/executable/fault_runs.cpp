//===- fault_runs.cpp - Runs of a small model whose files fail ------------===//

#include "tests/executable/fault_runs.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/tools/command_testing.h"

namespace mtplan {

namespace fs = std::filesystem;

namespace {

constexpr const char *kModel = R"({
  "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
  "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16,
  "vocab_size": 257, "activation_function": "gelu_new",
  "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1,
  "layer_norm_epsilon": 1e-05, "initializer_range": 0.02
})";

// Returns a folder in memory if possible, because tests call fsync thousands of
// times. The folder keeps all that a process wrote before its death.
std::string quickFolder() {
  return fs::is_directory("/dev/shm") ? "/dev/shm"
                                      : fs::temp_directory_path().string();
}

std::string compileSmall(const std::string &model, const std::string &to,
                         const std::vector<std::string> &flags) {
  std::vector<std::string> arguments{
      model, "--hardware", "cpu", "--global-batch", "4", "--micro-batch",
      "2",   "-o",         to};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return tools::Ran(tools::plain(arguments)).err;
}

} // namespace

std::string whyNoFaults() {
  return std::string(MTPLAN_FAULT_SHIM).empty()
             ? "built with sanitizers, which need to be loaded first themselves"
             : "";
}

std::vector<std::string> withFaults(const FaultOrders &orders,
                                    const std::vector<std::string> &command) {
  std::vector<std::string> all{"env",
                               std::string("LD_PRELOAD=") + MTPLAN_FAULT_SHIM,
                               "MTPLAN_FAULT_UNDER=" + orders.under,
                               "MTPLAN_FAULT_DO=" + orders.action,
                               "MTPLAN_FAULT_AT=" + std::to_string(orders.at),
                               "MTPLAN_FAULT_LOG=" + orders.log,
                               "MTPLAN_FAULT_SINCE=" + orders.since};
  if (orders.rank >= 0)
    all.push_back("MTPLAN_FAULT_RANK=" + std::to_string(orders.rank));
  if (orders.reads)
    all.emplace_back("MTPLAN_FAULT_READS=yes");
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

Ended endOfAll(const std::vector<std::string> &command) {
  RunProcess run(command);
  Ended ended = run.end();
  EXPECT_TRUE(run.isEmptied());
  return ended;
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> differing(const std::string &one,
                                   const std::string &other) {
  std::set<std::string> all;
  for (const std::string &folder : {one, other}) {
    if (!fs::is_directory(folder))
      return {folder + " is not there"};
    for (const std::string &name : namesIn(folder))
      all.insert(name);
  }
  std::vector<std::string> found;
  for (const std::string &name : all) {
    const fs::path file = fs::path(one) / name, twin = fs::path(other) / name;
    if (!fs::exists(file) || !fs::exists(twin) ||
        contentOf(file) != contentOf(twin))
      found.push_back(name);
  }
  return found;
}

std::string stepFolder(int step) { return fmt::format("/step-{:08}", step); }

TestFolder *FaultRuns::folder = nullptr;
std::map<std::string, std::string> FaultRuns::references;

void FaultRuns::SetUpTestSuite() {
  folder = new TestFolder(quickFolder());
  const std::string model = *folder / "small.json";
  std::ofstream(model) << kModel;
  // The embedding is so large that two ranks write one half each.
  const std::string tall = *folder / "tall.json";
  std::string text = kModel;
  text.replace(text.find("257"), 3, "16500");
  std::ofstream(tall) << text;
  const std::map<std::string, std::vector<std::string>> plans = {
      {"one", {"--gpus", "1"}},
      {"two", {"--gpus", "2", "--tp", "2"}},
      {"four", {"--gpus", "4", "--dp", "2", "--tp", "2"}}};
  for (const auto &[name, flags] : plans)
    ASSERT_EQ(compileSmall(model, *folder / "plan-" + name, flags), "");
  ASSERT_EQ(compileSmall(tall, *folder / "plan-tall", plans.at("two")), "");
}

void FaultRuns::TearDownTestSuite() {
  references.clear();
  delete folder;
  folder = nullptr;
}

void FaultRuns::TearDown() {
  for (const std::string &name : namesIn(*folder / ""))
    if (!name.starts_with("plan-") && !name.starts_with("undisturbed-") &&
        !name.ends_with(".json"))
      fs::remove_all(*folder / name);
}

std::vector<std::string> FaultRuns::arguments(const std::string &plan,
                                              const std::string &checkpoints,
                                              std::vector<std::string> more) {
  for (const auto &[option, value] :
       {std::pair("--steps", "8"), std::pair("--save-every", "2"),
        std::pair("--data", kText.c_str())})
    if (std::ranges::find(more, option) == more.end())
      more.insert(more.end(), {option, value});
  std::vector<std::string> all{*folder / "plan-" + plan};
  more.insert(more.end(), {"--threads", "1", "--every", "1000", "--checkpoint",
                           checkpoints});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> FaultRuns::threads(const std::string &plan,
                                            const std::string &checkpoints,
                                            std::vector<std::string> more) {
  std::vector<std::string> all = arguments(plan, checkpoints, std::move(more));
  all.insert(all.begin(), MTPLAN_MTRUN);
  return all;
}

std::vector<std::string> FaultRuns::processes(int ranks,
                                              const std::string &plan,
                                              const std::string &checkpoints,
                                              std::vector<std::string> more,
                                              const std::string &grace) {
  std::vector<std::string> all =
      underMpi(ranks, arguments(plan, checkpoints, std::move(more)));
  if (all.empty())
    return all;
  if (!grace.empty())
    *(std::ranges::find(all, "odls_base_sigkill_timeout") + 1) = grace;
  // Open MPI leaves files behind when its launcher is killed, so the files go
  // to a folder of their own. The other options restrict Open MPI to one
  // machine.
  const std::string files = place("mpi");
  fs::create_directory(files);
  all.insert(all.begin(), {"env", "OMPI_MCA_orte_tmpdir_base=" + files,
                           "OMPI_MCA_btl_vader_backing_directory=" + files,
                           "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,vader"});
  return all;
}

std::vector<std::string> FaultRuns::endless(const std::string &plan,
                                            const std::string &checkpoints) {
  return {place("plan-" + plan),
          "--data",
          kText,
          "--threads",
          "1",
          "--steps",
          "10000000",
          "--every",
          "5",
          "--patience",
          "60",
          "--checkpoint",
          checkpoints,
          "--save-every",
          "10000000"};
}

Ended FaultRuns::endOfKilled(RunProcess &run, int rank) {
  EXPECT_TRUE(run.writes("step        5/")) << run.end().out;
  const pid_t process = run.processOf(rank);
  EXPECT_GT(process, 0);
  if (process > 0)
    kill(process, SIGKILL);
  return run.end();
}

void FaultRuns::expectSavedWhenToldToEnd(RunProcess &run, int by,
                                         void (RunProcess::*tells)(int) const) {
  ASSERT_TRUE(run.writes("step        5/")) << run.end().out;
  (run.*tells)(by);
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.out,
              testing::AllOf(testing::HasSubstr("checkpoint of step "),
                             testing::HasSubstr("told to end after step ")));
}

std::string FaultRuns::undisturbed(const std::string &plan) {
  std::string &made = references[plan];
  if (made.empty()) {
    made = *folder / "undisturbed-" + plan;
    const Ended ended =
        RunProcess(threads(plan, made,
                           {"--keep", "9", "--metrics", made + ".metrics"}))
            .end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    fs::rename(made + ".metrics", made + "/metrics");
  }
  return made;
}

std::vector<std::string> FaultRuns::callsOf(const std::string &plan,
                                            const std::string &checkpoints) {
  const std::string log = place("calls");
  fs::remove(log);
  const Ended ended = RunProcess(withFaults({checkpoints, "", 0, log},
                                            threads(plan, checkpoints)))
                          .end();
  EXPECT_EQ(ended.code, 0) << ended.out;
  return linesOf(log);
}

std::size_t FaultRuns::firstOf(const std::vector<std::string> &calls,
                               const std::string &what) {
  return static_cast<std::size_t>(
      std::ranges::find_if(calls,
                           [&](const std::string &call) {
                             return call.find(what) != std::string::npos;
                           }) -
      calls.begin());
}

} // namespace mtplan

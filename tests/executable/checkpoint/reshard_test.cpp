//===- reshard_test.cpp - Checkpoints resumed in another layout -----------===//
//
// Every layout of a model resumes from the checkpoint of every other layout.
// The state is equal to the bit, and the next ten losses differ only by
// rounding.
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/loader.h"
#include "runtime/checkpoint/saver.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/fault_runs.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

using testing::HasSubstr;

struct Layout {
  std::string name;
  std::vector<std::string> flags;
  /// Sets the size of the vocabulary with padding; 0: as in the example.
  int paddedVocabulary = 0;
};

struct Family {
  std::string model;
  std::vector<std::string> flags; ///< flags that all layouts have
  std::vector<Layout> layouts;
  double tolerance = 1e-4; ///< largest relative error of losses
};

void PrintTo(const Family &family, std::ostream *out) { *out << family.model; }

constexpr int kSaved = 5, kSteps = 15;
const std::string kAt = "/step-00000005", kEnd = "/step-00000015";

// Returns the losses of a JSON lines file, by step.
std::map<int, double> lossesIn(const std::string &file) {
  std::map<int, double> losses;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    losses[json["step"].get<int>()] = json["loss"].get<double>();
  }
  return losses;
}

// Loads a checkpoint and saves it unchanged.
void copyCheckpoint(const std::string &planFolder, const std::string &from,
                    const std::string &to) {
  using namespace runtime;
  const Plan plan = readPlanFile(planFolder + "/plan.json");
  runOnThreads(plan.ranks, {}, [&](World &world) {
    const std::unique_ptr<Backend> backend = makeCpuBackend(1);
    RankExecutor executor(plan, world, *backend);
    const std::optional<RunState> run =
        loadNewest(plan, world, executor, from, LoadWhat::everything,
                   [](const std::string &fault) { FAIL() << fault; });
    ASSERT_TRUE(run);
    Saver saver(plan, world, executor, {to, 2});
    saver.begin(*run);
    const Saved saved = saver.finish();
    EXPECT_EQ(saved.fault, "");
    EXPECT_EQ(saved.step, kSaved);
  });
}

class Reshard : public testing::TestWithParam<Family> {
protected:
  // Trains 15 steps and keeps the checkpoints of steps 5 and 15.
  void train(const Layout &layout) {
    std::vector<std::string> flags = GetParam().flags;
    flags.insert(flags.end(), layout.flags.begin(), layout.flags.end());
    const std::string model = padded(layout);
    ASSERT_EQ(compileExample(model, plan(layout), flags), "") << layout.name;
    const Ran ran = runHere(arguments(
        layout, {"--checkpoint", kept(layout), "--save-every", "5", "--keep",
                 "9", "--metrics", metrics(layout, layout)}));
    ASSERT_EQ(ran.code, 0) << layout.name << ": " << ran.err;
  }

  // Returns the name of the model, or of a written file if the layout pads the
  // vocabulary differently.
  std::string padded(const Layout &layout) {
    if (layout.paddedVocabulary == 0)
      return GetParam().model;
    std::string model = contentOf(tools::examplePath(GetParam().model));
    model.insert(model.rfind('}'), ", \"padded_vocab_size\": " +
                                       std::to_string(layout.paddedVocabulary));
    // The model is named after its file, so the file name is the same for any
    // padding.
    const std::string file = folder / ("padded-" + layout.name);
    std::filesystem::create_directories(file);
    std::ofstream(file + "/" + GetParam().model + ".json") << model;
    return file + "/" + GetParam().model + ".json";
  }

  Ran goOn(const Layout &from, const Layout &to,
           std::vector<std::string> more = {}) {
    std::filesystem::remove(metrics(from, to));
    more.insert(more.end(),
                {"--load", kept(from) + kAt, "--metrics", metrics(from, to)});
    return runHere(arguments(to, more));
  }

  std::vector<std::string> arguments(const Layout &layout,
                                     const std::vector<std::string> &more) {
    std::vector<std::string> all{plan(layout), "--data",  kText,
                                 "--steps",    "15",      "--warmup",
                                 "2",          "--every", "1000"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string plan(const Layout &layout) { return folder / layout.name; }
  std::string kept(const Layout &layout) {
    return folder / (layout.name + ".kept");
  }
  std::string metrics(const Layout &from, const Layout &to) {
    return folder / (from.name + "-" + to.name + ".jsonl");
  }

  TestFolder folder;
};

TEST_P(Reshard, EveryLayoutResumesFromEveryOther) {
  const std::vector<Layout> &layouts = GetParam().layouts;
  for (const Layout &layout : layouts)
    ASSERT_NO_FATAL_FAILURE(train(layout));
  for (const Layout &from : layouts) {
    const std::map<int, double> expected = lossesIn(metrics(from, from));
    ASSERT_EQ(expected.size(), std::size_t{kSteps}) << from.name;
    for (const Layout &to : layouts) {
      SCOPED_TRACE(from.name + " to " + to.name);
      const std::string copy = folder / "copy";
      copyCheckpoint(plan(to), kept(from) + kAt, copy);
      EXPECT_THAT(differing(kept(from) + kAt, copy + kAt), testing::IsEmpty());
      std::filesystem::remove_all(copy);
      if (&from == &to)
        continue;
      const Ran ran = goOn(from, to);
      ASSERT_EQ(ran.code, 0) << ran.err;
      const std::map<int, double> losses = lossesIn(metrics(from, to));
      ASSERT_EQ(losses.size(), std::size_t{kSteps - kSaved});
      for (const auto &[step, loss] : losses)
        EXPECT_NEAR(loss, expected.at(step),
                    GetParam().tolerance * std::abs(expected.at(step)))
            << "step " << step;
    }
  }
}

TEST_P(Reshard, SameLayoutResumesToTheBit) {
  for (const Layout &layout : GetParam().layouts) {
    SCOPED_TRACE(layout.name);
    ASSERT_NO_FATAL_FAILURE(train(layout));
    const std::map<int, double> expected = lossesIn(metrics(layout, layout));
    const std::string again = folder / "again";
    const Ran ran = goOn(layout, layout, {"--checkpoint", again});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("goes on from step 5"));
    for (const auto &[step, loss] : lossesIn(metrics(layout, layout)))
      EXPECT_EQ(loss, expected.at(step)) << "step " << step;
    EXPECT_THAT(differing(kept(layout) + kEnd, again + kEnd),
                testing::IsEmpty());
    // The manifest has the position in the data and the loss scale.
    EXPECT_EQ(contentOf(kept(layout) + kEnd + "/manifest.json"),
              contentOf(again + kEnd + "/manifest.json"));
    std::filesystem::remove_all(again);
  }
}

std::vector<Family> families() {
  return {{"tiny-gpt2",
           {"--precision", "fp32"},
           {{"one", {"--gpus", "1"}},
            {"tp2", {"--gpus", "2", "--tp", "2"}},
            {"tp4", {"--gpus", "4", "--tp", "4", "--sequence-parallel", "on"}},
            {"tp2x2",
             {"--gpus", "4", "--tp-axes", "2,2", "--splits",
              "column,row,head,vocab"}},
            {"pp2", {"--gpus", "2", "--pp", "2"}},
            {"dp2", {"--gpus", "2", "--dp", "2"}},
            {"dp4zero1", {"--gpus", "4", "--dp", "4", "--zero", "1"}},
            {"dp2zero2", {"--gpus", "2", "--dp", "2", "--zero", "2"}},
            {"dp2zero3", {"--gpus", "2", "--dp", "2", "--zero", "3"}},
            {"tp2dp2zero3",
             {"--gpus", "4", "--tp", "2", "--dp", "2", "--zero", "3"}},
            {"tp2pp2", {"--gpus", "4", "--tp", "2", "--pp", "2"}},
            {"pp2dp2zero1",
             {"--gpus", "4", "--pp", "2", "--dp", "2", "--zero", "1"}},
            {"recomputed", {"--gpus", "1", "--recompute", "full"}}}},
          {"tiny-bert", // each layout pads the vocabulary differently
           {"--precision", "fp32"},
           {{"plain", {"--gpus", "1"}},
            {"tp2", {"--gpus", "2", "--tp", "2"}, 512},
            {"tp4", {"--gpus", "4", "--tp", "4"}, 520},
            {"dp2zero3", {"--gpus", "2", "--dp", "2", "--zero", "3"}, 506}}},
          {"tiny-mistral", // grouped-query attention
           {"--precision", "fp32"},
           {{"one", {"--gpus", "1"}},
            {"tp2", {"--gpus", "2", "--tp", "2"}},
            {"tp2dp2zero3",
             {"--gpus", "4", "--tp", "2", "--dp", "2", "--zero", "3"}},
            {"dp2zero1offloaded",
             {"--gpus", "2", "--dp", "2", "--zero", "1", "--offload",
              "optimizer", "--hardware", "dgx-h100"}}}},
          {"tiny-mixtral",
           {"--precision", "fp32"},
           {{"one", {"--gpus", "1"}},
            {"ep2", {"--gpus", "2", "--dp", "2", "--ep", "2"}},
            {"tp2", {"--gpus", "2", "--tp", "2"}},
            {"tp2ep2zero1",
             {"--gpus", "4", "--tp", "2", "--dp", "2", "--ep", "2", "--zero",
              "1"}}}},
          // The losses of 16-bit weights differ by more rounding.
          {"tiny-llama",
           {"--precision", "bf16"},
           {{"one", {"--gpus", "1"}},
            {"tp2", {"--gpus", "2", "--tp", "2"}},
            {"dp2zero1", {"--gpus", "2", "--dp", "2", "--zero", "1"}},
            {"pp2offloaded",
             {"--gpus", "2", "--pp", "2", "--offload", "optimizer",
              "--hardware", "dgx-h100"}}},
           1e-2},
          {"tiny-qwen2", // fp16 has a loss scale
           {"--precision", "fp16"},
           {{"one", {"--gpus", "1"}},
            {"tp2dp2zero2",
             {"--gpus", "4", "--tp", "2", "--dp", "2", "--zero", "2"}}},
           1e-2}};
}

INSTANTIATE_TEST_SUITE_P(All, Reshard, testing::ValuesIn(families()),
                         [](const auto &one) {
                           std::string name = one.param.model.substr(5);
                           return name;
                         });

} // namespace
} // namespace mtplan

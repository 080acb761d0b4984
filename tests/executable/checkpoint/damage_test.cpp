//===- damage_test.cpp - Checkpoints that were modified -------------------===//

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/backend/kernel.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/loader.h"
#include "runtime/communicator/communicator.h"
#include "runtime/data/digest.h"
#include "runtime/plan/plan_json.h"
#include "runtime/safetensors/header.h"
#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointDamage : public FaultRuns {
protected:
  /// Returns checkpoints of steps 4, 6 and 8 of a run with one rank.
  static std::string kept() {
    std::string to = place("kept");
    fs::remove_all(to);
    fs::create_directory(to);
    for (const std::string step :
         {"step-00000004", "step-00000006", "step-00000008"})
      fs::copy(fs::path(undisturbed("one")) / step, fs::path(to) / step);
    std::ofstream(to + "/latest") << "step-00000008\n";
    return to;
  }

  static Ran goOn(const std::string &to, std::vector<std::string> more = {}) {
    return runHere(arguments("one", to, std::move(more)));
  }

  // Sets a newer format version and updates the manifest's own checksum.
  static void makeForeign(const std::string &checkpoint) {
    std::string text = contentOf(checkpoint + "/manifest.json");
    auto put = [&](const std::string &key, const std::string &value) {
      const std::size_t at = text.find(key) + key.size();
      text.replace(at, text.find_first_of(",\n", at) - at, value);
    };
    put("\"version\": ", "2,\n \"new\": 1");
    put("\"checksum\": ", "\"\"");
    put("\"checksum\": ", '"' + runtime::textOf(runtime::digestOf(text)) + '"');
    std::ofstream(checkpoint + "/manifest.json") << text;
  }
};

// Returns the file or tensor name that a message about the byte at `offset`
// must contain.
std::string nameAt(const fs::path &file, std::int64_t offset) {
  if (file.extension() != ".safetensors")
    return file.filename();
  const runtime::SafetensorsHeader header =
      runtime::readHeader(runtime::MappedFile(file));
  for (const runtime::SafeTensor &tensor : header.tensors)
    if (offset >= header.dataStart + tensor.begin &&
        offset < header.dataStart + tensor.end)
      return "tensor " + tensor.name + " ";
  return file.filename();
}

void flip(const fs::path &file, std::int64_t bit) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(bit / 8);
  const int byte = stream.get();
  ASSERT_NE(byte, EOF);
  stream.seekp(bit / 8);
  stream.put(static_cast<char>(byte ^ (1 << (bit % 8))));
}

// Flips a bit in the last byte of the last tensor.
void flipOne(const fs::path &checkpoint) {
  const fs::path file = checkpoint / "weights-00001-of-00001.safetensors";
  flip(file, static_cast<std::int64_t>(fs::file_size(file)) * 8 - 1);
}

TEST_F(CheckpointDamage, FlippedBitIsFound) {
  using namespace runtime;
  const std::string to = kept();
  const Plan plan = readPlanFile(place("plan-one/plan.json"));
  std::vector<fs::path> files;
  // Holds the end of each file in the concatenation of all files, in bytes.
  std::vector<std::int64_t> ends;
  for (const std::string &name : namesIn(to + "/step-00000008")) {
    files.push_back(fs::path(to) / "step-00000008" / name);
    ends.push_back((ends.empty() ? 0 : ends.back()) +
                   static_cast<std::int64_t>(fs::file_size(files.back())));
  }
  ASSERT_EQ(files.size(), 4U);
  runOnThreads(1, {}, [&](World &world) {
    auto backend = makeCpuBackend(1);
    RankExecutor executor(plan, world, *backend);
    std::vector<std::string> passedOver;
    auto load = [&] {
      passedOver.clear();
      return loadNewest(
          plan, world, executor, to, LoadWhat::everything,
          [&](const std::string &what) { passedOver.push_back(what); });
    };
    std::mt19937_64 random(20);
    for (int i = 0; i < 1000 && !HasFailure(); ++i) {
      std::int64_t bit = std::uniform_int_distribution<std::int64_t>(
          0, ends.back() * 8 - 1)(random);
      const auto f = static_cast<std::size_t>(
          std::ranges::upper_bound(ends, bit / 8) - ends.begin());
      bit -= f > 0 ? ends[f - 1] * 8 : 0;
      SCOPED_TRACE(files[f].string() + ": bit " + std::to_string(bit));
      const std::string name = nameAt(files[f], bit / 8);
      flip(files[f], bit);
      const std::optional<RunState> found = load();
      ASSERT_TRUE(found);
      EXPECT_EQ(found->step, 6);
      EXPECT_THAT(passedOver, ElementsAre(HasSubstr(name)));
      flip(files[f], bit);
    }
    EXPECT_EQ(load()->step, 8); // the bit is restored
  });
}

TEST_F(CheckpointDamage, DamagedCheckpointIsSkipped) {
  struct Case {
    std::function<void(const fs::path &checkpoint)> damage;
    std::string words;
  };
  const std::string weights = "weights-00001-of-00001.safetensors";
  const std::uintmax_t bytes =
      fs::file_size(fs::path(undisturbed("one")) / "step-00000008" / weights);
  for (const Case &one : std::vector<Case>{
           {[&](const fs::path &at) {
              fs::resize_file(at / weights, fs::file_size(at / weights) - 1);
            },
            weights + ": has " + std::to_string(bytes - 1) +
                " bytes, not the " + std::to_string(bytes) +
                " of the manifest"},
           {[&](const fs::path &at) { fs::remove(at / weights); },
            weights + ": cannot read it: No such file or directory"},
           {[&](const fs::path &at) { fs::remove(at / "manifest.json"); },
            "manifest.json: cannot read it: No such file or directory"},
           {[&](const fs::path &at) {
              fs::resize_file(at / "manifest.json", 0);
            },
            "manifest.json: "},
       }) {
    SCOPED_TRACE(one.words);
    const std::string to = kept();
    one.damage(to + "/step-00000008");
    const Ran ran = goOn(to);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("warning: skipped a checkpoint: rank 0: " +
                                   to + "/step-00000008/" + one.words));
    EXPECT_THAT(ran.out, HasSubstr("goes on from step 6\n"));
    EXPECT_THAT(
        differing(to + "/step-00000008", undisturbed("one") + "/step-00000008"),
        testing::IsEmpty());
  }
}

TEST_F(CheckpointDamage, RunFailsAndKeepsFilesIfAllAreDamaged) {
  const std::string to = kept();
  for (const std::string &name : namesIn(to))
    if (name != "latest")
      flipOne(fs::path(to) / name);
  const Ran ran = goOn(to);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("no checkpoint there can be gone on from"));
  EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000004",
                                       "step-00000006", "step-00000008"));
}

TEST_F(CheckpointDamage, ForeignFilesAreTolerated) {
  const std::string to = kept();
  std::ofstream(to + "/step-00000008/notes.txt") << "of ours";
  const Ran ran = goOn(to);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 8\n"));
}

TEST_F(CheckpointDamage, DamagedCheckpointsDoNotCountAsKept) {
  const std::string to = kept();
  flipOne(to + "/step-00000008");
  const Ran ran = goOn(to, {"--steps", "7"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000006",
                                       "step-00000007", "step-00000008"));
}

TEST_F(CheckpointDamage, OtherVersionIsRejected) {
  for (const std::string step : {"/step-00000008", "/step-00000004"}) {
    const std::string to = kept(), foreign = to + step;
    makeForeign(foreign);
    const Ran ran = goOn(to);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err, "error: " + foreign +
                           "/manifest.json: /version: is 2, but this mtrun "
                           "reads version 1; give this run a folder of its "
                           "own\n");
    EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000004",
                                         "step-00000006", "step-00000008"));
  }
  // A run that only loads from the folder uses the previous checkpoint.
  const std::string from = kept();
  makeForeign(from + "/step-00000008");
  const Ran ran = goOn(place("new"), {"--load", from});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("skipped a checkpoint: "),
                    HasSubstr("is 2, but this mtrun reads version 1\n")));
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 6\n"));
}

TEST_F(CheckpointDamage, OtherModelIsRejected) {
  const std::string to = kept(), other = place("other");
  ASSERT_EQ(compileExample("tiny-gptj", other, {"--gpus", "1"}), "");
  const Ran ran = runHere({other, "--data", kText, "--checkpoint", to});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("error: " + to +
                                       "/step-00000008: has another "
                                       "model (small, the plan's is "
                                       "tiny-gptj): it has "),
                             testing::Not(HasSubstr("skipped a checkpoint"))));
  for (const char *step :
       {"/step-00000004", "/step-00000006", "/step-00000008"})
    EXPECT_THAT(differing(to + step, undisturbed("one") + step),
                testing::IsEmpty());
}

TEST_F(CheckpointDamage, LockedFolderIsRejected) {
  const std::string to = kept();
  const runtime::FolderLock other(to);
  const Ran ran = goOn(to);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "error: " + to +
                         ": another run writes its checkpoints there; give "
                         "this one a folder of its own, or wait for the "
                         "other\n");
}

TEST_F(CheckpointDamage, OnlyRemainsOfDeadRunsAreRemoved) {
  const std::string to = kept();
  for (const char *name :
       {"step-00000009.partial", "step-00000002.replaced", "ours.partial"}) {
    fs::create_directory(fs::path(to) / name);
    std::ofstream(fs::path(to) / name / "x") << "x";
  }
  std::ofstream(to + "/latest.new") << "step-0";
  const Ran ran = goOn(to);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(namesIn(to),
              ElementsAre("latest", "lock", "ours.partial", "step-00000004",
                          "step-00000006", "step-00000008"));
}

TEST_F(CheckpointDamage, WrongLatestIsRepaired) {
  for (const std::string was : {"step-00000006\n", "step-00000008", "", "x"}) {
    const std::string to = kept();
    if (was == "")
      fs::remove(to + "/latest");
    else
      std::ofstream(to + "/latest") << was;
    EXPECT_EQ(goOn(to).err, "");
    EXPECT_EQ(contentOf(to + "/latest"), "step-00000008\n");
  }
  // `latest` is set to the newest intact checkpoint.
  const std::string to = kept();
  fs::remove(to + "/step-00000008/manifest.json");
  EXPECT_EQ(goOn(to, {"--steps", "6"}).code, 0);
  EXPECT_EQ(contentOf(to + "/latest"), "step-00000006\n");
}

TEST_F(CheckpointDamage, KeepLimitsTheCheckpoints) {
  const std::string to = place("new");
  EXPECT_EQ(goOn(to, {"--keep", "3"}).code, 0);
  EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000004",
                                       "step-00000006", "step-00000008"));
}

} // namespace
} // namespace mtplan

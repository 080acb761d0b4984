//===- ckpt_command_test.cpp - mtrun ckpt, from end to end ----------------===//
//
// Imports weights of Transformers, trains them in two layouts, and exports
// them.
//
//===----------------------------------------------------------------------===//

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string files(const std::string &name) {
  return std::string(MTPLAN_SOURCE_DIR) + "/tests/parity/files/" + name;
}

Ran ckpt(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ckpt");
  return runHere(arguments);
}

std::vector<std::string> with(std::vector<std::string> all,
                              const std::vector<std::string> &more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Writes a file of 16-bit tokens below 11. The model's vocabulary of 13 tokens
/// is too small for text.
void writeTokens(const std::string &path) {
  std::ofstream out(path, std::ios::binary);
  for (int i = 0; i < 4000; ++i) {
    const auto token = static_cast<std::uint16_t>(i * i % 11);
    out.write(reinterpret_cast<const char *>(&token), sizeof(token));
  }
}

TEST(Ckpt, TransformersWeightsAreTrainedAndExported) {
  const TestFolder folder;
  const std::string given = files("llama");
  const Ran in = ckpt({"convert", given, folder / "kept"});
  ASSERT_EQ(in.code, 0) << in.err;
  EXPECT_THAT(in.out, AllOf(HasSubstr("kept/step-00000000: 21 tensors"),
                            HasSubstr("begins with them")));

  ASSERT_EQ(compileExample(given + "/config.json", folder / "plan",
                           {"--gpus", "2", "--tp", "2", "--precision", "fp32"}),
            "");
  writeTokens(folder / "tokens.u16");
  const std::vector<std::string> train = {
      folder / "plan", "--data",       folder / "tokens.u16", "--format",
      "uint16",        "--checkpoint", folder / "kept"};
  const Ran ran = runHere(with(train, {"--steps", "3"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("step 3/3"));

  // The export equals the original files.
  const Ran out =
      ckpt({"convert", folder / "kept", folder / "out", "--like", given});
  ASSERT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(contentOf(folder / "out/config.json"),
            contentOf(given + "/config.json"));
  const Ran same = ckpt({"diff", folder / "kept", folder / "out"});
  EXPECT_EQ(same.code, 0);
  EXPECT_THAT(same.out, HasSubstr("21 tensors in both, all equal; one of the "
                                  "two has no moments"));
  const Ran trained = ckpt({"diff", given, folder / "out"});
  EXPECT_EQ(trained.code, 1);
  EXPECT_THAT(trained.out, AllOf(HasSubstr("h.0.attn.q.weight: "),
                                 HasSubstr("elements, by at most"),
                                 HasSubstr("21 differences")));
}

TEST(Ckpt, InfoDescribesEveryFormat) {
  const TestFolder folder;
  ASSERT_EQ(ckpt({"convert", files("gpt2-published"), folder / "kept"}).code,
            0);
  const Ran kept = ckpt({"info", folder / "kept", "--tensors"});
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_THAT(kept.out,
              AllOf(HasSubstr("checkpoint of step 0\n"),
                    HasSubstr("model       gpt2"),
                    HasSubstr("weights     36 tensors, "),
                    HasSubstr("in F32\n"), HasSubstr("moments     none"),
                    HasSubstr("came from   Hugging Face: 30 tensors in 1 file"),
                    HasSubstr("F32   [8, 8]             h.0.attn.q.weight\n")));
  EXPECT_THAT(ckpt({"info", files("gpt2-llmc/model.bin")}).out,
              HasSubstr("GPT-2 of llm.c"));
  EXPECT_THAT(ckpt({"info", files("llama-sharded")}).out,
              HasSubstr("llama of Hugging Face, 4 files"));
}

TEST(Ckpt, VerifyFindsEveryDamagedTensor) {
  const TestFolder folder;
  ASSERT_EQ(ckpt({"convert", files("gpt2"), folder / "kept"}).code, 0);
  EXPECT_EQ(ckpt({"verify", folder / "kept"}).code, 0);
  const std::string file =
      folder / "kept/step-00000000/weights-00001-of-00001.safetensors";
  std::string bytes = contentOf(file);
  // Changes the last tensor, and then the first.
  bytes.back() ^= 1;
  const std::size_t dataStart =
      8 + static_cast<unsigned char>(bytes[0]) +
      256 * static_cast<std::size_t>(static_cast<unsigned char>(bytes[1]));
  bytes[dataStart] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  const Ran damaged = ckpt({"verify", folder / "kept"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("step-00000000: damaged:"),
                                 HasSubstr("tensor h.0.attn.k.bias has"),
                                 HasSubstr("tensor wte.weight has")));
  EXPECT_THAT(ckpt({"verify", files("gpt2")}).out,
              HasSubstr("such files have no checksums"));
}

TEST(Ckpt, MistypedNamesGetASuggestion) {
  auto refusal = [](const std::vector<std::string> &arguments) {
    const Ran ran = ckpt(arguments);
    EXPECT_EQ(ran.code, 2);
    return ran.err;
  };
  EXPECT_EQ(refusal({}),
            "error: mtrun ckpt: needs one of info, verify, diff, convert\n");
  EXPECT_EQ(refusal({"vrify", "kept"}),
            "error: vrify: must be one of info, verify, diff, convert; nearest "
            "is verify\n");
  EXPECT_THAT(refusal({"info"}), HasSubstr("PATH is required"));
  EXPECT_EQ(refusal({"info", "a", "--tensor"}),
            "error: --tensor: no such option; nearest is --tensors\n");
  EXPECT_EQ(refusal({"info", "a", "b"}),
            "error: b: is not expected; `mtrun ckpt info --help` lists the "
            "arguments\n");
}

TEST(Ckpt, OptionsWithoutEffectAreRejected) {
  const TestFolder folder;
  auto refusal = [&](const std::vector<std::string> &more) {
    const Ran ran = ckpt(with({"convert", files("gpt2"), folder / "x"}, more));
    EXPECT_EQ(ran.code, 2);
    EXPECT_FALSE(fs::exists(folder / "x"));
    return ran.err;
  };
  EXPECT_THAT(refusal({"--to", "hugging"}),
              HasSubstr("nearest is huggingface"));
  EXPECT_THAT(refusal({"--type", "bf16"}), HasSubstr("--type: a checkpoint"));
  EXPECT_THAT(refusal({"--heads", "2"}),
              HasSubstr("--heads: is for --to llm.c, this is --to mtplan"));
  EXPECT_THAT(refusal({"--to", "llm.c", "--heads", "0"}),
              HasSubstr("--heads 0: must be at least 1"));
  EXPECT_THAT(refusal({"--to", "huggingface", "--like", files("llama")}),
              StartsWith("error: "));
  EXPECT_THAT(refusal({"--to", "huggingface", "--shard-bytes", "0"}),
              HasSubstr("at least 1"));
}

TEST(Ckpt, ForeignFilesNeedConversion) {
  const TestFolder folder;
  ASSERT_EQ(compileExample(files("llama/config.json"), folder / "plan",
                           {"--gpus", "1", "--precision", "fp32"}),
            "");
  writeTokens(folder / "tokens.u16");
  const Ran ran =
      runHere({folder / "plan", "--data", folder / "tokens.u16", "--format",
               "uint16", "--steps", "1", "--weights", files("llama")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("mtrun ckpt convert"));
}

TEST(Ckpt, CheckpointIsNoFolderForCheckpoints) {
  // The run would write its checkpoints inside an existing checkpoint, where no
  // later run would find them.
  const TestFolder folder;
  ASSERT_EQ(ckpt({"convert", files("llama"), folder / "kept"}).code, 0);
  ASSERT_EQ(compileExample(files("llama/config.json"), folder / "plan",
                           {"--gpus", "1", "--precision", "fp32"}),
            "");
  writeTokens(folder / "tokens.u16");
  const Ran ran = runHere({folder / "plan", "--data", folder / "tokens.u16",
                           "--format", "uint16", "--steps", "1", "--checkpoint",
                           folder / "kept/step-00000000"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("is a checkpoint itself"),
                             HasSubstr("--load"), Not(HasSubstr("lock"))));
}

} // namespace
} // namespace mtplan

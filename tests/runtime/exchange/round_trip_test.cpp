//===- round_trip_test.cpp - Import and export, byte by byte --------------===//
//
// The files come from Transformers and safetensors, or have llm.c's layout
// (tests/parity/files).
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/exchange/weight_source.h"
#include "tests/runtime/exchange/exchange_files.h"

namespace mtplan::runtime {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> foldersOf(bool llmc) {
  std::vector<std::string> folders;
  for (const std::string &name : namesIn(parityFiles("")))
    if (fs::exists(parityFiles(name + "/model.bin")) == llmc)
      folders.push_back(name);
  return folders;
}

std::string nameOf(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

/// Expects that every file of `folder` is in `given`, with the same bytes.
void expectFiles(const std::string &folder, const std::string &given) {
  for (const std::string &name : namesIn(folder))
    EXPECT_EQ(readFile(fs::path(folder) / name),
              readFile(fs::path(given) / name))
        << name;
}

class HuggingFaceFiles : public testing::TestWithParam<std::string> {};

TEST_P(HuggingFaceFiles, RoundTripByteByByte) {
  const TestFolder folder;
  const std::string given = parityFiles(GetParam());
  importWeights(given, folder / "kept");
  const Exported exported =
      exportHuggingFace(*openWeights(folder / "kept"), folder / "out", {});
  EXPECT_THAT(exported.leftOut, IsEmpty());
  expectFiles(folder / "out", given);
  std::vector<std::string> names = namesIn(given);
  std::erase(names, "logits.json"); // is no model file
  EXPECT_EQ(namesIn(folder / "out"), names);
}

INSTANTIATE_TEST_SUITE_P(All, HuggingFaceFiles,
                         testing::ValuesIn(foldersOf(false)), nameOf);

class LlmcFiles : public testing::TestWithParam<std::string> {};

TEST_P(LlmcFiles, RoundTripByteByByte) {
  const TestFolder folder;
  const std::string given = parityFiles(GetParam() + "/model.bin");
  importWeights(given, folder / "kept");
  exportLlmc(*openWeights(folder / "kept"), folder / "out.bin", {});
  EXPECT_EQ(readFile(folder / "out.bin"), readFile(given));
}

INSTANTIATE_TEST_SUITE_P(All, LlmcFiles, testing::ValuesIn(foldersOf(true)),
                         nameOf);

// Files of save_pretrained have the usual names, order and metadata. They can
// be written again without knowledge of the original files.
TEST(Exchange, UsualFilesAreThoseOfSavePretrained) {
  for (const std::string name :
       {"gpt2", "gptj", "llama", "mistral", "qwen2", "bert", "llama-bf16",
        "qwen2-tied", "llama-biased", "llama-deep"}) {
    const TestFolder folder;
    const Anonymous source(parityFiles(name));
    exportHuggingFace(source, folder / "out", {});
    EXPECT_THAT(namesIn(folder / "out"), ElementsAre("model.safetensors"));
    expectFiles(folder / "out", parityFiles(name));
  }
}

TEST(Exchange, ShardsAreThoseOfSavePretrained) {
  for (const std::string name : {"gpt2", "llama"}) {
    const TestFolder folder;
    const Anonymous source(parityFiles(name));
    ExportOptions options; // max_shard_size of make_transformers_files.py
    options.shardBytes = name == "gpt2" ? 3000 : 4000;
    exportHuggingFace(source, folder / "out", options);
    EXPECT_GE(namesIn(folder / "out").size(), 5U);
    expectFiles(folder / "out", parityFiles(name + "-sharded"));
  }
}

// A tensor that is too large for a shard has a file of its own, and the tensors
// before and after it share another.
TEST(Exchange, ATensorLargerThanAShardIsAlone) {
  const TestFolder folder;
  ExportOptions options;
  options.shardBytes = 1000; // F32 [8][32] has 1024 bytes
  exportHuggingFace(Anonymous(parityFiles("gpt2")), folder / "out", options);
  const ModelFiles files = ModelFiles::open(folder / "out");
  int alone = 0;
  for (const auto &file : files.files()) {
    const std::vector<SafeTensor> &tensors = file->header.tensors;
    const std::int64_t bytes = tensors.back().end;
    EXPECT_TRUE(bytes <= 1000 || tensors.size() == 1) << file->bytes.path();
    alone += bytes > 1000 ? 1 : 0;
  }
  EXPECT_EQ(alone, 4); // c_fc and c_proj of two layers
  EXPECT_EQ(files.find("transformer.h.0.mlp.c_fc.bias")->file,
            files.find("transformer.h.0.ln_2.weight")->file);
}

// Weights that came from other files are written into new shards, and their
// configuration stays valid.
TEST(Exchange, ImportedWeightsGetNewShards) {
  const TestFolder folder;
  importWeights(parityFiles("bert-published"), folder / "kept");
  const auto source = openWeights(folder / "kept");
  ExportOptions options;
  options.shardBytes = 3000;
  const Exported exported = exportHuggingFace(*source, folder / "out", options);
  EXPECT_THAT(exported.leftOut,
              testing::Contains(HasSubstr("pooler.dense.weight")));
  EXPECT_TRUE(exported.hasConfig);
  EXPECT_EQ(readFile(folder / "out/config.json"),
            readFile(parityFiles("bert-published/config.json")));
  EXPECT_EQ(openWeights(folder / "out")->what(),
            "bert of Hugging Face, 2 files");
  EXPECT_THAT(compareWeights(*source, *openWeights(folder / "out")).differences,
              IsEmpty());
  options = {};
  options.family = "bert";
  EXPECT_FALSE(exportHuggingFace(*source, folder / "named", options).hasConfig);
}

TEST(Exchange, AnotherTypeKeepsWhatTheIndexSays) {
  const TestFolder folder;
  ExportOptions options;
  options.type = ElementType::bf16;
  exportHuggingFace(*openWeights(parityFiles("llama-sharded")), folder / "out",
                    options);
  const ShardIndex was =
      readIndex(parityFiles("llama-sharded/model.safetensors.index.json"));
  const ShardIndex is = readIndex(folder / "out/model.safetensors.index.json");
  EXPECT_EQ(is.otherMetadata, was.otherMetadata);
  EXPECT_EQ(is.weightMap, was.weightMap);
  EXPECT_EQ(is.totalSize * 2, was.totalSize);
}

TEST(Exchange, AFolderMayEndInASlashOrBeALink) {
  const TestFolder folder;
  const auto source = openWeights(parityFiles("gpt2"));
  exportHuggingFace(*source, folder / "out/", {});
  expectFiles(folder / "out", parityFiles("gpt2"));
  fs::create_directory(folder / "disk");
  fs::create_directory_symlink(folder / "disk", folder / "link");
  exportHuggingFace(*source, folder / "link", {});
  expectFiles(folder / "disk", parityFiles("gpt2"));
}

TEST(Exchange, AFileOfLlmcHasTheWeightsOfTransformers) {
  // Transformers and llm.c wrote the same model.
  const auto a = openWeights(parityFiles("gpt2"));
  const auto b = openWeights(parityFiles("gpt2-llmc/model.bin"));
  EXPECT_THAT(compareWeights(*a, *b).differences, IsEmpty());
}

TEST(Exchange, RowsOfPaddingAreKept) {
  // The file has 256 rows for 13 tokens; llm.c itself would write 128.
  const TestFolder folder;
  std::string file = readFile(parityFiles("gpt2-llmc/model.bin"));
  file[4 * 7] = '\0';
  file[4 * 7 + 1] = '\1';
  file.insert(1024 + 128 * 8 * 4, std::string(128 * 8 * 4, '\0'));
  importWeights(writeFile(folder / "model.bin", file), folder / "kept");
  exportLlmc(*openWeights(folder / "kept"), folder / "out.bin", {});
  EXPECT_EQ(readFile(folder / "out.bin"), file);
}

TEST(Exchange, LlmcExportNeedsTheNumberOfHeads) {
  const TestFolder folder;
  const auto source = openWeights(parityFiles("gpt2"));
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportLlmc(*source, folder / "a.bin", {}); }),
              HasSubstr("do not determine the number of heads"));
  ExportOptions options;
  options.heads = 2;
  exportLlmc(*source, folder / "a.bin", options);
  EXPECT_EQ(readFile(folder / "a.bin"),
            readFile(parityFiles("gpt2-llmc/model.bin")));
  EXPECT_FALSE(fs::exists(folder / "a.bin.new"));
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportLlmc(*source, folder / "a.bin", options); }),
              HasSubstr("is there already"));
}

TEST(Exchange, AnotherTypeIsRoundedOnce) {
  const TestFolder folder;
  const auto source = openWeights(parityFiles("gpt2"));
  ExportOptions options;
  options.type = ElementType::f16;
  exportHuggingFace(*source, folder / "out", options);
  // torch rounds in the same way: model.half().save_pretrained().
  EXPECT_EQ(readFile(folder / "out/model.safetensors"),
            readFile(parityFiles("gpt2-f16/model.safetensors")));
}

TEST(Exchange, LikeCopiesTensorsThatAreNoParameters) {
  const TestFolder folder;
  const std::string given = parityFiles("bert-published");
  const Anonymous source(given);
  const auto like = openWeights(given);
  ExportOptions options;
  options.like = like.get();
  exportHuggingFace(source, folder / "out", options);
  expectFiles(folder / "out", given);
}

TEST(Exchange, MissingTensorsAreLeftOutAndReported) {
  const TestFolder folder;
  importWeights(parityFiles("bert-published"), folder / "kept");
  // `source` knows the headers of the original files, but not the values of the
  // tensors that are no parameters.
  const Anonymous source(folder / "kept", Keeps::origin);
  const Exported exported = exportHuggingFace(source, folder / "out", {});
  EXPECT_THAT(exported.leftOut,
              testing::Contains(HasSubstr("pooler.dense.weight")));
  const auto written = openWeights(folder / "out");
  EXPECT_THAT(compareWeights(source, *written).differences, IsEmpty());
}

} // namespace
} // namespace mtplan::runtime

//===- round_trip_test.cpp - In, and out again, byte by byte --------------===//
//
// The files are what Transformers, safetensors and llm.c's layout make
// (tests/parity/files).
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/exchange/weight_diff.h"
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

/// Every file of `folder` is in `given`, with the same bytes.
void expectFiles(const std::string &folder, const std::string &given) {
  for (const std::string &name : namesIn(folder))
    EXPECT_EQ(readFile(fs::path(folder) / name),
              readFile(fs::path(given) / name))
        << name;
}

class HuggingFaceFiles : public testing::TestWithParam<std::string> {};

TEST_P(HuggingFaceFiles, ComeOutAsTheyCameIn) {
  const TestFolder folder;
  const std::string given = parityFiles(GetParam());
  importWeights(given, folder / "kept");
  const Exported exported =
      exportHuggingFace(*openWeights(folder / "kept"), folder / "out", {});
  EXPECT_THAT(exported.leftOut, IsEmpty());
  expectFiles(folder / "out", given);
  std::vector<std::string> names = namesIn(given);
  std::erase(names, "logits.json"); // is the test's
  EXPECT_EQ(namesIn(folder / "out"), names);
}

INSTANTIATE_TEST_SUITE_P(All, HuggingFaceFiles,
                         testing::ValuesIn(foldersOf(false)), nameOf);

class LlmcFiles : public testing::TestWithParam<std::string> {};

TEST_P(LlmcFiles, ComeOutAsTheyCameIn) {
  const TestFolder folder;
  const std::string given = parityFiles(GetParam() + "/model.bin");
  importWeights(given, folder / "kept");
  exportLlmc(*openWeights(folder / "kept"), folder / "out.bin", {});
  EXPECT_EQ(readFile(folder / "out.bin"), readFile(given));
}

INSTANTIATE_TEST_SUITE_P(All, LlmcFiles, testing::ValuesIn(foldersOf(true)),
                         nameOf);

// What save_pretrained makes has the usual names, order and metadata, so
// nothing needs to be known of the files to make them.
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
    ExportOptions options;
    options.shardBytes = 4096;
    const Exported exported =
        exportHuggingFace(source, folder / "out", options);
    EXPECT_GE(exported.files.size(), 4U);
    // Whatever is where, together they are the same model.
    const WeightComparison compared =
        compareWeights(source, *openWeights(folder / "out"));
    EXPECT_THAT(compared.differences, IsEmpty());
    EXPECT_EQ(compared.tensors,
              static_cast<std::int64_t>(source.tensors().size()));
  }
}

TEST(Exchange, AFileOfLlmcHasTheWeightsOfTransformers) {
  // The same model, written by both.
  const auto a = openWeights(parityFiles("gpt2"));
  const auto b = openWeights(parityFiles("gpt2-llmc/model.bin"));
  EXPECT_THAT(compareWeights(*a, *b).differences, IsEmpty());
}

TEST(Exchange, FromTransformersToLlmcItNeedsTheHeads) {
  const TestFolder folder;
  const auto source = openWeights(parityFiles("gpt2"));
  EXPECT_THAT(saidAgainst([&] { exportLlmc(*source, folder / "a.bin", {}); }),
              HasSubstr("how many heads"));
  ExportOptions options;
  options.heads = 2;
  exportLlmc(*source, folder / "a.bin", options);
  EXPECT_EQ(readFile(folder / "a.bin"),
            readFile(parityFiles("gpt2-llmc/model.bin")));
  EXPECT_FALSE(fs::exists(folder / "a.bin.new"));
}

TEST(Exchange, AnotherTypeIsRoundedOnce) {
  const TestFolder folder;
  const auto source = openWeights(parityFiles("gpt2"));
  ExportOptions options;
  options.type = ElementType::f16;
  exportHuggingFace(*source, folder / "out", options);
  // As torch rounds: model.half().save_pretrained().
  EXPECT_EQ(readFile(folder / "out/model.safetensors"),
            readFile(parityFiles("gpt2-f16/model.safetensors")));
}

TEST(Exchange, LikeTakesWhatIsNoParameter) {
  const TestFolder folder;
  const std::string given = parityFiles("bert-published");
  const Anonymous source(given);
  const auto like = openWeights(given);
  ExportOptions options;
  options.like = like.get();
  exportHuggingFace(source, folder / "out", options);
  expectFiles(folder / "out", given);
}

TEST(Exchange, WhatIsNotThereIsLeftOutAndSaid) {
  const TestFolder folder;
  importWeights(parityFiles("bert-published"), folder / "kept");
  // Its others are in the checkpoint; a header that only names them is not
  // enough.
  class Without final : public WeightSource {
  public:
    explicit Without(const std::string &path) : known(openWeights(path)) {
      all = known->tensors();
      from = *known->origin();
    }
    std::string what() const override { return known->what(); }
    std::string model() const override { return known->model(); }
    std::int64_t bytes() const override { return known->bytes(); }
    std::vector<std::byte> read(const std::string &name) const override {
      return known->read(name);
    }
    bool hasOther(const std::string & /*name*/) const override { return false; }
    std::vector<std::byte>
    readOther(const std::string & /*name*/) const override {
      return {};
    }

  private:
    std::unique_ptr<WeightSource> known;
  };
  const Without source(folder / "kept");
  const Exported exported = exportHuggingFace(source, folder / "out", {});
  EXPECT_THAT(exported.leftOut,
              testing::Contains(HasSubstr("pooler.dense.weight")));
  const auto written = openWeights(folder / "out");
  EXPECT_THAT(compareWeights(source, *written).differences, IsEmpty());
}

} // namespace
} // namespace mtplan::runtime

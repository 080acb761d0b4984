//===- refusals_test.cpp - Weights that cannot be exchanged ---------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/exchange/exchange_files.h"

namespace mtplan::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Returns the bytes of a file, in which `to` replaces the first `from`. Both
/// texts have the same length.
std::string changed(const std::string &name, const std::string &from,
                    const std::string &to) {
  std::string file = readFile(parityFiles(name + "/model.safetensors"));
  const std::size_t at = file.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(from.size(), to.size());
  return file.replace(at, from.size(), to);
}

/// Returns the bytes of a file in which `tensor` has another shape with as many
/// elements. If `another` is not "", it names an additional tensor.
std::string reshaped(const std::string &name, const std::string &tensor,
                     const std::vector<std::int64_t> &shape,
                     const std::string &another = "") {
  const std::string file = readFile(parityFiles(name + "/model.safetensors"));
  SafetensorsHeader header = headerOf(file);
  const auto data = static_cast<std::size_t>(header.dataStart);
  for (SafeTensor &each : header.tensors)
    if (each.name == tensor)
      each.shape = shape;
  if (!another.empty()) // the tensor has no elements
    header.tensors.push_back({another, "F32", {0}, 0, 0});
  return layOut(header) + file.substr(data);
}

std::string opening(const std::string &content) {
  const TestFolder folder;
  const std::string path = writeFile(folder / "model.safetensors", content);
  return messageOf<std::runtime_error>([&] { (void)openWeights(path); });
}

TEST(ExchangeRefusals, TensorsOfNoFamily) {
  EXPECT_THAT(opening(kGoldenSafetensors),
              AllOf(HasSubstr("model.safetensors: none of the 2 tensors is of "
                              "a known family"),
                    HasSubstr("gpt2, gptj, llama")));
}

TEST(ExchangeRefusals, AMissingTensorIsNamed) {
  EXPECT_THAT(
      opening(changed("llama", "model.norm.weight", "model.norn.weight")),
      HasSubstr("\"model.norm.weight\" is missing"));
}

TEST(ExchangeRefusals, UnknownTensorIsNamedWithTheNearest) {
  // A model may omit a bias, but not misspell it.
  EXPECT_THAT(opening(changed("qwen2", "model.layers.1.self_attn.k_proj.bias",
                              "model.layers.1.self_attn.k_prok.bias")),
              HasSubstr("k_prok.bias"));
}

TEST(ExchangeRefusals, ATypeThatHoldsNoWeights) {
  EXPECT_THAT(opening(changed("gpt2", "\"F32\"", "\"I32\"")),
              HasSubstr("is in I32, which is none of F64, F32, BF16 and F16"));
}

TEST(ExchangeRefusals, TiedTensorThatDiffers) {
  // BERT's head bias has two names. The last byte under one name is changed.
  std::string file = readFile(parityFiles("bert-published/model.safetensors"));
  const SafetensorsHeader header = headerOf(file);
  const SafeTensor *bias = header.find("cls.predictions.decoder.bias");
  ASSERT_NE(bias, nullptr);
  file[static_cast<std::size_t>(header.dataStart + bias->end - 1)] ^= 1;
  EXPECT_THAT(opening(file),
              AllOf(HasSubstr("cls.predictions.decoder.bias"),
                    HasSubstr("differs from \"cls.predictions.bias\"")));
}

TEST(ExchangeRefusals, UntiedHeadIsAParameter) {
  std::string file = readFile(parityFiles("gpt2-head/model.safetensors"));
  const SafetensorsHeader header = headerOf(file);
  const SafeTensor *head = header.find("lm_head.weight");
  ASSERT_NE(head, nullptr);
  file[static_cast<std::size_t>(header.dataStart + head->begin)] ^= 1;
  const TestFolder folder;
  writeFile(folder / "model.safetensors", file);
  EXPECT_TRUE(openWeights(folder / "model.safetensors")
                  ->tensors()
                  .contains("lm_head.weight"));
  EXPECT_FALSE(openWeights(parityFiles("gpt2-head"))
                   ->tensors()
                   .contains("lm_head.weight"));
}

TEST(ExchangeRefusals, TiedLayoutHasNoHead) {
  // Files in the layout of a tied head would lose an untied head.
  std::string file = readFile(parityFiles("gpt2-head/model.safetensors"));
  const SafetensorsHeader header = headerOf(file);
  file[static_cast<std::size_t>(header.dataStart +
                                header.find("lm_head.weight")->begin)] ^= 1;
  const TestFolder folder;
  const auto source =
      openWeights(writeFile(folder / "model.safetensors", file));
  const auto like = openWeights(parityFiles("gpt2"));
  ExportOptions options;
  options.like = like.get();
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportHuggingFace(*source, folder / "a", options); }),
              HasSubstr("\"lm_head.weight\" of gpt2 is missing"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(ExchangeRefusals, FusedTensorThatDoesNotDivide) {
  // The fused tensor is [8, 24], and [24, 8] has as many elements.
  EXPECT_THAT(opening(changed("gpt2", "\"shape\":[8,24]", "\"shape\":[24,8]")),
              AllOf(HasSubstr("c_attn.weight"), HasSubstr("[24, 8]"),
                    HasSubstr("does not divide into the 3 equal tensors")));
}

TEST(ExchangeRefusals, AFusedTensorOfThreeDimensions) {
  EXPECT_THAT(
      opening(reshaped("gpt2", "transformer.h.0.attn.c_attn.bias", {3, 2, 4})),
      AllOf(HasSubstr("[3, 2, 4]"),
            HasSubstr("does not divide into the 3 equal tensors")));
}

TEST(ExchangeRefusals, AMatrixOfThreeDimensions) {
  EXPECT_THAT(
      opening(reshaped("llama", "model.layers.1.self_attn.q_proj.weight",
                       {16, 4, 4})),
      AllOf(HasSubstr("model.layers.1.self_attn.q_proj.weight\" is [16, 4, 4]"),
            HasSubstr("is a matrix")));
}

TEST(ExchangeRefusals, FilesOfOtherFormats) {
  EXPECT_THAT(opening("version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("model.safetensors: is a pointer of Git LFS"));
  EXPECT_THAT(opening(std::string("PK\x03\x04\0\0\x08\x08", 8)),
              HasSubstr("save the model as safetensors"));
  EXPECT_THAT(opening("GGUF\x03 and so on"), HasSubstr("llama.cpp"));
  EXPECT_THAT(opening("\x8f\xd8\x34\x01\x01 and so on"),
              HasSubstr("an optimizer state of llm.c"));
  const TestFolder folder;
  writeFile(folder / "model_00000010.bin",
            readFile(parityFiles("gpt2-llmc/model.bin")));
  EXPECT_THAT(
      messageOf<std::runtime_error>([&] { (void)openWeights(folder / ""); }),
      HasSubstr("llm.c model in it: \"model_00000010.bin\""));
  importWeights(parityFiles("gpt2"), folder / "kept");
  EXPECT_THAT(messageOf<std::runtime_error>([&] {
                (void)openWeights(folder / "kept/step-00000000/manifest.json");
              }),
              HasSubstr("name the folder"));
}

TEST(ExchangeRefusals, MessagesNameTheFile) {
  EXPECT_THAT(opening(reshaped("llama", "", {}, "h.9.mlp.gate")),
              AllOf(HasSubstr("model.safetensors: the tensor \"h.9.mlp.gate\""),
                    HasSubstr("the nearest is")));
  const TestFolder folder;
  writeFile(folder / "model.safetensors",
            readFile(parityFiles("gpt2/model.safetensors")));
  writeFile(folder / "config.json", "{\"a\": \"\xff\"}");
  EXPECT_THAT(
      messageOf<std::runtime_error>([&] { (void)openWeights(folder / ""); }),
      HasSubstr("config.json: is not UTF-8"));
}

TEST(ExchangeRefusals, AFolderThatHasModelFiles) {
  const TestFolder folder;
  writeFile(folder / "model.safetensors",
            readFile(parityFiles("gpt2/model.safetensors")));
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { importWeights(folder / "", folder / ""); }),
              HasSubstr("would hide"));
  EXPECT_FALSE(std::filesystem::exists(folder / "lock"));
}

TEST(ExchangeRefusals, NothingToOpen) {
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [] { (void)openWeights(parityFiles("none")); }),
              HasSubstr("none"));
  const TestFolder folder;
  EXPECT_THAT(
      messageOf<std::runtime_error>([&] { (void)openWeights(folder / ""); }),
      HasSubstr("has no checkpoint (step-...), and neither "
                "model.safetensors nor"));
}

TEST(ExchangeRefusals, AFolderThatHasCheckpoints) {
  const TestFolder folder;
  importWeights(parityFiles("gpt2"), folder / "kept");
  EXPECT_THAT(messageOf<std::runtime_error>([&] {
                importWeights(parityFiles("llama"), folder / "kept");
              }),
              HasSubstr("has a checkpoint already, of step 0"));
  // The first checkpoint is untouched.
  EXPECT_EQ(openWeights(folder / "kept")->model(), "gpt2");
}

TEST(ExchangeRefusals, ExistingFolderIsKept) {
  const TestFolder folder;
  writeFile(folder / "mine.txt", "precious");
  const auto source = openWeights(parityFiles("gpt2"));
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportHuggingFace(*source, folder / "", {}); }),
              HasSubstr("is there already"));
  EXPECT_EQ(readFile(folder / "mine.txt"), "precious");
}

TEST(ExchangeRefusals, DamageIsFoundBeforeExport) {
  const TestFolder folder;
  importWeights(parityFiles("gpt2"), folder / "kept");
  const std::string path =
      folder / "kept/step-00000000/weights-00001-of-00001.safetensors";
  std::string file = readFile(path);
  file[file.size() - 100] ^= 4;
  writeFile(path, file);
  EXPECT_THAT(messageOf<std::runtime_error>([&] {
                exportHuggingFace(*openWeights(folder / "kept"), folder / "out",
                                  {});
              }),
              AllOf(HasSubstr("has checksum"), HasSubstr("damaged")));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.partial"));
}

TEST(ExchangeRefusals, LlmcStoresGpt2Alone) {
  const TestFolder folder;
  EXPECT_THAT(messageOf<std::runtime_error>([&] {
                exportLlmc(*openWeights(parityFiles("llama")), folder / "a",
                           {});
              }),
              HasSubstr("llm.c supports only GPT-2 with a tied head"));
  const auto source = openWeights(parityFiles("gpt2-f16"));
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportLlmc(*source, folder / "a", {}); }),
              HasSubstr("the weights are in F16"));
  ExportOptions options;
  options.type = ElementType::bf16;
  options.heads = 3;
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportLlmc(*source, folder / "a", options); }),
              HasSubstr("3 heads do not divide 8 channels"));
}

TEST(ExchangeRefusals, OfAnotherFamilyByName) {
  const TestFolder folder;
  const Anonymous source(parityFiles("llama"));
  ExportOptions options;
  options.family = "gpt2";
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportHuggingFace(source, folder / "a", options); }),
              HasSubstr("the model has no parameter"));
  options.family = "lama";
  EXPECT_THAT(messageOf<std::runtime_error>(
                  [&] { exportHuggingFace(source, folder / "a", options); }),
              HasSubstr("the nearest is \"llama\""));
}

} // namespace
} // namespace mtplan::runtime

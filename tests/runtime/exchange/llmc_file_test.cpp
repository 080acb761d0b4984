//===- llmc_file_test.cpp - Model files of llm.c --------------------------===//

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/exchange/exchange_files.h"

namespace mtplan::runtime {
namespace {

using testing::HasSubstr;

std::string given() { return readFile(parityFiles("gpt2-llmc/model.bin")); }

std::string with(std::size_t word, std::int32_t value) {
  std::string file = given();
  std::memcpy(file.data() + word * 4, &value, sizeof(value));
  return file;
}

std::string refusal(const std::string &content) {
  const TestFolder folder;
  const std::string path = writeFile(folder / "model.bin", content);
  return messageOf<std::runtime_error>(
      [&] { (void)readLlmcHeader(MappedFile(path)); });
}

// The file of GPT-2 124M has 1024 + 4 * (50304 * 768 + 1024 * 768 + 12 * (12 *
// 768 * 768 + 13 * 768) + 2 * 768) bytes.
TEST(LlmcFile, HasTheSizesOfGpt2) {
  const LlmcHeader header{ElementType::f32, 1024, 50257, 12, 12, 768, 50304};
  EXPECT_EQ(llmcBytes(header), 497'904'640);
  const std::vector<LlmcTensor> tensors = llmcTensors(header);
  ASSERT_EQ(tensors.size(), 2U + 12U * 12U + 2U);
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{50257, 768}));
  EXPECT_EQ(tensors[1].offset, 1024 + 4 * 50304 * 768);
  EXPECT_EQ(tensors.back().offset + tensors.back().room, 497'904'640);
}

TEST(LlmcFile, BeginsWithItsHeader) {
  const LlmcHeader header{ElementType::bf16, 1024, 50257, 12, 12, 768, 50304};
  const auto words = llmcHeaderWords(header);
  EXPECT_EQ(std::vector(words.begin(), words.begin() + 9),
            (std::vector<std::int32_t>{20240326, 5, 1024, 50257, 12, 12, 768,
                                       50304, 0}));
}

TEST(LlmcFile, InvalidFilesAreReported) {
  EXPECT_EQ(refusal(given()), "");
  EXPECT_THAT(refusal("short"), HasSubstr("has 5 bytes; the header"));
  EXPECT_THAT(refusal(with(0, 20240520)),
              HasSubstr("20240520; an llm.c model"));
  EXPECT_THAT(refusal(with(1, 4)), HasSubstr("is 4; known are 3"));
  for (std::size_t word = 2; word < 8; ++word)
    EXPECT_THAT(refusal(with(word, 0)), HasSubstr("it must be at least 1"));
  EXPECT_THAT(refusal(with(5, 3)), HasSubstr("it must divide the 8 channels"));
  EXPECT_THAT(refusal(with(7, 2)), HasSubstr("at least the vocabulary"));
  EXPECT_THAT(refusal(given() + "x"), HasSubstr("are needed for 2 layers"));
  EXPECT_THAT(refusal(given().substr(0, 5000)), HasSubstr("has 5000 bytes"));
  // The product of these sizes exceeds 64 bits.
  std::string huge = with(6, INT32_MAX - 1);
  const std::int32_t most = INT32_MAX;
  std::memcpy(huge.data() + 16, &most, sizeof(most));
  std::memcpy(huge.data() + 20, "\x01\0\0\0", 4);
  EXPECT_THAT(refusal(huge), HasSubstr("more than 2^63"));
}

} // namespace
} // namespace mtplan::runtime

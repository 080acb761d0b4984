//===- token_file_test.cpp - Files of tokens, whole and broken ------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/token_file.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int32_t> tokensOf(const TokenFile &file,
                                   std::int64_t vocabulary = 1 << 30) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.tokens()));
  file.read(0, tokens, vocabulary);
  return tokens;
}

std::string errorOf(const std::string &path,
                    std::optional<TokenFormat> format = std::nullopt) {
  return messageOf<DataError>([&] { TokenFile::open(path, format); });
}

TEST(TokenFile, TextIsItsBytes) {
  TestFolder folder;
  const auto file = TokenFile::open(writeFile(folder / "a.txt", "Az\xff\n"));
  EXPECT_EQ(file.format(), TokenFormat::text);
  EXPECT_THAT(tokensOf(file), ElementsAre(65, 122, 255, 10));
  EXPECT_EQ(file.sequences(), 1);
  EXPECT_EQ(file.sequenceLength(0), 4);
}

TEST(TokenFile, MegatronGolden) {
  TestFolder folder;
  writeFile(folder / "c.bin", kGoldenBin);
  writeFile(folder / "c.idx", kGoldenIdx);
  for (const char *name : {"c", "c.bin", "c.idx"}) {
    SCOPED_TRACE(name);
    const auto file = TokenFile::open(folder / name);
    EXPECT_EQ(file.format(), TokenFormat::megatron);
    EXPECT_EQ(file.kind(), TokenKind::uint16);
    EXPECT_THAT(tokensOf(file), ElementsAre(10, 11, 12, 13, 20, 21));
    EXPECT_EQ(file.sequences(), 3);
    EXPECT_EQ(file.documents(), 2);
    EXPECT_EQ(file.sequenceLength(2), 2);
    EXPECT_EQ(file.sequenceBegin(2), 4);
    EXPECT_EQ(file.index()->firstSequence(1), 2);
  }
}

TEST(TokenFile, LlmcOfBothKinds) {
  TestFolder folder;
  const auto gpt2 = TokenFile::open(
      writeFile(folder / "g.bin",
                llmcFile<std::uint16_t>(20240520, 1, {50256, 1, 2, 3})));
  EXPECT_EQ(gpt2.format(), TokenFormat::llmc);
  EXPECT_THAT(tokensOf(gpt2), ElementsAre(50256, 1, 2, 3));
  EXPECT_EQ(gpt2.byteOf(1), 1026);
  const auto llama = TokenFile::open(writeFile(
      folder / "l.bin", llmcFile<std::uint32_t>(20240801, 7, {128000, 5})));
  EXPECT_EQ(llama.kind(), TokenKind::uint32);
  EXPECT_THAT(tokensOf(llama), ElementsAre(128000, 5));
}

TEST(TokenFile, LlmcHeadersThatDoNotFit) {
  TestFolder folder;
  auto written = [&](const std::string &content) {
    return writeFile(folder / "x.bin", content);
  };
  EXPECT_THAT(errorOf(written(llmcFile<std::uint16_t>(20240520, 2, {1}))),
              HasSubstr("byte 4: version 2, can read 1"));
  EXPECT_THAT(errorOf(written(llmcFile<std::uint32_t>(20240801, 1, {1}))),
              HasSubstr("byte 4: version 1, can read 7"));
  EXPECT_THAT(
      errorOf(written(llmcFile<std::uint16_t>(20240520, 1, {1, 2}) + "x")),
      HasSubstr("byte 8: 2 tokens take 1028 bytes, the file has 1029"));
  std::string negative = llmcFile<std::uint16_t>(20240520, 1, {});
  negative[11] = '\x80';
  EXPECT_THAT(errorOf(written(negative)), HasSubstr("byte 8: -2147483648"));
  EXPECT_THAT(errorOf(written(bytesOfNumbers<std::int32_t>({20240520, 1}))),
              HasSubstr("has 8 bytes, needs 1024"));
  EXPECT_THAT(errorOf(written(bytesOfNumbers<std::int32_t>({20240522, 1}))),
              HasSubstr("llm.c's evaluation set"));
  EXPECT_THAT(errorOf(written(std::string(1024, 'x')), TokenFormat::llmc),
              HasSubstr("byte 0: number 2021161080, needs 20240520"));
}

TEST(TokenFile, RawWidthsComeFromTheNameOrTheCaller) {
  TestFolder folder;
  const std::string six = bytesOfHex("010002000300");
  EXPECT_THAT(tokensOf(TokenFile::open(writeFile(folder / "a.u16", six))),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(tokensOf(TokenFile::open(writeFile(folder / "a.bin", six),
                                       TokenFormat::uint16)),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(errorOf(folder / "a.bin"),
              HasSubstr("say with --format whether its tokens are uint16 or "
                        "uint32"));
  EXPECT_THAT(errorOf(folder / "a.bin", TokenFormat::uint32),
              HasSubstr("has 6 bytes, no multiple of the 4 of a uint32"));
}

TEST(TokenFile, FilesWithoutTokensAreRejected) {
  TestFolder folder;
  EXPECT_THAT(errorOf(writeFile(folder / "a.txt", "\x1f\x8bzip")),
              HasSubstr("gzip"));
  EXPECT_THAT(errorOf(writeFile(folder / "a.npy", "\x93NUMPY\x01")),
              HasSubstr("NumPy"));
  EXPECT_THAT(errorOf(writeFile(folder / "a.idx", "TNTIDX")),
              HasSubstr("fairseq"));
  EXPECT_THAT(errorOf(folder / "none.txt"), HasSubstr("No such file"));
  EXPECT_THAT(errorOf(folder / ""), HasSubstr("it is a directory"));
  // A format that the caller states overrides the detected one.
  EXPECT_EQ(TokenFile::open(folder / "a.npy", TokenFormat::text).tokens(), 7);
}

TEST(TokenFile, TokensOutOfTheVocabularyAreFoundWithTheirByte) {
  TestFolder folder;
  const auto file =
      TokenFile::open(writeFile(folder / "a.u16", bytesOfHex("010002000300")));
  EXPECT_EQ(messageOf<DataError>([&] { tokensOf(file, 3); }),
            (folder / "a.u16") +
                ": byte 4: token 3, the vocabulary has 3 (0 to 2)");
  EXPECT_THAT(tokensOf(file, 4), ElementsAre(1, 2, 3));
  const auto wide =
      TokenFile::open(writeFile(folder / "a.u32", bytesOfHex("00000080")));
  EXPECT_THAT(messageOf<DataError>([&] { tokensOf(wide, INT64_MAX); }),
              HasSubstr("byte 0: token 2147483648"));
}

TEST(TokenFile, AFileThatShrinksIsNotTouched) {
  TestFolder folder;
  const auto file =
      TokenFile::open(writeFile(folder / "a.txt", std::string(9000, 'x')));
  std::filesystem::resize_file(folder / "a.txt", 10);
  EXPECT_THAT(messageOf<DataError>([&] { tokensOf(file); }),
              HasSubstr("had 9000 bytes when it was opened, has 10 now"));
}

TEST(TokenFile, ReadingBehindTheEndIsRefused) {
  TestFolder folder;
  const auto file = TokenFile::open(writeFile(folder / "a.txt", "abc"));
  std::vector<std::int32_t> two(2);
  EXPECT_THAT(messageOf<DataError>([&] { file.read(2, two, 256); }),
              HasSubstr("byte 2: needs 2 bytes, but the file ends at 3"));
  EXPECT_THROW(file.read(-1, two, 256), DataError);
}

//===----------------------------------------------------------------------===//
// Broken Megatron corpora
//===----------------------------------------------------------------------===//

class BrokenMegatron : public testing::Test {
protected:
  std::string refusal(const std::string &idx,
                      const std::string &bin = kGoldenBin) {
    writeFile(folder / "c.idx", idx);
    writeFile(folder / "c.bin", bin);
    return errorOf(folder / "c", TokenFormat::megatron);
  }
  /// Returns the golden index with one byte changed.
  static std::string with(std::size_t byte, int value) {
    std::string idx = kGoldenIdx;
    idx[byte] = static_cast<char>(value);
    return idx;
  }

  TestFolder folder;
};

TEST_F(BrokenMegatron, EachRuleHasItsMessage) {
  EXPECT_THAT(refusal(with(0, 'X')), HasSubstr("byte 0: does not start"));
  EXPECT_THAT(refusal(with(9, 2)), HasSubstr("byte 9: version 2, can read 1"));
  EXPECT_THAT(refusal(with(17, 7)), HasSubstr("byte 17: element code 7"));
  EXPECT_THAT(refusal(with(18, 4)), HasSubstr("has 94 bytes, but 4 sequences"));
  EXPECT_THAT(refusal(with(25, 0x7f)), HasSubstr("byte 18: 9151314442816847"));
  EXPECT_THAT(refusal(with(33, 0x7f)), HasSubstr("byte 26: 9151314442816847"));
  EXPECT_THAT(refusal(with(26, 0)), HasSubstr("byte 26: 0 document"));
  EXPECT_THAT(refusal(with(37, 0x80)),
              HasSubstr("byte 34: sequence 0 has -2147483645 tokens"));
  EXPECT_THAT(
      refusal(with(42, 9)),
      HasSubstr("byte 42: sequence 2 of 9 tokens ends at byte 26, but"));
  EXPECT_THAT(refusal(with(54, 4)),
              HasSubstr("byte 54: sequence 1 begins at byte 4 of the .bin, the "
                        "one before ends at 6"));
  EXPECT_THAT(refusal(kGoldenIdx, kGoldenBin + "xx"),
              HasSubstr("has 14 bytes, but the sequences of"));
  EXPECT_THAT(refusal(with(70, 1)), HasSubstr("byte 70: document boundary 0"));
  EXPECT_THAT(
      refusal(with(78, 4)),
      HasSubstr("byte 78: document boundary 1 is sequence 4, needs from "
                "0 to 3"));
  EXPECT_THAT(refusal(with(86, 2)),
              HasSubstr("byte 86: the last document ends at sequence 2, there "
                        "are 3"));
  EXPECT_EQ(refusal(kGoldenIdx), "");
  // The index of a multimodal corpus ends with one mode byte per sequence.
  EXPECT_EQ(refusal(kGoldenIdx + std::string(3, '\0')), "");
}

TEST_F(BrokenMegatron, DocumentsAreInOrder) {
  // The document boundaries are 0, 2, 1 and 3.
  std::string idx =
      kGoldenIdx.substr(0, 86) + bytesOfNumbers<std::int64_t>({1, 3});
  idx[26] = 4;
  EXPECT_THAT(refusal(idx),
              HasSubstr("byte 86: document boundary 2 is sequence "
                        "1, needs from 2 to 3"));
}

// The element type is int8 in place of uint16. The sequences have three, one
// and two tokens of one byte. The last token is -128.
TEST_F(BrokenMegatron, NegativeTokensAreOutOfBounds) {
  std::string idx = with(17, 2);
  idx[54] = 3;
  idx[62] = 4;
  EXPECT_EQ(refusal(idx, bytesOfHex("0a0b0c0d1480")), "");
  const auto file = TokenFile::open(folder / "c");
  EXPECT_THAT(messageOf<DataError>([&] { tokensOf(file); }),
              HasSubstr("byte 5: token 128, the vocabulary has 128"));
}

TEST_F(BrokenMegatron, CutAnywhereIsRefused) {
  for (std::size_t size = 0; size < kGoldenIdx.size(); ++size)
    EXPECT_NE(refusal(kGoldenIdx.substr(0, size)), "") << size;
  for (std::size_t size = 0; size < kGoldenBin.size(); ++size)
    EXPECT_NE(refusal(kGoldenIdx, kGoldenBin.substr(0, size)), "") << size;
}

// No value of any byte makes a reader access memory outside the file.
TEST_F(BrokenMegatron, AnyByteChangedIsReadOrRefused) {
  int read = 0;
  for (std::size_t byte = 0; byte < kGoldenIdx.size(); ++byte)
    for (int value : {0, 5, 0x80})
      if (refusal(with(byte, value)).empty()) {
        const auto file = TokenFile::open(folder / "c");
        std::vector<std::int32_t> tokens;
        for (std::int64_t i = 0; i < file.sequences(); ++i) {
          tokens.resize(static_cast<std::size_t>(file.sequenceLength(i)));
          file.read(file.sequenceBegin(i), tokens, 1 << 30);
        }
        ++read;
      }
  EXPECT_GT(read, 60); // e.g. if a byte 0 is set to 0
}

} // namespace
} // namespace mtplan::runtime

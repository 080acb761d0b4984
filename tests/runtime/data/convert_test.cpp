//===- convert_test.cpp - The same tokens in another format ---------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/data_command.h"
#include "runtime/data/digest.h"
#include "runtime/data/files.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

using testing::HasSubstr;

std::string sha256(const std::string &bytes) {
  Sha256 sum;
  sum.add(bytes.data(), bytes.size());
  return sum.finish();
}

// The examples are those of FIPS 180-2.
TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca49599"
                        "1b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb41"
                           "0ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAreTheWhole) {
  const std::string bytes(300, 'x');
  for (std::size_t piece = 1; piece < 200; ++piece) {
    Sha256 sum;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      sum.add(bytes.data() + at, std::min(piece, bytes.size() - at));
    EXPECT_EQ(sum.finish(), sha256(bytes)) << piece;
  }
}

ConvertOptions to(TokenFormat format) {
  ConvertOptions options;
  options.to = format;
  return options;
}

TEST(Convert, LlmcGolden) {
  TestFolder folder;
  const std::string raw = writeFile(
      folder / "a.u16", bytesOfNumbers<std::uint16_t>({50256, 1, 2, 3}));
  convertTokens(TokenFile::open(raw), folder / "a.bin", to(TokenFormat::llmc));
  EXPECT_EQ(sha256(readFile(folder / "a.bin")),
            "7a1c9edb633bf88242189e9188b5ca5f8600a85e84d3a8b6d5ccd49a706da83b");
}

// The golden files pass through every format and return byte for byte.
TEST(Convert, MegatronRoundTrips) {
  TestFolder folder;
  writeFile(folder / "c.bin", kGoldenBin);
  writeFile(folder / "c.idx", kGoldenIdx);
  const TokenFile golden = TokenFile::open(folder / "c");
  const Converted copied =
      convertTokens(golden, folder / "copy.bin", to(TokenFormat::megatron));
  EXPECT_EQ(copied.tokens, 6);
  EXPECT_EQ(copied.documents, 2);
  EXPECT_EQ(readFile(folder / "copy.bin"), kGoldenBin);
  EXPECT_EQ(readFile(folder / "copy.idx"), kGoldenIdx);
  convertTokens(golden, folder / "t.u16", to(TokenFormat::uint16));
  EXPECT_EQ(readFile(folder / "t.u16"), kGoldenBin);
  convertTokens(golden, folder / "t.u32", to(TokenFormat::uint32));
  EXPECT_EQ(readFile(folder / "t.u32"),
            bytesOfNumbers<std::uint32_t>({10, 11, 12, 13, 20, 21}));
  convertTokens(golden, folder / "t.txt", to(TokenFormat::text));
  EXPECT_EQ(readFile(folder / "t.txt"), "\n\v\f\r\x14\x15");
}

TEST(Convert, EndTokensMakeDocuments) {
  TestFolder folder;
  const std::string text = writeFile(folder / "a.txt", "ab\ncd\n\ne");
  ConvertOptions options;
  options.endOfDocument = '\n';
  const Converted result =
      convertTokens(TokenFile::open(text), folder / "m", options);
  EXPECT_EQ(result.documents, 4);
  const TokenFile made = TokenFile::open(folder / "m");
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < made.sequences(); ++i)
    lengths.push_back(made.sequenceLength(i));
  EXPECT_THAT(lengths, testing::ElementsAre(3, 3, 1, 1));
  // A text without end tokens is one document.
  options.endOfDocument.reset();
  EXPECT_EQ(
      convertTokens(TokenFile::open(text), folder / "m", options).documents, 1);
  EXPECT_EQ(TokenFile::open(folder / "m").sequenceLength(0), 8);
}

TEST(Convert, WidthsFollowTheVocabulary) {
  TestFolder folder;
  const auto kindOf = [&](std::uint32_t largest, TokenFormat format,
                          std::optional<std::int64_t> vocabulary = {}) {
    const std::string raw = writeFile(
        folder / "a.u32", bytesOfNumbers<std::uint32_t>({0, largest}));
    ConvertOptions options = to(format);
    options.vocabulary = vocabulary;
    const TokenKind kind =
        convertTokens(TokenFile::open(raw), folder / "o.bin", options).kind;
    std::vector<std::int32_t> back(2);
    TokenFile::open(folder / "o.bin", format).read(0, back, INT64_MAX);
    EXPECT_EQ(back[1], static_cast<std::int32_t>(largest));
    return kind;
  };
  EXPECT_EQ(kindOf(65498, TokenFormat::megatron), TokenKind::uint16);
  EXPECT_EQ(kindOf(65499, TokenFormat::megatron), TokenKind::int32);
  EXPECT_EQ(kindOf(5, TokenFormat::megatron, 65500), TokenKind::int32);
  EXPECT_EQ(kindOf(65535, TokenFormat::llmc), TokenKind::uint16);
  EXPECT_EQ(kindOf(65536, TokenFormat::llmc), TokenKind::uint32);
}

TEST(Convert, FailedConversionLeavesTheOldFile) {
  TestFolder folder;
  const std::string raw =
      writeFile(folder / "a.u32", bytesOfNumbers<std::uint32_t>({7, 300}));
  writeFile(folder / "o.txt", "old");
  EXPECT_EQ(messageOf<DataError>([&] {
              convertTokens(TokenFile::open(raw), folder / "o.txt",
                            to(TokenFormat::text));
            }),
            raw + ": byte 4: token 300, the vocabulary has 256 (0 to 255)");
  EXPECT_EQ(readFile(folder / "o.txt"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}),
            2);
}

TEST(WholeFile, MissingFolderIsNamed) {
  const std::string message = messageOf<DataError>([] {
    TestFolder folder;
    WholeFile file(folder / "missing" + "/a");
  });
  EXPECT_THAT(message, HasSubstr("cannot be written: No such file"));
}

//===----------------------------------------------------------------------===//
// Output of the commands
//===----------------------------------------------------------------------===//

TEST(DataCommand, InfoOfTextAndMegatron) {
  TestFolder folder;
  const std::string text = writeFile(folder / "a.txt", std::string(1001, 'a'));
  EXPECT_EQ(dataInfo(text, std::nullopt, 100),
            "file        " + text +
                "\n"
                "format      text, a token is a byte\n"
                "bytes       1,001\n"
                "tokens      1,001\n"
                "samples     10 in an epoch, of 100 tokens and the next\n"
                "sha256      " +
                sha256(std::string(1001, 'a')) + "\n");
  writeFile(folder / "c.bin", kGoldenBin);
  writeFile(folder / "c.idx", kGoldenIdx);
  EXPECT_EQ(dataInfo(folder / "c", std::nullopt, std::nullopt),
            "file        " + (folder / "c.bin") +
                "\n"
                "format      megatron .bin and .idx, tokens are uint16\n"
                "bytes       12\n"
                "tokens      6\n"
                "documents   2\n"
                "sequences   3, of 1 to 3 tokens\n"
                "sha256      " +
                sha256(kGoldenBin) + "\n  .idx      " + sha256(kGoldenIdx) +
                "\n");
}

TEST(DataCommand, CheckReportsCountsOrTheFirstFault) {
  TestFolder folder;
  const std::string raw =
      writeFile(folder / "a.u16", bytesOfNumbers<std::uint16_t>({1, 40000, 3}));
  EXPECT_EQ(dataCheck(raw, std::nullopt, std::nullopt),
            raw + ": uint16, 3 tokens, the largest is 40,000: no faults "
                  "found\n");
  EXPECT_EQ(messageOf<DataError>([&] { dataCheck(raw, {}, 256); }),
            raw + ": byte 2: token 40000, the vocabulary has 256 (0 to 255)");
  const std::string empty = writeFile(folder / "b.txt", "");
  EXPECT_EQ(messageOf<DataError>([&] { dataCheck(empty, {}, {}); }),
            empty + ": has no tokens");
}

TEST(DataCommand, ConvertReportsItsOutput) {
  TestFolder folder;
  const std::string text = writeFile(folder / "a.txt", "one\ntwo\n");
  ConvertOptions options;
  options.endOfDocument = '\n';
  EXPECT_EQ(dataConvert(text, std::nullopt, folder / "m", options),
            text + " -> " + (folder / "m.bin") + " and " + (folder / "m.idx") +
                ": 8 tokens in 2 documents, uint16\n");
  EXPECT_THAT(messageOf<DataError>([&] {
                dataConvert(folder / "m", std::nullopt, folder / "m.bin",
                            options);
              }),
              HasSubstr("m.bin: is what FILE names; give it another name"));
  // The output n.bin is a link to the .idx file of the input.
  std::filesystem::create_symlink(folder / "m.idx", folder / "n.bin");
  EXPECT_THAT(messageOf<DataError>([&] {
                dataConvert(folder / "m", std::nullopt, folder / "n", options);
              }),
              HasSubstr("n.bin: is what FILE names; give it another name"));
  EXPECT_EQ(dataConvert(folder / "m", std::nullopt, folder / "back.txt",
                        to(TokenFormat::text)),
            (folder / "m.bin") + " -> " + (folder / "back.txt") +
                ": 8 tokens, uint8\n");
  EXPECT_EQ(readFile(folder / "back.txt"), "one\ntwo\n");
}

} // namespace
} // namespace mtplan::runtime

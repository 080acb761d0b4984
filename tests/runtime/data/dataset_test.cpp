//===- dataset_test.cpp - Samples in one global order ---------------------===//

#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/dataset.h"
#include "runtime/data/digest.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int32_t> sampleOf(const Dataset &data, std::int64_t index) {
  std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(data.options().sequence) + 1);
  data.sample(index, tokens);
  return tokens;
}

TEST(Permutation, ReachesEachNumberOnceInEveryEpoch) {
  for (std::int64_t size : {1, 2, 3, 4, 5, 16, 17, 64, 65, 1000}) {
    SCOPED_TRACE(size);
    for (std::int64_t epoch : {0, 1, 7}) {
      const Permutation order(size, 42, epoch);
      std::set<std::int64_t> seen;
      for (std::int64_t i = 0; i < size; ++i)
        seen.insert(order(i));
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(size));
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), size - 1);
    }
  }
}

// A second implementation, in Python, made these orders. They may not change.
TEST(Permutation, GoldenOrders) {
  const auto all = [](std::uint64_t seed, std::int64_t epoch) {
    const Permutation order(10, seed, epoch);
    std::vector<std::int64_t> values(10);
    for (std::size_t i = 0; i < 10; ++i)
      values[i] = order(static_cast<std::int64_t>(i));
    return values;
  };
  EXPECT_THAT(all(1234, 0), ElementsAre(6, 3, 7, 4, 0, 2, 5, 1, 9, 8));
  EXPECT_THAT(all(1234, 1), ElementsAre(0, 8, 3, 2, 6, 4, 9, 7, 1, 5));
  EXPECT_THAT(all((std::uint64_t{7} << 32) + 5, (std::int64_t{1} << 32) + 2),
              ElementsAre(9, 8, 5, 4, 6, 0, 7, 1, 3, 2));
}

TEST(Permutation, SeedsAndEpochsDiffer) {
  const Permutation base(1000, 1, 0), seed(1000, 2, 0), epoch(1000, 1, 1);
  int stays = 0, sameSeed = 0, sameEpoch = 0;
  for (int i = 0; i < 1000; ++i) {
    stays += base(i) == i;
    sameSeed += base(i) == seed(i);
    sameEpoch += base(i) == epoch(i);
  }
  // Each count is one on average, and above ten with probability below 1e-7.
  EXPECT_LE(stays, 10);
  EXPECT_LE(sameSeed, 10);
  EXPECT_LE(sameEpoch, 10);
}

// A chi-squared test over ten intervals of equal length shows that the first
// index of a permutation of 1000 is uniform.
TEST(Permutation, IsUniform) {
  std::vector<int> parts(10);
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    ++parts[static_cast<std::size_t>(Permutation(1000, seed, 3)(0) / 100)];
  double chi = 0.0;
  for (int part : parts)
    chi += (part - 200.0) * (part - 200.0) / 200.0;
  EXPECT_LT(chi, 27.9); // 0.1 % level, nine degrees of freedom
}

// Token i has the value i. With sequences of 4 tokens, samples of the 21 tokens
// begin at tokens 0, 4, 8, 12 and 16.
class CountingText : public testing::Test {
protected:
  CountingText() {
    std::string bytes(21, '\0');
    std::iota(bytes.begin(), bytes.end(), '\0');
    options.path = writeFile(folder / "counting.txt", bytes);
    options.sequence = 4;
  }

  TestFolder folder;
  DataOptions options;
};

TEST_F(CountingText, EveryEpochHasEachSampleOnceInItsOwnOrder) {
  const auto data = openDataset(options);
  EXPECT_EQ(data->samplesPerEpoch(), 5);
  EXPECT_EQ(data->samples(), std::nullopt);
  std::set<std::vector<std::int32_t>> orders;
  for (int epoch = 0; epoch < 6; ++epoch) {
    std::set<std::int32_t> starts;
    std::vector<std::int32_t> order;
    for (int i = 0; i < 5; ++i) {
      const auto tokens = sampleOf(*data, epoch * 5 + i);
      const std::int32_t first = tokens[0];
      EXPECT_THAT(tokens, ElementsAre(first, first + 1, first + 2, first + 3,
                                      first + 4));
      starts.insert(first);
      order.push_back(first);
    }
    EXPECT_THAT(starts, ElementsAre(0, 4, 8, 12, 16));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 4U);
}

TEST_F(CountingText, OrderDependsOnTheSeedAlone) {
  const auto one = openDataset(options), same = openDataset(options);
  options.seed = 1;
  options.samples = 1000; // has no effect here
  const auto other = openDataset(options);
  int differ = 0;
  for (int i = 99; i >= 0; --i) {
    EXPECT_EQ(sampleOf(*one, i), sampleOf(*same, i));
    differ += sampleOf(*one, i) != sampleOf(*other, i);
  }
  EXPECT_GT(differ, 40);
}

// A split of 3 : 1 gives training 16 of 21 tokens (15.75 rounded), or 3
// samples, and validation 5 tokens, or one sample.
TEST_F(CountingText, PartsShareNoToken) {
  options.split = {3, 1, 0};
  const auto train = openDataset(options);
  EXPECT_EQ(train->samplesPerEpoch(), 3);
  for (int i = 0; i < 3; ++i)
    EXPECT_LT(sampleOf(*train, i).back(), 16);
  options.part = DataPart::validation;
  const auto validation = openDataset(options);
  EXPECT_EQ(validation->samplesPerEpoch(), 1);
  EXPECT_THAT(sampleOf(*validation, 0), ElementsAre(16, 17, 18, 19, 20));
  options.part = DataPart::test;
  EXPECT_THAT(messageOf<DataError>([&] { openDataset(options); }),
              HasSubstr("its test part has 0 tokens, one sample of sequence "
                        "length 4 needs 5"));
}

// Any changed byte changes the identity; another name does not.
TEST_F(CountingText, IdentityDependsOnAllBytesAndNoName) {
  const std::string bytes = readFile(options.path);
  const std::string identity = openDataset(options)->identity();
  EXPECT_EQ(identity, "text, 21 bytes, xxh128 " + textOf(digestOf(bytes)));
  const std::string moved = folder / "moved.txt";
  options.path = moved;
  writeFile(moved, bytes);
  EXPECT_EQ(openDataset(options)->identity(), identity);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 1;
    writeFile(moved, changed);
    EXPECT_NE(openDataset(options)->identity(), identity) << i;
  }
  writeFile(moved, bytes + '\0');
  EXPECT_NE(openDataset(options)->identity(), identity);
}

// Files are read 1 MiB at a time. Some of the sizes are no multiple of 1 MiB.
TEST(Digest, DigestOfAFileIsThatOfItsBytes) {
  const TestFolder folder;
  std::string bytes((3 << 20) + 77, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 2654435761U >> 13);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{1} << 20, bytes.size()}) {
    const std::string some = bytes.substr(0, size);
    EXPECT_EQ(digestOf(MappedFile(writeFile(folder / "bytes", some))),
              digestOf(some))
        << size;
  }
}

TEST_F(CountingText, OneSampleMustFit) {
  options.sequence = 20;
  EXPECT_EQ(openDataset(options)->samplesPerEpoch(), 1);
  options.sequence = 21;
  EXPECT_THAT(messageOf<DataError>([&] { openDataset(options); }),
              HasSubstr("has 21 tokens, one sample of sequence length 21 needs "
                        "22"));
}

TEST(RandomTokens, AreBelowTheVocabularyAndFixedBySample) {
  DataOptions options;
  options.sequence = 99;
  options.vocabulary = 5;
  const auto data = randomDataset(options), same = randomDataset(options);
  std::vector<int> seen(5);
  for (int i = 9; i >= 0; --i) {
    EXPECT_EQ(sampleOf(*data, i), sampleOf(*same, i));
    EXPECT_NE(sampleOf(*data, i), sampleOf(*data, i + 1));
    for (std::int32_t token : sampleOf(*data, i))
      ++seen.at(static_cast<std::size_t>(token));
  }
  // A sample is not its neighbour shifted by one token.
  const auto first = sampleOf(*data, 0), second = sampleOf(*data, 1);
  EXPECT_FALSE(std::equal(first.begin() + 1, first.end(), second.begin()));
  for (int count : seen) // 51 is four standard errors of 200 in 1000
    EXPECT_NEAR(count, 200, 51);
}

TEST(SplitPoints, AreRoundedHalfToEven) {
  EXPECT_EQ(splitPoints({1, 0, 0}, 7),
            (std::array<std::int64_t, 4>{0, 7, 7, 7}));
  // 969,30,1 is Megatron-LM's default.
  EXPECT_EQ(splitPoints({969, 30, 1}, 1000),
            (std::array<std::int64_t, 4>{0, 969, 999, 1000}));
  // 2.5 is rounded to 2, and 3.5 to 4.
  EXPECT_EQ(splitPoints({1, 1, 0}, 5),
            (std::array<std::int64_t, 4>{0, 2, 5, 5}));
  EXPECT_EQ(splitPoints({1, 1, 0}, 7),
            (std::array<std::int64_t, 4>{0, 4, 7, 7}));
  EXPECT_THROW(splitPoints({0, 0, 0}, 7), std::invalid_argument);
  EXPECT_THROW(splitPoints({2, -1, 0}, 7), std::invalid_argument);
}

// The sequences have 3, 1, 2, 5 and 4 tokens. Token j of sequence i has the
// value 10 * i + j. Each sequence is a document.
class MegatronCorpus : public testing::Test {
protected:
  MegatronCorpus() {
    const std::vector<std::int32_t> lengths = {3, 1, 2, 5, 4};
    std::vector<std::uint16_t> tokens;
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      offsets.push_back(static_cast<std::int64_t>(2 * tokens.size()));
      for (int j = 0; j < lengths[i]; ++j)
        tokens.push_back(
            static_cast<std::uint16_t>(10 * i + static_cast<std::size_t>(j)));
    }
    writeFile(folder / "c.bin", bytesOfNumbers(tokens));
    writeFile(folder / "c.idx",
              kGoldenIdx.substr(0, 18) + bytesOfNumbers<std::uint64_t>({5, 6}) +
                  bytesOfNumbers(lengths) + bytesOfNumbers(offsets) +
                  bytesOfNumbers<std::int64_t>({0, 1, 2, 3, 4, 5}));
    options.path = folder / "c";
    options.sequence = 4;
  }

  TestFolder folder;
  DataOptions options;
};

// The documents have the order 4 0 1 2 3, in which samples begin at documents
// 4, 0 and 2. The second of these samples is drawn first: it has documents 0
// and 1 and one token of document 2. The third is drawn next, and the first is
// last.
TEST_F(MegatronCorpus, SamplesEqualMegatrons) {
  options.samples = 3;
  const auto data = openDataset(options);
  EXPECT_EQ(data->samples(), 3);
  EXPECT_EQ(data->samplesPerEpoch(), 3);
  EXPECT_THAT(sampleOf(*data, 0), ElementsAre(0, 1, 2, 10, 20));
  EXPECT_THAT(sampleOf(*data, 1), ElementsAre(20, 21, 30, 31, 32));
  EXPECT_THAT(sampleOf(*data, 2), ElementsAre(40, 41, 42, 43, 0));
  EXPECT_THAT(messageOf<DataError>([&] { sampleOf(*data, 3); }),
              HasSubstr("sample 3 of 3: the order was made for 3"));
}

// Two epochs have the documents in the order 2 2 4 1 0 3 4 0 1 3. The sample
// that is drawn first begins where document 1 occurs again. The next sample
// begins at the last token of the first occurrence of document 3.
TEST_F(MegatronCorpus, SamplesBeginWithinDocuments) {
  options.samples = 7;
  const auto data = openDataset(options);
  EXPECT_THAT(sampleOf(*data, 0), ElementsAre(10, 30, 31, 32, 33));
  EXPECT_THAT(sampleOf(*data, 1), ElementsAre(34, 40, 41, 42, 43));
}

TEST_F(MegatronCorpus, IsSplitBySequences) {
  options.split = {3, 2, 0}; // sequences 0 1 2, then 3 4
  const auto train = openDataset(options);
  EXPECT_EQ(train->samplesPerEpoch(), 1); // six tokens
  for (std::int32_t token : sampleOf(*train, 0))
    EXPECT_LT(token, 30);
  options.part = DataPart::validation;
  for (std::int32_t token : sampleOf(*openDataset(options), 0))
    EXPECT_GE(token, 30);
  options.part = DataPart::test;
  EXPECT_THAT(messageOf<DataError>([&] { openDataset(options); }),
              HasSubstr("its test part has 0 tokens"));
}

// The identity depends also on the .idx file and on the order of the samples.
// The number of samples changes the order if they need more than one epoch.
TEST_F(MegatronCorpus, IdentityDependsOnBothFilesAndTheOrder) {
  options.samples = 2;
  const std::string identity = openDataset(options)->identity();
  EXPECT_THAT(identity,
              HasSubstr("megatron, .bin 30 bytes, xxh128 " +
                        textOf(digestOf(readFile(folder / "c.bin")))));
  EXPECT_THAT(identity,
              HasSubstr(textOf(digestOf(readFile(folder / "c.idx")))));
  options.samples = 3;
  EXPECT_EQ(openDataset(options)->identity(), identity);
  options.samples = 7;
  EXPECT_NE(openDataset(options)->identity(), identity);
  options.samples = 2;
  options.seed = 5;
  EXPECT_NE(openDataset(options)->identity(), identity);
}

TEST_F(MegatronCorpus, TokensAboveTheModelsVocabularyAreRefused) {
  options.vocabulary = 43;
  const auto data = openDataset(options);
  EXPECT_NO_THROW(sampleOf(*data, 0));
  EXPECT_THAT(messageOf<DataError>([&] { sampleOf(*data, 2); }),
              HasSubstr("c.bin: byte 28: token 43, the vocabulary has 43"));
}

} // namespace
} // namespace mtplan::runtime

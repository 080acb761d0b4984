//===- begin_sums_test.cpp - The first terms of gradient sums -------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/schedule/begin_sums.h"

namespace mtplan::passes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

constexpr FirstTerm inAllCopies(int microBatch) {
  return {microBatch, std::nullopt};
}

TEST(FirstTerms, AreOfTheFirstMicroBatchThatRuns) {
  EXPECT_THAT(firstTermsOf(1, {{0, 0, 0, 0}, {0, 1, 0, 0}}),
              Optional(ElementsAre(Pair(0, inAllCopies(0)))));
  EXPECT_THAT(firstTermsOf(1, {{0, 1, 0, 0}, {0, 0, 0, 0}}),
              Optional(ElementsAre(Pair(0, inAllCopies(1)))));
}

TEST(FirstTerms, AreOfTheFirstAdder) {
  EXPECT_THAT(firstTermsOf(1, {{0, 0, 0, 0}, {0, 0, 0, 1}}),
              Optional(ElementsAre(Pair(0, inAllCopies(0)))));
}

TEST(FirstTerms, AreMissingIfASumIsReadFirst) {
  EXPECT_EQ(firstTermsOf(1, {{0, 0, 0, std::nullopt}, {0, 0, 0, 0}}),
            std::nullopt);
  EXPECT_THAT(firstTermsOf(1, {{0, 0, 0, 0}, {0, 0, 0, std::nullopt}}),
              Optional(ElementsAre(Pair(0, inAllCopies(0)))));
}

TEST(FirstTerms, AreOfTheSameMicroBatchInAllPieces) {
  EXPECT_THAT(
      firstTermsOf(2, {{0, 0, 0, 0}, {1, 0, 1, 0}, {0, 1, 0, 0}, {1, 1, 1, 0}}),
      Optional(ElementsAre(Pair(0, inAllCopies(0)))));
  EXPECT_EQ(firstTermsOf(2, {{0, 0, 0, 0}, {1, 1, 1, 0}}), std::nullopt);
}

TEST(FirstTerms, AreMissingIfAPieceGetsNoTerm) {
  EXPECT_EQ(firstTermsOf(3, {{0, 0, 0, 0}, {1, 0, 1, 0}}), std::nullopt);
  EXPECT_EQ(firstTermsOf(1, {}), std::nullopt);
}

// All layers add to one sum. Layer 7 runs first and adds the first term.
TEST(FirstTerms, AreOfOneLayerIfAllAddToOneSum) {
  EXPECT_THAT(
      firstTermsOf(1, {{0, 0, 7, 0}, {0, 0, 6, 0}, {0, 1, 7, 0}, {0, 1, 6, 0}}),
      Optional(ElementsAre(Pair(0, FirstTerm{0, 7}))));
}

// In layer 1, operation 1 adds the first term of piece 2. In layer 0, it adds
// to piece 1, which already has a term.
TEST(FirstTerms, AreOfOneLayerIfOtherLayersAddLater) {
  EXPECT_THAT(
      firstTermsOf(3, {{1, 0, 1, 0}, {2, 0, 1, 1}, {0, 0, 0, 0}, {1, 0, 0, 1}}),
      Optional(ElementsAre(Pair(0, inAllCopies(0)), Pair(1, FirstTerm{0, 1}))));
}

} // namespace
} // namespace mtplan::passes

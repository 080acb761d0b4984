//===- first_terms_test.cpp - In which run a sum begins -------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/schedule/first_terms.h"

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

TEST(FirstTerms, AreOfTheAdderThatComesFirst) {
  EXPECT_THAT(firstTermsOf(1, {{0, 0, 0, 0}, {0, 0, 0, 1}}),
              Optional(ElementsAre(Pair(0, inAllCopies(0)))));
}

TEST(FirstTerms, AreMissingWhereASumIsReadBefore) {
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

TEST(FirstTerms, AreMissingWhereAPieceGetsNoTerm) {
  EXPECT_EQ(firstTermsOf(3, {{0, 0, 0, 0}, {1, 0, 1, 0}}), std::nullopt);
  EXPECT_EQ(firstTermsOf(1, {}), std::nullopt);
}

// All layers look up one table.
TEST(FirstTerms, AreOfOneCopyWhereAllAddToOneSum) {
  EXPECT_THAT(
      firstTermsOf(1, {{0, 0, 7, 0}, {0, 0, 6, 0}, {0, 1, 7, 0}, {0, 1, 6, 0}}),
      Optional(ElementsAre(Pair(0, FirstTerm{0, 7}))));
}

// The second adder is first in the third piece, and adds to the second.
TEST(FirstTerms, AreOfOneCopyWhereOthersAreLater) {
  EXPECT_THAT(
      firstTermsOf(3, {{1, 0, 1, 0}, {2, 0, 1, 1}, {0, 0, 0, 0}, {1, 0, 0, 1}}),
      Optional(ElementsAre(Pair(0, inAllCopies(0)), Pair(1, FirstTerm{0, 1}))));
}

} // namespace
} // namespace mtplan::passes

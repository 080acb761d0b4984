//===- text_test.cpp - Names of the emitted program -----------------------===//

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "codegen/source/text.h"

namespace mtplan::codegen {
namespace {

TEST(Identifier, IsNeverAKeyword) {
  std::set<std::string> taken;
  for (const char *word : {"namespace", "nullptr", "requires", "xor_eq",
                           "char8_t", "co_await", "int", "thread_local"})
    EXPECT_EQ(identifierFor(word, taken), std::string("the_") + word);
}

TEST(Identifier, IsMadeOfTheNamesLettersAndDigits) {
  std::set<std::string> taken;
  EXPECT_EQ(identifierFor("h.*.mlp.fc1", taken), "h_mlp_fc1");
  EXPECT_EQ(identifierFor("h.mlp.fc1", taken), "h_mlp_fc1_2");
  EXPECT_EQ(identifierFor("0.weight", taken), "the_0_weight");
  EXPECT_EQ(identifierFor("*", taken), "the_");
}

} // namespace
} // namespace mtplan::codegen

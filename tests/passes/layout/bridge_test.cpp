//===- bridge_test.cpp - Operators in the planner's words -----------------===//

#include <map>
#include <set>

#include <gmock/gmock.h>

#include "tests/passes/random_plan.h"

namespace mtplan::passes {
namespace {

using testing::ElementsAre;
using Variants = std::map<std::string, std::set<std::string>>;

// By kind, of all operators that have one.
Variants variantsOf(const Family &family) {
  Variants variants;
  for (const planner::SegmentGraph &segment : Step(family, 1, 1).graph.segments)
    for (const planner::Op &op : segment.ops)
      if (!op.variant.empty())
        variants[op.kind].insert(op.variant);
  return variants;
}

TEST(Bridge, SaysWhichFunctionAndWhetherAttentionDrops) {
  EXPECT_EQ(variantsOf({"tiny-gpt2"}),
            (Variants{{"activation", {"gelu_tanh"}},
                      {"activation_grad", {"gelu_tanh"}},
                      {"attention", {"dropout"}},
                      {"attention_grad", {"dropout"}}}));
  EXPECT_EQ(
      variantsOf({"tiny-bert", "\"attention_probs_dropout_prob\": 0.1",
                  "\"attention_probs_dropout_prob\": 0.0"}),
      (Variants{{"activation", {"gelu"}}, {"activation_grad", {"gelu"}}}));
  EXPECT_THAT(variantsOf({"tiny-llama"}), ElementsAre());
}

} // namespace
} // namespace mtplan::passes

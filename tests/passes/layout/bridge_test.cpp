//===- bridge_test.cpp - Operators in the planner's graph -----------------===//

#include <map>
#include <set>

#include <gmock/gmock.h>

#include "planner/graph/op_graph.h"
#include "tests/passes/verify/random_plan.h"
#include "tests/planner/graph_check.h"

namespace mtplan::passes {
namespace {

using testing::ElementsAre;
using Variants = std::map<std::string, std::set<std::string>>;

// Returns the variants of a family's operators, by kind of operator.
Variants variantsOf(const Family &family) {
  Variants variants;
  for (const planner::SegmentGraph &segment : Step(family, 1, 1).graph.segments)
    for (const planner::Op &op : segment.ops)
      if (!op.variant.empty())
        variants[op.kind].insert(op.variant);
  return variants;
}

TEST(Bridge, VariantsNameTheActivationAndAttentionDropout) {
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

// Returns "<operator> follows <fused operand>" for a segment's fused operators.
std::vector<std::string> followersOf(const Family &family, std::size_t s) {
  std::vector<std::string> pairs;
  const planner::SegmentGraph segment = Step(family, 1, 1).graph.segments.at(s);
  EXPECT_THAT(planner::check(Step(family, 1, 1).graph), ElementsAre());
  for (const planner::Op &op : segment.ops)
    if (op.fusedOperand >= 0) {
      const auto operand = static_cast<std::size_t>(op.fusedOperand);
      const int tensor = op.operands[operand].tensor;
      pairs.push_back(op.name + " follows " +
                      segment.tensors[static_cast<std::size_t>(tensor)].name);
    }
  return pairs;
}

// The passes fuse each of these pairs into one instruction. In GPT-2, dropout
// is between a projection and the residual add.
TEST(Bridge, MarksFusedConsumers) {
  EXPECT_THAT(followersOf({"tiny-gpt2"}, 1),
              ElementsAre("h.*.attn.add follows h.*.attn.drop",
                          "h.*.mlp.act follows h.*.mlp.fc1",
                          "h.*.mlp.add follows h.*.mlp.drop",
                          "h.*.mlp.act.grad follows h.*.mlp.fc2.dx",
                          "h.*.ln_2.sum follows h.*.ln_2.grad",
                          "h.*.attn.k.sum follows h.*.attn.v.dx",
                          "h.*.attn.q.sum follows h.*.attn.q.dx",
                          "h.*.ln_1.sum follows h.*.ln_1.grad"));
  EXPECT_THAT(followersOf({"tiny-llama"}, 1),
              ElementsAre("h.*.attn.add follows h.*.attn.proj",
                          "h.*.mlp.add follows h.*.mlp.down",
                          "h.*.mlp.gate.sum follows h.*.mlp.up.dx",
                          "h.*.ln_2.sum follows h.*.ln_2.grad",
                          "h.*.attn.k.sum follows h.*.attn.v.dx",
                          "h.*.attn.q.sum follows h.*.attn.q.dx",
                          "h.*.ln_1.sum follows h.*.ln_1.grad"));
}

} // namespace
} // namespace mtplan::passes

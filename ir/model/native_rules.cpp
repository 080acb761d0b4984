//===- native_rules.cpp - The table of forward operators --------*- C++ -*-===//

#include "ir/model/native_operators.h"

namespace mtplan::ir {

const std::vector<OperatorRule> &operatorRules() {
  using K = AttributeKind;
  static const AttributeRule kEpsilon = {"epsilon", K::real, false,
                                         0.0,       1.0,     1.0e-5};
  static const AttributeRule kRate = {"rate", K::real};
  static const AttributeRule kMask = {"mask", K::mask};
  static const AttributeRule kClasses = {"classes", K::classes};
  static const std::vector<OperatorRule> kRules = {
      {"add", {{"lhs", "..."}, {"rhs", "..."}}, "..."},
      {"mul", {{"lhs", "..."}, {"rhs", "..."}}, "..."},
      {"scale",
       {{"input", "..."}},
       "...",
       false,
       0,
       {{"factor", K::real, true, -1.0e30, 1.0e30}}},
      {"dropout",
       {{"input", "..."}},
       "...",
       false,
       0,
       {{"rate", K::real, true}, kMask}},
      {"activation",
       {{"input", "..."}},
       "...",
       false,
       0,
       {{"kind", K::activation, true}}},
      {"swiglu", {{"gate", "..."}, {"up", "..."}}, "..."},
      {"layer_norm",
       {{"input", "... d"}, {"gamma", "d"}, {"beta", "d"}},
       "... d",
       false,
       0,
       {kEpsilon}},
      {"rms_norm",
       {{"input", "... d"}, {"gamma", "d"}},
       "... d",
       false,
       0,
       {kEpsilon}},
      {"softmax", {{"input", "... d"}}, "... d"},
      {"sum", {{"input", "..."}}, "...", false, 0, {{"keep", K::keep, true}}},
      {"embedding", {{"ids", "# ..."}, {"table", "v d"}}, "... d", false, 1},
      {"position_embedding", {{"input", "b s d"}, {"table", "p d"}}, "b s d"},
      {"rope",
       {{"input", "b s q"}},
       "b s q",
       false,
       0,
       {{"head_dim", K::count, true},
        {"rotary_dim", K::count},
        {"theta", K::real, false, 1.0e-3, 1.0e15, 10000.0},
        {"interleaved", K::flag}}},
      {"attention",
       {{"query", "b s q"}, {"key", "b t k"}, {"value", "b t k"}},
       "b s q",
       false,
       0,
       {{"head_dim", K::count, true},
        {"causal", K::flag, true},
        {"scale", K::real, false, -1.0e30, 1.0e30},
        kRate,
        kMask}},
      {"vocab_max", {{"logits", "... v"}}, "...", true, 0, {kClasses}},
      {"vocab_sum_exp",
       {{"logits", "... v"}, {"maximum", "..."}},
       "...",
       true,
       0,
       {kClasses}},
      {"vocab_pick", {{"logits", "... v"}, {"targets", "# ..."}}, "...", true},
      {"token_loss",
       {{"maximum", "..."},
        {"sum_exp", "..."},
        {"picked", "..."},
        {"targets", "# ..."},
        {"count", ""}},
       "",
       true}};
  return kRules;
}

} // namespace mtplan::ir

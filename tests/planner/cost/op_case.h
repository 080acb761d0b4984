//===- op_case.h - Operators for tests of costs -----------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_PLANNER_COST_OP_CASE_H
#define MTPLAN_TESTS_PLANNER_COST_OP_CASE_H

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// Holds an operator with its tensors, numbered from 0.
struct OpCase {
  Op op;
  std::vector<Tensor> tensors;
};

/// Names the factors of product().
enum ProductFactor : int { kM, kN, kK };

/// Returns the product of X [m, k] and W [k, n].
inline OpCase product(std::int64_t m, std::int64_t n, std::int64_t k,
                      int elementBytes = 2) {
  OpCase made;
  Op &op = made.op;
  op.opClass = OpClass::gemm;
  op.factors = {{"m", m, Split::batch, true, Reduction::sum, 0.0},
                {"n", n, Split::column, true, Reduction::sum, 0.0},
                {"k", k, Split::row, true, Reduction::sum, 0.0}};
  op.operands = {{0, {kM, kK}}, {1, {kK, kN}}};
  op.results = {{2, {kM, kN}}};
  op.linearGroups = {{0}};
  op.m = {kM};
  op.n = {kN};
  op.k = {kK};
  op.flops = Flops{2.0 * double(m) * double(n) * double(k)};
  for (const auto &shape :
       {std::vector{m, k}, std::vector{k, n}, std::vector{m, n}}) {
    Tensor tensor;
    tensor.shape = shape;
    tensor.elementBytes = elementBytes;
    made.tensors.push_back(tensor);
  }
  return made;
}

/// Returns attention of queries [b, s, g r d] and of keys and values [b, s, g
/// d]. Forward has one result without statistics, backward three gradients.
inline OpCase attentionCase(std::int64_t b, std::int64_t s, std::int64_t g,
                            std::int64_t r, std::int64_t d, Phase phase,
                            bool causal, int elementBytes = 2) {
  OpCase made;
  Op &op = made.op;
  bool forward = phase == Phase::forward;
  op.kind = forward ? "attention" : "attention_grad";
  op.phase = phase;
  op.opClass = OpClass::attention;
  op.factors = {
      {"b", b, Split::batch, true, Reduction::sum, 0.0},
      {"s", s, Split::sequence, true, Reduction::sum, causal ? 1.0 : 0.0},
      {"g", g, Split::head, true, Reduction::sum, 0.0},
      {"r", r, Split::feature, false, Reduction::sum, 0.0},
      {"d", d, Split::feature, false, Reduction::sum, 0.0},
      {"k", s, Split::feature, false, Reduction::sum, 0.0}};
  auto add = [&](std::vector<Use> &uses, bool isQuery) {
    Tensor tensor;
    tensor.shape = {b, s, (isQuery ? r : 1) * g * d};
    tensor.elementBytes = elementBytes;
    tensor.phase = phase;
    tensor.batchDim = 0;
    uses.push_back({static_cast<int>(made.tensors.size()),
                    {0, isQuery ? 1 : 5, 2},
                    false});
    made.tensors.push_back(tensor);
  };
  for (bool isQuery : {true, false, false})
    add(op.operands, isQuery);
  if (forward) {
    add(op.results, true);
  } else {
    add(op.operands, true);
    for (bool isQuery : {true, false, false})
      add(op.results, isQuery);
  }
  double pairs = double(b) * double(s) * double(s) * double(g * r) * double(d);
  op.flops = Flops{(forward ? 2 : 5) * 2 * pairs * (causal ? 0.5 : 1)};
  return made;
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_COST_OP_CASE_H

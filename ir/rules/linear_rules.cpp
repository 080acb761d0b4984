//===- linear_rules.cpp - Factors and flops of linear operators -----------===//

#include "ir/mtp.h"
#include "ir/rules/shape.h"

using namespace mlir;

namespace mtplan::ir {

//===----------------------------------------------------------------------===//
// Einsum: one factor per letter
//===----------------------------------------------------------------------===//

static FactorRole roleOf(char letter, EinsumOp op) {
  if (op.getRow() == StringRef(&letter, 1))
    return FactorRole::row;
  if (op.getColumn() == StringRef(&letter, 1))
    return FactorRole::column;
  return letter == 'v'   ? FactorRole::vocab
         : letter == 'e' ? FactorRole::expert
                         : FactorRole::data;
}

FactorRule EinsumOp::getFactorRule() {
  auto [inputs, output] = getEquation().split("->");
  auto [left, right] = inputs.split(',');
  FactorRule rule;
  auto dimsOf = [&](StringRef letters, ArrayRef<int64_t> shape) {
    TensorFactors dims;
    for (auto [letter, size] : llvm::zip(letters, shape)) {
      int factor = rule.find(StringRef(&letter, 1));
      if (factor < 0)
        factor = rule.add(StringRef(&letter, 1), size, roleOf(letter, *this));
      dims.push_back({factor});
    }
    return dims;
  };
  rule.operands.push_back(dimsOf(left, shapeOf(getLhs())));
  rule.operands.push_back(dimsOf(right, shapeOf(getRhs())));
  rule.results.push_back(dimsOf(output, shapeOf(getResult())));
  if (getBias()) {
    rule.operands.push_back({rule.results[0].back()});
    rule.addends.push_back(2);
    rule.linearGroups = {{0, 2}, {1, 2}};
  } else {
    rule.linearGroups = {{0}, {1}};
  }
  return rule;
}

double EinsumOp::getFlops() {
  double flops = 2.0;
  for (const Factor &factor : getFactorRule().factors)
    flops *= static_cast<double>(factor.size);
  return flops;
}

//===----------------------------------------------------------------------===//
// Sum
//===----------------------------------------------------------------------===//

FactorRule SumOp::getFactorRule() {
  FactorRule rule;
  TensorFactors dims = addDims(rule, shapeOf(getInput()));
  rule.operands.push_back(dims);
  std::size_t kept = shapeOf(getResult()).size();
  rule.results.emplace_back(dims.end() - kept, dims.end());
  rule.linearGroups = {{0}};
  return rule;
}

double SumOp::getFlops() { return elementsOf(getInput()); }

//===----------------------------------------------------------------------===//
// Token lookup: rows are the vocabulary
//===----------------------------------------------------------------------===//

// Returns the rule of ids [d0, d1, ...], rows [d0, d1, ..., h] and a table [v,
// h].
static FactorRule lookupRule(Value ids, Value rows, int64_t vocabulary,
                             TensorFactors &table, TensorFactors &idDims,
                             TensorFactors &rowDims) {
  FactorRule rule;
  idDims = addDims(rule, shapeOf(ids));
  int v = rule.add("v", vocabulary, FactorRole::vocab);
  int h = rule.add("h", shapeOf(rows).back(), FactorRole::column);
  rowDims = idDims;
  rowDims.push_back({h});
  table = {{v}, {h}};
  return rule;
}

FactorRule EmbeddingOp::getFactorRule() {
  TensorFactors table, ids, rows;
  FactorRule rule = lookupRule(getIds(), getResult(),
                               shapeOf(getTable()).front(), table, ids, rows);
  rule.operands = {ids, table};
  rule.results = {rows};
  rule.linearGroups = {{1}};
  rule.lookedUp = {1};
  return rule;
}

double EmbeddingOp::getFlops() { return 0.0; }

FactorRule EmbeddingGradOp::getFactorRule() {
  TensorFactors table, ids, rows;
  FactorRule rule = lookupRule(getIds(), getGradient(),
                               shapeOf(getResult()).front(), table, ids, rows);
  rule.operands = {ids, rows};
  rule.results = {table};
  rule.linearGroups = {{1}};
  return rule;
}

double EmbeddingGradOp::getFlops() { return elementsOf(getGradient()); }

//===----------------------------------------------------------------------===//
// Learned positions
//===----------------------------------------------------------------------===//

// Returns the rule of x [b, s, h] and a table [s, h], or [p, h] where the table
// has more rows than there are positions.
static FactorRule positionRule(Value x, Value table, TensorFactors &xDims,
                               TensorFactors &tableDims) {
  FactorRule rule;
  ArrayRef<int64_t> shape = shapeOf(x);
  int b = rule.add("b", shape[0]);
  int s = rule.add("s", shape[1]);
  int h = rule.add("h", shape[2]);
  int rows = s;
  if (shapeOf(table).front() != shape[1]) {
    rows = rule.add("p", shapeOf(table).front());
    rule.factors[rows].divisible = false;
  }
  xDims = {{b}, {s}, {h}};
  tableDims = {{rows}, {h}};
  return rule;
}

FactorRule PositionEmbeddingOp::getFactorRule() {
  TensorFactors x, table;
  FactorRule rule = positionRule(getInput(), getTable(), x, table);
  rule.operands = {x, table};
  rule.results = {x};
  rule.lookedUp = {1};
  rule.linearGroups = {{0, 1}};
  return rule;
}

double PositionEmbeddingOp::getFlops() { return elementsOf(getInput()); }

FactorRule PositionEmbeddingGradOp::getFactorRule() {
  TensorFactors x, table;
  FactorRule rule = positionRule(getGradient(), getResult(), x, table);
  rule.operands = {x};
  rule.results = {table};
  rule.linearGroups = {{0}};
  return rule;
}

double PositionEmbeddingGradOp::getFlops() { return elementsOf(getGradient()); }

} // namespace mtplan::ir

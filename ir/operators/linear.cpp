//===- linear.cpp - Products, sums and lookups ----------------------------===//

#include "llvm/ADT/StringExtras.h"

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

// Returns the role of a letter of an einsum. Each letter is a factor.
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

FactorRule SumOp::getFactorRule() {
  FactorRule rule;
  TensorFactors dims = addDims(rule, shapeOf(getInput()));
  std::size_t kept = shapeOf(getResult()).size();
  return rule.connect({dims}, {TensorFactors(dims.end() - kept, dims.end())},
                      {{0}});
}

double SumOp::getFlops() { return elementsOf(getInput()); }

namespace {
/// Holds the dimensions of ids [d0, d1, ...], rows [d0, d1, ..., h] and a table
/// [v, h], whose rows are the vocabulary.
struct LookupDims {
  FactorRule rule;
  TensorFactors ids, rows, table;
};
} // namespace

static LookupDims lookupDims(Value ids, Value rows, Value table) {
  LookupDims dims;
  dims.ids = dims.rows = addDims(dims.rule, shapeOf(ids));
  int v = dims.rule.add("v", shapeOf(table).front(), FactorRole::vocab);
  int h = dims.rule.add("h", shapeOf(rows).back(), FactorRole::column);
  dims.rows.push_back({h});
  dims.table = {{v}, {h}};
  return dims;
}

FactorRule EmbeddingOp::getFactorRule() {
  LookupDims dims = lookupDims(getIds(), getResult(), getTable());
  dims.rule.lookedUp = {1};
  return dims.rule.connect({dims.ids, dims.table}, {dims.rows}, {{1}});
}

double EmbeddingOp::getFlops() { return 0.0; }

FactorRule EmbeddingGradOp::getFactorRule() {
  LookupDims dims = lookupDims(getIds(), getGradient(), getResult());
  return dims.rule.connect({dims.ids, dims.rows}, {dims.table}, {{1}});
}

double EmbeddingGradOp::getFlops() { return elementsOf(getGradient()); }

// Returns the factors of x [b, s, h] and a table [s, h], or [p, h] if the table
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
  rule.lookedUp = {1};
  return rule.connect({x, table}, {x}, {{0, 1}});
}

double PositionEmbeddingOp::getFlops() { return elementsOf(getInput()); }

FactorRule PositionEmbeddingGradOp::getFactorRule() {
  TensorFactors x, table;
  FactorRule rule = positionRule(getGradient(), getResult(), x, table);
  return rule.connect({x}, {table}, {{0}});
}

double PositionEmbeddingGradOp::getFlops() { return elementsOf(getGradient()); }

// The gradient of `lhs` or `rhs` is an einsum of the result's gradient and the
// other operand. The gradient of the bias is a sum.
LogicalResult EinsumOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto [inputs, output] = getEquation().split("->");
  auto [left, right] = inputs.split(',');
  OpBuilder &builder = gradients.builder;
  std::string label = getLabel().str();
  // The gradients of an activation times a weight are called dx and dw.
  bool weight = getRhs().getDefiningOp<ParameterOp>() &&
                !getLhs().getDefiningOp<ParameterOp>();
  if (GradientBuilder::wants(getLhs())) {
    std::string equation = (output + "," + right + "->" + left).str();
    auto dlhs = builder.create<EinsumOp>(
        getLoc(), getLhs().getType(), label + (weight ? ".dx" : ".dlhs"),
        equation, dy, getRhs(), Value(), getRow(), getColumn());
    gradients.add(getLhs(), dlhs.getResult(), label);
  }
  if (GradientBuilder::wants(getRhs())) {
    std::string equation = (left + "," + output + "->" + right).str();
    auto drhs = builder.create<EinsumOp>(
        getLoc(), getRhs().getType(), label + (weight ? ".dw" : ".drhs"),
        equation, getLhs(), dy, Value(), getRow(), getColumn());
    gradients.add(getRhs(), drhs.getResult(), label);
  }
  if (getBias() && GradientBuilder::wants(getBias())) {
    auto dbias =
        builder.create<SumOp>(getLoc(), getBias().getType(), label + ".db", dy);
    gradients.add(getBias(), dbias.getResult(), label);
  }
  return success();
}

LogicalResult EmbeddingOp::buildGradient(GradientBuilder &gradients) {
  return addGradientOf(
      getTable(), *this, gradients, ".dw", [&](StringRef label, Value dy) {
        return gradients.builder.create<EmbeddingGradOp>(
            getLoc(), getTable().getType(), label, getIds(), dy);
      });
}

LogicalResult PositionEmbeddingOp::buildGradient(GradientBuilder &gradients) {
  if (Value dy = gradients.gradientOf(getResult()))
    gradients.add(getInput(), dy, getLabel());
  return addGradientOf(
      getTable(), *this, gradients, ".dw", [&](StringRef label, Value dy) {
        return gradients.builder.create<PositionEmbeddingGradOp>(
            getLoc(), getTable().getType(), label, dy);
      });
}

namespace {
struct Term {
  StringRef name, letters;
  Value value;
};
} // namespace

// Splits the equation at its comma and arrow, and checks that each term has as
// many letters as its tensor has dimensions.
static LogicalResult readTerms(EinsumOp op, SmallVector<Term, 3> &terms) {
  auto [inputs, output] = op.getEquation().split("->");
  auto [left, right] = inputs.split(',');
  auto isLetter = [](char c) { return llvm::isAlpha(c); };
  if (op.getEquation().count("->") != 1 || inputs.count(',') != 1 ||
      !llvm::all_of(left, isLetter) || !llvm::all_of(right, isLetter) ||
      !llvm::all_of(output, isLetter))
    return op.emitOpError("needs an equation of two operands and a result, as "
                          "in \"ab,bc->ac\", got \"")
           << op.getEquation() << "\"";
  terms = {{"lhs", left, op.getLhs()},
           {"rhs", right, op.getRhs()},
           {"result", output, op.getResult()}};
  for (const Term &term : terms) {
    int64_t rank = tensorOf(term.value).getRank();
    if (static_cast<int64_t>(term.letters.size()) != rank)
      return op.emitOpError()
             << term.name << " has " << rank << " dimensions, but \""
             << term.letters << "\" names " << term.letters.size();
  }
  return success();
}

static LogicalResult checkOccurrences(EinsumOp op, ArrayRef<Term> terms) {
  for (const Term &term : terms)
    for (char letter : term.letters) {
      if (size_t count = term.letters.count(letter); count > 1)
        return op.emitOpError()
               << "letter '" << letter << "' occurs " << count << " times in \""
               << term.letters << "\", may occur once";
      int count = 0;
      for (const Term &other : terms)
        count += other.letters.contains(letter) ? 1 : 0;
      if (count < 2)
        return op.emitOpError() << "letter '" << letter << "' occurs in "
                                << count << " of three terms, needs 2";
    }
  return success();
}

static LogicalResult checkSizes(EinsumOp op, ArrayRef<Term> terms) {
  for (const Term &term : terms)
    for (const Term &other : terms)
      for (auto [dim, letter] : llvm::enumerate(term.letters)) {
        size_t otherDim = other.letters.find(letter);
        if (otherDim == StringRef::npos)
          continue;
        int64_t size = shapeOf(term.value)[dim];
        int64_t otherSize = shapeOf(other.value)[otherDim];
        if (size != otherSize)
          return op.emitOpError()
                 << "letter '" << letter << "' is " << size << " in "
                 << term.name << " but " << otherSize << " in " << other.name;
      }
  return success();
}

LogicalResult EinsumOp::verify() {
  SmallVector<Term, 3> terms;
  if (failed(readTerms(*this, terms)) ||
      failed(checkOccurrences(*this, terms)) ||
      failed(checkSizes(*this, terms)))
    return failure();
  if (!getBias())
    return success();
  return failure(
      failed(expectAtLeastOneDim(*this, "result under a bias", getResult())) ||
      failed(expectVectorOf(*this, "bias", getBias(), getResult())));
}

LogicalResult SumOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput());
  ArrayRef<int64_t> kept = shapeOf(getResult());
  if (kept.size() > input.size() || input.take_back(kept.size()) != kept)
    return emitOpError("result has shape ")
           << shapeText(kept) << ", needs the last dimensions of "
           << shapeText(input);
  return success();
}

static LogicalResult checkLookup(Operation *op, Value ids, StringRef tableName,
                                 Value table, StringRef rowsName, Value rows) {
  if (failed(expectIntegers(op, "ids", ids)) ||
      failed(expectRank(op, tableName, table, 2)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(ids));
  shape.push_back(shapeOf(table)[1]);
  return expectShape(op, rowsName, rows, shape);
}

LogicalResult EmbeddingOp::verify() {
  return checkLookup(*this, getIds(), "table", getTable(), "result",
                     getResult());
}

LogicalResult EmbeddingGradOp::verify() {
  return checkLookup(*this, getIds(), "result", getResult(), "gradient",
                     getGradient());
}

static LogicalResult checkPositions(Operation *op, StringRef tableName,
                                    Value table, Value rows) {
  if (failed(expectRank(op, tableName, table, 2)))
    return failure();
  ArrayRef<int64_t> found = shapeOf(table);
  ArrayRef<int64_t> positions = shapeOf(rows);
  if (found[0] < positions[1])
    return op->emitOpError() << tableName << " has " << found[0]
                             << " rows, needs at least " << positions[1];
  if (found[1] != positions[2])
    return op->emitOpError() << tableName << " has rows of " << found[1]
                             << ", needs " << positions[2];
  return success();
}

LogicalResult PositionEmbeddingOp::verify() {
  return failure(
      failed(expectRank(*this, "input", getInput(), 3)) ||
      failed(expectType(*this, "result", getResult(), getInput().getType())) ||
      failed(checkPositions(*this, "table", getTable(), getInput())));
}

LogicalResult PositionEmbeddingGradOp::verify() {
  return failure(
      failed(expectRank(*this, "gradient", getGradient(), 3)) ||
      failed(checkPositions(*this, "result", getResult(), getGradient())));
}

} // namespace mtplan::ir

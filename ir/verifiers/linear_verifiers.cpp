//===- linear_verifiers.cpp - Shapes of products, sums, lookups -----------===//

#include "llvm/ADT/StringExtras.h"

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

namespace {
/// The letters of one tensor of an equation.
struct Term {
  StringRef name, letters;
  Value value;
};
} // namespace

// Splits the equation at its comma and arrow, and matches letters and ranks.
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

// Checks that every letter is in at least two terms, and at most once in each.
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
        int64_t size = tensorOf(term.value).getDimSize(dim);
        int64_t otherSize = tensorOf(other.value).getDimSize(otherDim);
        if (size != otherSize)
          return op.emitOpError()
                 << "letter '" << letter << "' is " << size << " in "
                 << term.name << " but " << otherSize << " in " << other.name;
      }
  return success();
}

// Checks, in this order:
// - the equation has two operands, whose letters match their ranks, and a
//   result, whose letters match its rank;
// - every letter occurs in at least two of the three and at most once in each;
// - dimensions with the same letter have the same size;
// - the bias has one dimension, of the size of the result's last.
LogicalResult EinsumOp::verify() {
  SmallVector<Term, 3> terms;
  if (failed(readTerms(*this, terms)) ||
      failed(checkOccurrences(*this, terms)) ||
      failed(checkSizes(*this, terms)))
    return failure();
  if (!getBias())
    return success();
  if (failed(expectAtLeastOneDim(*this, "result under a bias", getResult())))
    return failure();
  return expectVectorOf(*this, "bias", getBias(), getResult());
}

// Checks:
// - the result's shape is a suffix of the operand's.
LogicalResult SumOp::verify() {
  ArrayRef<int64_t> input = tensorOf(getInput()).getShape();
  ArrayRef<int64_t> kept = tensorOf(getResult()).getShape();
  if (kept.size() > input.size() || input.take_back(kept.size()) != kept)
    return emitOpError("result has shape ")
           << shapeText(kept) << ", needs the last dimensions of "
           << shapeText(input);
  return success();
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

// Checks that there is one row of `table` for each id.
static LogicalResult checkLookup(Operation *op, Value ids, StringRef tableName,
                                 Value table, StringRef rowsName, Value rows) {
  if (failed(expectIntegers(op, "ids", ids)) ||
      failed(expectRank(op, tableName, table, 2)))
    return failure();
  SmallVector<int64_t> shape(tensorOf(ids).getShape());
  shape.push_back(tensorOf(table).getDimSize(1));
  return expectShape(op, rowsName, rows, shape);
}

// Checks, in this order:
// - ids are integers; the table has two dimensions;
// - the result's shape is that of the ids followed by the table's width.
LogicalResult EmbeddingOp::verify() {
  return checkLookup(*this, getIds(), "table", getTable(), "result",
                     getResult());
}

// Checks, in this order:
// - ids are integers; the result has two dimensions;
// - the gradient's shape is that of the ids followed by the result's width.
LogicalResult EmbeddingGradOp::verify() {
  return checkLookup(*this, getIds(), "result", getResult(), "gradient",
                     getGradient());
}

// Checks that the table has a row for every position of `rows`.
static LogicalResult checkPositions(Operation *op, StringRef tableName,
                                    Value table, Value rows) {
  if (failed(expectRank(op, tableName, table, 2)))
    return failure();
  ArrayRef<int64_t> found = tensorOf(table).getShape();
  ArrayRef<int64_t> positions = tensorOf(rows).getShape();
  if (found[0] < positions[1])
    return op->emitOpError() << tableName << " has " << found[0]
                             << " rows, needs at least " << positions[1];
  if (found[1] != positions[2])
    return op->emitOpError() << tableName << " has rows of " << found[1]
                             << ", needs " << positions[2];
  return success();
}

// Checks, in this order:
// - the input has three dimensions and the result its type;
// - the table has two: at least as many rows as positions, and the width of
//   the input.
LogicalResult PositionEmbeddingOp::verify() {
  if (failed(expectRank(*this, "input", getInput(), 3)) ||
      failed(expectType(*this, "result", getResult(), getInput().getType())))
    return failure();
  return checkPositions(*this, "table", getTable(), getInput());
}

// Checks:
// - the gradient has three dimensions, the result two: at least as many rows
//   as positions, and the width of the gradient.
LogicalResult PositionEmbeddingGradOp::verify() {
  if (failed(expectRank(*this, "gradient", getGradient(), 3)))
    return failure();
  return checkPositions(*this, "result", getResult(), getGradient());
}

} // namespace mtplan::ir

//===- einsum.cpp - An einsum as loops and as matrix products -------------===//

#include "runtime/backend/einsum.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "runtime/backend/kernel.h"
#include "runtime/backend/signature.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Loops over letters
//===----------------------------------------------------------------------===//

namespace {

bool has(const std::string &letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

// Returns a letter's stride in elements, or 0 if the tensor lacks the letter.
std::int64_t stepOf(char letter, const std::string &letters,
                    const std::vector<std::int64_t> &shape) {
  const std::size_t position = letters.find(letter);
  if (position == std::string::npos)
    return 0;
  std::int64_t step = 1;
  for (std::size_t d = position + 1; d < shape.size(); ++d)
    step *= shape[d];
  return step;
}

std::int64_t sizeOf(char letter, const std::string &letters,
                    const std::vector<std::int64_t> &shape) {
  return shape[letters.find(letter)];
}

LetterLoops loopsOver(const std::string &which, const KernelSpec &spec,
                      const Equation &equation) {
  const auto &left = spec.inputs[0].shape, &right = spec.inputs[1].shape;
  LetterLoops all;
  for (const char letter : which) {
    all.sizes.push_back(has(equation.lhs, letter)
                            ? sizeOf(letter, equation.lhs, left)
                            : sizeOf(letter, equation.rhs, right));
    all.left.push_back(stepOf(letter, equation.lhs, left));
    all.right.push_back(stepOf(letter, equation.rhs, right));
  }
  return all;
}

} // namespace

Equation::Equation(const KernelSpec &spec) {
  const std::string text = spec.text("equation", "");
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow)
    refuse(spec, "equation '" + text + "' is not like 'bsi,io->bso'");
  lhs = text.substr(0, comma);
  rhs = text.substr(comma + 1, arrow - comma - 1);
  result = text.substr(arrow + 2);
}

LetterSums::LetterSums(const KernelSpec &spec) {
  const Equation equation(spec);
  std::string contracted;
  for (const char letter : equation.lhs)
    if (!has(equation.result, letter))
      contracted += letter;
  kept = loopsOver(equation.result, spec, equation);
  summed = loopsOver(contracted, spec, equation);
}

//===----------------------------------------------------------------------===//
// Loops around matrices
//===----------------------------------------------------------------------===//

std::optional<ProductShape> ProductShape::of(const KernelSpec &spec) {
  const Equation equation(spec);
  const std::string &out = equation.result;
  if (out.empty())
    return std::nullopt;
  ProductShape shape;
  // The result's last letter is n, which selects a column of b.
  if (!has(equation.rhs, out.back()))
    std::swap(shape.lhs, shape.rhs);
  const std::string &a = shape.lhs == 0 ? equation.lhs : equation.rhs;
  const std::string &b = shape.lhs == 0 ? equation.rhs : equation.lhs;
  if (has(a, out.back()))
    return std::nullopt;
  const auto step = [&](char letter) {
    const auto &sides = spec.inputs;
    return LetterStep{has(a, letter)
                          ? sizeOf(letter, a, sides[shape.lhs].shape)
                          : sizeOf(letter, b, sides[shape.rhs].shape),
                      stepOf(letter, a, sides[shape.lhs].shape),
                      stepOf(letter, b, sides[shape.rhs].shape),
                      stepOf(letter, out, spec.outputs[0].shape)};
  };

  shape.n = step(out.back());
  // The sample letter `b` remains a loop here, because a library's order of
  // summation may depend on the number of rows. Only joined() makes samples
  // rows of a matrix.
  char row = 0, inner = 0;
  for (char letter : out)
    if (letter != out.back() && letter != 'b' && has(a, letter) &&
        !has(b, letter))
      row = letter;
  for (char letter : a)
    if (!has(out, letter) && letter != 'b')
      inner = letter;
  for (char letter : out)
    if (letter == row)
      shape.m = step(letter);
    else if (letter != out.back())
      shape.outer.push_back(step(letter));
  for (char letter : a)
    if (!has(out, letter)) {
      if (letter == inner)
        shape.k = step(letter);
      else
        shape.summed.push_back(step(letter));
    }
  return shape;
}

ProductShape ProductShape::joined() const {
  ProductShape whole = *this;
  // Returns whether `part` inside `loop` is one contiguous loop in all three
  // tensors.
  auto continues = [](const LetterStep &part, const LetterStep &loop) {
    auto same = [&](std::int64_t own, std::int64_t next) {
      return next == own * part.size;
    };
    return same(part.a, loop.a) && same(part.b, loop.b) && same(part.c, loop.c);
  };
  auto take = [&](LetterStep &part, std::vector<LetterStep> &loops,
                  auto belongs) {
    for (bool found = true; found;) {
      found = false;
      for (auto loop = loops.begin(); loop != loops.end() && !found; ++loop) {
        const bool first = part.a == 0 && part.b == 0 && part.c == 0;
        if (!belongs(*loop) || !(first || continues(part, *loop)))
          continue;
        const std::int64_t size = first ? 1 : part.size;
        if (first)
          part = *loop;
        part.size = size * loop->size;
        loops.erase(loop);
        found = true;
      }
    }
  };
  take(whole.m, whole.outer,
       [](const LetterStep &loop) { return loop.b == 0; });
  take(whole.n, whole.outer,
       [](const LetterStep &loop) { return loop.a == 0; });
  take(whole.k, whole.summed, [](const LetterStep &) { return true; });
  return whole;
}

std::vector<Place> placesOf(const std::vector<LetterStep> &loops) {
  std::vector<Place> places{{}};
  for (const LetterStep &loop : loops) {
    std::vector<Place> longer;
    for (const Place &place : places)
      for (std::int64_t i = 0; i < loop.size; ++i)
        longer.push_back(
            {place.a + i * loop.a, place.b + i * loop.b, place.c + i * loop.c});
    places = std::move(longer);
  }
  return places;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

namespace {

/// Returns the alignment in bytes that the address of a tensor's data has in
/// every iteration of the loops.
std::uint32_t alignmentOf(const MatrixCalls &calls,
                          std::int64_t LetterStep::*side, ElementType type) {
  std::int64_t all = kAlignment;
  for (const std::vector<LetterStep> *loops : {&calls.outer, &calls.summed})
    for (const LetterStep &loop : *loops)
      if (loop.size > 1)
        all = std::gcd(all, loop.*side * bytesOf(type));
  return static_cast<std::uint32_t>(all);
}

} // namespace

MatrixCalls MatrixCalls::of(const KernelSpec &spec) {
  const std::optional<ProductShape> whole = ProductShape::of(spec);
  if (!whole)
    refuse(
        spec,
        "has a result whose last letter is not the column of a matrix product");
  ProductShape shape = whole->joined();
  MatrixCalls calls;
  // The longest loop becomes the library's batch.
  LetterStep batch;
  auto longest = std::ranges::max_element(shape.outer, {}, &LetterStep::size);
  if (longest != shape.outer.end()) {
    batch = *longest;
    shape.outer.erase(longest);
  }
  calls.lhs = shape.lhs;
  calls.rhs = shape.rhs;
  calls.outer = shape.outer;
  calls.summed = shape.summed;
  calls.biased = spec.inputs.size() == 3;

  // A library needs one type for both inputs. The result has that type too, or
  // f32 if the inputs have 16 bits.
  const ElementType left = spec.inputs[shape.lhs].type,
                    right = spec.inputs[shape.rhs].type,
                    out = spec.outputs[0].type;
  calls.in = usesDouble(spec) ? ElementType::f64
             : left == right  ? left
                              : ElementType::f32;
  calls.made = out == calls.in || calls.in == ElementType::f64
                   ? calls.in
                   : ElementType::f32;
  // A sum of several products that is not in f64 accumulates in f32 and is
  // rounded once.
  if (!shape.summed.empty() && calls.in != ElementType::f64)
    calls.made = ElementType::f32;

  auto isMatrix = [](std::int64_t row, std::int64_t column,
                     std::int64_t columns) {
    return columns == 1 || row == 1 || column == 1;
  };
  if (!isMatrix(shape.m.a, shape.k.a, shape.k.size) ||
      !isMatrix(shape.k.b, shape.n.b, shape.n.size))
    refuse(spec,
           "an operand has neither contiguous rows nor contiguous columns");
  MatrixShape &one = calls.first;
  one.m = shape.m.size;
  one.n = shape.n.size;
  one.k = shape.k.size;
  one.batches = batch.size;
  one.a = {shape.m.a, shape.k.a, batch.a};
  one.b = {shape.k.b, shape.n.b, batch.b};
  one.c = {shape.m.c, 1, batch.c};
  one.inputs = calls.in;
  one.result = calls.made;
  one.a.aligned = alignmentOf(calls, &LetterStep::a, calls.in);
  one.b.aligned = alignmentOf(calls, &LetterStep::b, calls.in);
  one.c.aligned = alignmentOf(calls, &LetterStep::c, calls.made);
  calls.further = one;
  calls.further.adds = true;
  one.biased = calls.biased;
  return calls;
}

double MatrixCalls::flops() const {
  double all = 2.0 * static_cast<double>(first.m * first.n * first.k) *
               static_cast<double>(first.batches);
  for (const std::vector<LetterStep> *loops : {&outer, &summed})
    for (const LetterStep &loop : *loops)
      all *= static_cast<double>(loop.size);
  return all;
}

} // namespace mtplan::runtime

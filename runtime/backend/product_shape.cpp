//===- product_shape.cpp - An einsum as loops around matrices -------------===//

#include "runtime/backend/product_shape.h"

#include <string>

namespace mtplan::runtime {
namespace {

bool has(const std::string &letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

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

} // namespace

std::optional<ProductShape> ProductShape::of(const KernelSpec &spec) {
  const Equation equation(spec);
  const std::string &out = equation.result;
  if (out.empty())
    return std::nullopt;
  ProductShape shape;
  // The result's columns are b's.
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
  // Samples are never rows of one matrix: how its sums are blocked depends on
  // how many rows there are.
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
  // Whether `loop` goes on where `part` ends, in each tensor that has it.
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

} // namespace mtplan::runtime

//===- matrix_calls.cpp - An einsum as products of matrices ---------------===//

#include "runtime/backend/matrix_calls.h"

#include <algorithm>
#include <numeric>

#include "runtime/backend/made_kernel.h"

namespace mtplan::runtime {
namespace {

/// Of all places of the loops.
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
    refuse(spec, "its result's last letter is no column of a matrix");
  ProductShape shape = whole->joined();
  MatrixCalls calls;
  // One loop runs within the library: the longest.
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

  // Both inputs have one type, and the result the same or, of 16 bits, f32.
  const ElementType left = spec.inputs[shape.lhs].type,
                    right = spec.inputs[shape.rhs].type,
                    out = spec.outputs[0].type;
  calls.in = usesDouble(spec) ? ElementType::f64
             : left == right  ? left
                              : ElementType::f32;
  calls.made = out == calls.in || calls.in == ElementType::f64
                   ? calls.in
                   : ElementType::f32;
  // Sums of several products are rounded once.
  if (!shape.summed.empty() && calls.in != ElementType::f64)
    calls.made = ElementType::f32;

  auto isMatrix = [](std::int64_t row, std::int64_t column,
                     std::int64_t columns) {
    return columns == 1 || row == 1 || column == 1;
  };
  if (!isMatrix(shape.m.a, shape.k.a, shape.k.size) ||
      !isMatrix(shape.k.b, shape.n.b, shape.n.size))
    refuse(spec, "an operand has neither rows nor columns side by side");
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

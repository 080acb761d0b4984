//===- fused_cases.h - Kernels with fused consumers -------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_BACKEND_FUSED_CASES_H
#define MTPLAN_TESTS_RUNTIME_BACKEND_FUSED_CASES_H

#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backend/followed.h"
#include "runtime/plan/kernel_settings.h"
#include "tests/runtime/backend/kernel_case.h"

namespace mtplan::runtime::testing {

/// Returns dropouts of a shard with a fused `add`. The rate is 0 or 0.3. The
/// row width is one that kernels can vectorise, or one that they cannot.
/// \param between  type of the dropout's result
/// \param sum  type of the addend and of the result of `add`
inline std::vector<Case> droppedCases(ElementType type, unsigned seed,
                                      ElementType between, ElementType sum) {
  std::vector<Case> cases;
  for (const std::int64_t width : {24, 21})
    for (const double rate : {0.0, 0.3}) {
      const TensorView piece{type, {3, 37, width}, {{0, 3}, {37, 74}, {5, 50}}};
      cases.push_back(
          Case("dropout", seed * 100 + static_cast<unsigned>(cases.size()))
              .set("rate", rate)
              .set("mask", "h.*.drop")
              .set("then", "add")
              .in(piece)
              .in({sum, piece.shape, piece.pieces})
              .out({between, piece.shape, piece.pieces})
              .out({sum, piece.shape, piece.pieces}));
    }
  return cases;
}

/// Returns gradients of norms with a fused `add`. Some rows fit in the
/// registers of a CUDA block, and others are longer.
/// \param between  type of the norm's gradient
/// \param sum  type of the addend and of the result of `add`
inline std::vector<Case> normGradCases(ElementType type, unsigned seed,
                                       ElementType between, ElementType sum) {
  std::vector<Case> cases;
  for (const std::int64_t width : {24, 21, 300})
    for (const bool centred : {false, true}) {
      const Shape shape{3, 37, width};
      const TensorView x{type, shape, {}}, row{type, {width}, {}};
      Case one(centred ? "layer_norm_grad" : "rms_norm_grad",
               seed * 100 + static_cast<unsigned>(cases.size()));
      one.set("then", "add").in(x).in(row).in(x).in({sum, shape, {}});
      one.out({between, shape, {}}).out(row);
      if (centred)
        one.out(row);
      cases.push_back(one.out({sum, shape, {}}));
    }
  return cases;
}

/// Returns the value of an accumulator before the kernel runs: NaN if this run
/// is the first to accumulate, because it must overwrite the accumulator.
inline double beforeSum(const Case &one) {
  return firstTermOf(one.spec.settings)
                 .isOf(one.moment.microBatch, one.moment.copy)
             ? std::nan("")
             : 0.7;
}

/// Splits a fused case into two kernels, runs one after the other, and returns
/// the results of both. If one of the two is fused itself, it is split again.
inline std::vector<Doubles> inTurn(const Case &both, Backend &backend) {
  if (!isOfTwo(both.spec))
    return both.run(backend);
  const auto [one, other] = halvesOf(both.spec);
  const Pairing pairing = pairingOf(both.spec);
  Case first(one.kernel), second(other.kernel);
  first.spec.settings = one.settings;
  second.spec.settings = other.settings;
  for (std::size_t i = 0; i < both.spec.outputs.size(); ++i)
    (i < pairing.firstOutputs ? first : second)
        .out(both.spec.outputs[i], both.before(i));
  for (std::size_t i = 0; i < pairing.firstInputs; ++i)
    first.in(both.spec.inputs[i], both.input(i));
  std::vector<Doubles> all = inTurn(first, backend);
  for (const std::size_t i : pairing.secondInputs)
    second.in(both.spec.inputs[i], both.input(i));
  if (pairing.takesResult)
    second.in(both.spec.outputs[0], all[0]);
  for (Doubles &result : inTurn(second, backend))
    all.push_back(std::move(result));
  return all;
}

/// Returns bias gradients. Some are fused with a weight gradient, in which the
/// bias's dimension is the columns or, transposed, the rows. Some are
/// accumulated. They sum over several samples, over one row, or separately for
/// each expert.
inline std::vector<Case> biasGradientCases(ElementType type, unsigned seed) {
  const ElementType wide =
      type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  std::vector<Case> cases;
  const auto made = [&](const char *kernel) {
    return Case(kernel, seed * 100 + static_cast<unsigned>(cases.size()));
  };
  // Adds a result, and its accumulator if the case accumulates.
  const auto result = [](Case &one, const TensorView &term,
                         const TensorView &sum) {
    one.out(term);
    if (one.spec.find(kThen))
      one.out(sum, Doubles(static_cast<std::size_t>(sum.elements()),
                           beforeSum(one)));
  };
  const std::int64_t width = 24;
  const TensorView bias{type, {width}, {}}, biasSum{wide, {width}, {}};
  for (const auto &[samples, first] :
       {std::pair(3L, -2L), {3, -1}, {3, 1}, {3, 2}, {1, -2}, {1, -1}}) {
    const std::int64_t rows = samples == 1 ? 1 : 37;
    const TensorView x{type, {samples, rows, 50}, {}},
        above{type, {samples, rows, width}, {}};
    const auto follow = [first = first](Case one) {
      if (first > -2)
        one.set("then", "accumulate");
      if (first >= 0)
        one.set("first_term", first);
      return one;
    };
    if (first > -2) {
      Case alone = follow(made("sum").in(above));
      result(alone, bias, biasSum);
      cases.push_back(alone);
    }
    for (const auto &[equation, shape] :
         {std::pair("bsi,bso->io", Shape{50, width}),
          {"bsi,bso->oi", Shape{width, 50}}}) {
      Case one = follow(
          made("einsum").set("equation", equation).set(kBiasGradient, 1L));
      one.in(x).in(above);
      result(one, {type, shape, {}}, {wide, shape, {}});
      result(one, bias, biasSum);
      cases.push_back(one);
    }
  }
  // Each expert has its own product, and therefore its own bias gradient.
  cases.push_back(made("einsum")
                      .set("equation", "sei,seo->eio")
                      .set(kBiasGradient, 1L)
                      .in({type, {37, 3, 50}, {}})
                      .in({type, {37, 3, width}, {}})
                      .out({type, {3, 50, width}, {}})
                      .out({type, {3, width}, {}}));
  return cases;
}

/// Returns einsums with each kernel that may be fused into them, with and
/// without a bias. Library epilogues support some of the shapes. Accumulators
/// are f64 if `type` is f64, otherwise f32.
inline std::vector<Case> followedCases(ElementType type, unsigned seed) {
  const ElementType wide =
      type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  std::vector<Case> cases;
  for (const std::int64_t width : {24, 21}) {
    const TensorView x{type, {3, 37, 50}, {}}, weight{type, {50, width}, {}},
        bias{type, {width}, {}}, out{type, {3, 37, width}, {}},
        gradient{wide, {50, width}, {}};
    const auto einsum = [&](const char *then, const char *equation) {
      return Case("einsum", seed * 100 + static_cast<unsigned>(cases.size()))
          .set("equation", equation)
          .set("then", then);
    };
    for (const char *kind : {"gelu_tanh", "gelu", "relu"}) {
      for (bool biased : {false, true}) {
        Case one = einsum("activation", "bsi,io->bso");
        one.set("kind", kind).in(x).in(weight);
        if (biased)
          one.in(bias);
        cases.push_back(one.out(out).out(out));
      }
      cases.push_back(einsum("activation_grad", "bsi,io->bso")
                          .set("kind", kind)
                          .in(x)
                          .in(weight)
                          .in(out)
                          .out(out)
                          .out(out));
    }
    for (bool biased : {false, true}) {
      Case one = einsum("add", "bsi,io->bso");
      one.in(x).in(weight);
      if (biased)
        one.in(bias);
      cases.push_back(one.in(out).out(out).out(out));
    }
    cases.push_back(
        einsum("add", "bso,io->bsi").in(out).in(weight).in(x).out(x).out(x));
    // The next weight gradients are accumulated. Their operands have a
    // dimension of samples, or they have none.
    const TensorView row{type, {37, 50}, {}}, above{type, {37, width}, {}};
    for (const auto &[between, first, samples] : {std::tuple(type, -1L, true),
                                                  {type, 1, true},
                                                  {type, 2, true},
                                                  {wide, -1, true},
                                                  {wide, 1, true},
                                                  {wide, 2, true},
                                                  {type, -1, false},
                                                  {type, 2, false}}) {
      Case one = einsum("accumulate", samples ? "bsi,bso->io" : "si,so->io");
      if (first >= 0)
        one.set("first_term", first);
      one.in(samples ? x : row)
          .in(samples ? out : above)
          .out({between, gradient.shape, {}});
      cases.push_back(one.out(
          gradient, Doubles(static_cast<std::size_t>(gradient.elements()),
                            beforeSum(one))));
    }
  }
  return cases;
}

} // namespace mtplan::runtime::testing

#endif // MTPLAN_TESTS_RUNTIME_BACKEND_FUSED_CASES_H

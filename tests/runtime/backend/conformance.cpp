//===- conformance.cpp - What every backend must do -------------*- C++ -*-===//

#include "tests/runtime/backend/conformance.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/runtime/backend/even_cases.h"
#include "tests/runtime/backend/fused_cases.h"

namespace mtplan::runtime::testing {
namespace {

/// Returns the allowed error of elements of this type. The error is relative to
/// the element or to the root mean square of all elements, if that is larger.
double toleranceOf(ElementType type) {
  switch (type) {
  case ElementType::f64:
    return 1e-12;
  case ElementType::f32:
    return 1e-5;
  case ElementType::f16:
    return 2e-3;
  case ElementType::bf16:
    return 1e-2;
  case ElementType::i32:
    return 0.0;
  }
  return 0.0;
}

/// Returns the tolerance of a result. It is larger for 16-bit attention
/// gradients: tensor cores round their operands, and some of these are
/// gradients.
double toleranceOf(const Case &one, std::size_t result) {
  const ElementType type = one.spec.outputs[result].type;
  const bool half = type == ElementType::f16 || type == ElementType::bf16;
  return toleranceOf(type) *
         (half && one.spec.kernel == "attention_grad" ? 3.0 : 1.0);
}

/// Expects that `actual` is near `expected`, the results of the reference.
/// \param from     index of the first result that is compared
/// \param allowed  error that is allowed even if the type's tolerance is lower
void expectNear(const Case &one, const std::vector<Doubles> &actual,
                const std::vector<Doubles> &expected, std::size_t from = 0,
                double allowed = 0.0) {
  for (std::size_t i = from; i < expected.size(); ++i) {
    double squares = 0.0;
    for (double value : expected[i])
      squares += std::isfinite(value) ? value * value : 0.0;
    const double typical =
        std::sqrt(squares / static_cast<double>(expected[i].size()));
    double worst = 0.0;
    std::size_t where = 0;
    for (std::size_t e = 0; e < expected[i].size(); ++e) {
      if (actual[i][e] == expected[i][e])
        continue; // also equal infinities
      const double error = std::abs(actual[i][e] - expected[i][e]) /
                           std::max(typical, std::abs(expected[i][e]));
      if (std::isnan(error))
        FAIL() << titleOf(one) << ", result " << i << ", element " << e << ": "
               << actual[i][e] << " for " << expected[i][e];
      if (error > worst) {
        worst = error;
        where = e;
      }
    }
    EXPECT_LE(worst, std::max(allowed, toleranceOf(one, i)))
        << titleOf(one) << ", result " << i << ", element " << where << ": "
        << actual[i][where] << " for " << expected[i][where];
  }
}

} // namespace

std::string titleOf(const Case &one) {
  std::string title = one.spec.kernel;
  for (const Setting &setting : one.spec.settings)
    if (const auto *text = std::get_if<std::string>(&setting.value))
      title += " " + *text;
  for (const std::vector<TensorView> *side :
       {&one.spec.inputs, &one.spec.outputs})
    for (const TensorView &view : *side) {
      title += std::string(" ") + nameOf(view.type) + "[";
      for (std::int64_t size : view.shape)
        title += std::to_string(size) + " ";
      title += "]";
    }
  return title;
}

// A case that throws does not stop the cases after it.
TEST_P(Conformance, AgreesWithTheReference) {
  const std::unique_ptr<Backend> reference = makeReferenceBackend();
  for (ElementType type : kTypes)
    for (unsigned seed : {1, 2})
      for (const Case &one : catalog(type, seed))
        EXPECT_NO_THROW(expectNear(one, one.run(*backend), one.run(*reference)))
            << titleOf(one);
}

// On a GPU, tensor cores or, without dropout, a library compute attention in
// these shapes.
TEST_P(Conformance, AttentionOfModelsAgrees) {
  const std::unique_ptr<Backend> reference = makeReferenceBackend(),
                                 other = GetParam().make();
  for (ElementType type : {ElementType::f16, ElementType::bf16})
    for (const Case &one : modelAttention(type, 1)) {
      expectNear(one, one.run(*backend), one.run(*reference));
      EXPECT_EQ(one.runBytes(*backend), one.runBytes(*other)) << titleOf(one);
    }
}

// A backend need not write or round the value that a fused consumer reads,
// unless the consumer is an activation. In 16 bits, a library may use the tanh
// of the device, which is exact to 2^-11. At inputs near 2, the error of the
// derivative is two or three times as large.
TEST_P(Conformance, FusedConsumersOfEinsumsAgree) {
  const std::unique_ptr<Backend> reference = makeReferenceBackend();
  for (ElementType type : kTypes)
    for (const Case &one : followedCases(type, 1)) {
      const bool mayTakeItsTanh =
          bytesOf(type) == 2 && one.spec.text("kind", "") == "gelu_tanh";
      EXPECT_NO_THROW(
          expectNear(one, one.run(*backend), one.run(*reference),
                     one.spec.text("then", "") == "activation" ? 0 : 1,
                     toleranceOf(one.spec.outputs[0].type) +
                         (mayTakeItsTanh ? 4 * 0x1p-11 : 0.0)))
          << titleOf(one);
    }
}

// A backend need not write the gradients that it adds to accumulators. If a
// case accumulates, the test therefore compares only the accumulators.
TEST_P(Conformance, FusedBiasGradientsAgree) {
  const std::unique_ptr<Backend> reference = makeReferenceBackend();
  for (ElementType type : kTypes)
    for (const Case &one : biasGradientCases(type, 1)) {
      const bool accumulates = one.spec.find(kThen);
      const std::vector<Doubles> own = one.run(*backend),
                                 right = one.run(*reference);
      for (std::size_t i = 0; i < own.size(); ++i)
        if (!accumulates || i % 2 == 1)
          expectNear(one, {own[i]}, {right[i]}, 0,
                     toleranceOf(one.spec.outputs[0].type));
    }
}

// Backends that cannot batch products return no results and pass.
TEST_P(Conformance, BatchedProductsAgree) {
  const std::unique_ptr<Backend> reference = makeReferenceBackend();
  for (ElementType type : kTypes)
    for (const EvenCase &even : evenCases(type)) {
      const auto own = even.run(*backend, /*together=*/true);
      const bool isBare = even.spec().inputs.size() == 2 &&
                          !even.spec().find(kThen) &&
                          !even.spec().find(kBiasGradient);
      // The CUDA backend must batch at least plain products.
      const bool isWanted =
          isBare && std::string_view(GetParam().name) == "cuda";
      EXPECT_TRUE(!isWanted || !own.empty()) << titleOf(even.runs[0]);
      const auto right = even.run(*reference, /*together=*/false);
      for (std::size_t r = 0; r < own.size(); ++r)
        for (std::size_t o = 0; o < own[r].size(); ++o)
          if (even.isWritten(o)) {
            SCOPED_TRACE("run " + std::to_string(r) + ", of result " +
                         std::to_string(o));
            const TensorView &view = even.spec().outputs[o];
            expectNear(even.runs[r], {Case::widened(view, own[r][o])},
                       {Case::widened(view, right[r][o])}, 0,
                       toleranceOf(even.spec().outputs[0].type));
          }
    }
}

// Fused and separate kernels round the same values, so their bits are equal.
TEST_P(Conformance, FusedDropoutKeepsBits) {
  for (ElementType type : kTypes)
    for (ElementType between : kTypes)
      for (ElementType sum : kTypes)
        for (const Case &both : droppedCases(type, 1, between, sum))
          EXPECT_EQ(both.run(*backend)[1], inTurn(both, *backend)[1])
              << titleOf(both);
}

TEST_P(Conformance, FusedNormGradientKeepsBits) {
  for (ElementType type : kTypes)
    for (ElementType sum : kTypes)
      for (const Case &both : normGradCases(type, 1, type, sum)) {
        const std::vector<Doubles> own = both.run(*backend),
                                   right = inTurn(both, *backend);
        for (std::size_t i = 1; i < own.size(); ++i) // result 0 is intermediate
          EXPECT_EQ(own[i], right[i]) << titleOf(both) << ", result " << i;
      }
}

TEST_P(Conformance, RepetitionKeepsBits) {
  const std::unique_ptr<Backend> other = GetParam().make();
  for (ElementType type : kTypes)
    for (const auto &cases : {catalog(type, 3), biasGradientCases(type, 3)})
      for (const Case &one : cases)
        EXPECT_EQ(one.runBytes(*backend), one.runBytes(*other)) << titleOf(one);
}

namespace {

/// Returns the index of the dimension that counts samples, or -1.
std::int64_t sampleDim(const TensorView &view) {
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    if (view.shape[d] == kSamples)
      return static_cast<std::int64_t>(d);
  return -1;
}

/// Returns the elements of one sample, or all if no dimension counts samples.
Doubles takeSample(const TensorView &view, const Doubles &values,
                   std::int64_t sample) {
  const std::int64_t dim = sampleDim(view);
  if (dim < 0)
    return values;
  std::int64_t outer = 1, inner = 1;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(view.shape.size());
       ++d)
    (d < dim ? outer : inner) *= d == dim ? 1 : view.shape[d];
  Doubles taken;
  for (std::int64_t o = 0; o < outer; ++o)
    taken.insert(taken.end(), values.begin() + (o * kSamples + sample) * inner,
                 values.begin() + (o * kSamples + sample + 1) * inner);
  return taken;
}

/// Returns the view of one sample. The offset of a shard moves, too.
TensorView viewOfSample(TensorView view, std::int64_t sample) {
  const std::int64_t dim = sampleDim(view);
  if (dim < 0)
    return view;
  view.shape[dim] = 1;
  if (!view.pieces.empty())
    view.pieces[dim].offset += sample;
  return view;
}

/// Returns the case of one sample. The sample is a micro-batch of its own if no
/// input is a shard of the samples; otherwise its micro-batch stays the same.
Case oneSample(const Case &all, std::int64_t sample) {
  Case one(all.spec.kernel);
  one.spec.settings = all.spec.settings;
  one.moment = all.moment;
  const bool ofItsOwn =
      std::ranges::all_of(all.spec.inputs, [](const TensorView &view) {
        return view.pieces.empty() || sampleDim(view) < 0;
      });
  one.moment.microBatch = ofItsOwn ? sample : all.moment.microBatch;
  for (std::size_t i = 0; i < all.spec.inputs.size(); ++i)
    one.in(viewOfSample(all.spec.inputs[i], sample),
           takeSample(all.spec.inputs[i], all.input(i), sample));
  for (const TensorView &view : all.spec.outputs)
    one.out(viewOfSample(view, sample));
  return one;
}

Doubles accumulated(Backend &backend, const TensorView &view,
                    const Doubles &value, const Doubles &before) {
  return Case("accumulate").in(view, value).out(view, before).run(backend)[0];
}

} // namespace

TEST_P(Conformance, SingleSamplesHaveTheBitsOfABatch) {
  int sums = 0;
  for (ElementType type :
       {ElementType::f64, ElementType::f32, ElementType::bf16})
    for (Case all : catalog(type, 4)) {
      if (all.spec.inputs.empty() || all.spec.kernel == "accumulate" ||
          all.spec.kernel == "adamw" || all.spec.kernel == "square_sum" ||
          all.spec.kernel == "gradient_factor" ||
          all.spec.kernel == "transpose" ||
          GetParam().joinSamples.contains(all.spec.kernel))
        continue;
      all.moment.microBatch = 0;
      const std::vector<Doubles> together = all.run(*backend);
      std::vector<Doubles> totals;
      for (const TensorView &view : all.spec.outputs)
        totals.emplace_back(static_cast<std::size_t>(view.elements()), 0.0);
      for (std::int64_t sample = 0; sample < kSamples; ++sample) {
        const std::vector<Doubles> alone = oneSample(all, sample).run(*backend);
        for (std::size_t i = 0; i < alone.size(); ++i) {
          const TensorView &view = all.spec.outputs[i];
          if (sampleDim(view) >= 0)
            EXPECT_EQ(alone[i], takeSample(view, together[i], sample))
                << titleOf(all) << ", result " << i << ", sample " << sample;
          else
            totals[i] = accumulated(*backend, view, alone[i], totals[i]);
        }
      }
      for (std::size_t i = 0; i < together.size(); ++i) {
        const TensorView &view = all.spec.outputs[i];
        // One call rounds a 16-bit sum once; four calls round it four times.
        if (sampleDim(view) >= 0 || view.type == ElementType::bf16)
          continue;
        EXPECT_EQ(totals[i], together[i]) << titleOf(all) << ", result " << i;
        ++sums;
      }
    }
  EXPECT_GT(sums, 50);
}

TEST_P(Conformance, EvaluationDropsNothing) {
  std::set<std::string> kernels;
  for (ElementType type : kTypes)
    for (Case one : catalog(type, 5)) {
      if (one.spec.number("rate", 0.0) == 0.0)
        continue;
      const std::vector<Bytes> dropping = one.runBytes(*backend);
      one.moment.drops = false;
      const std::vector<Bytes> kept = one.runBytes(*backend);
      const std::vector<Doubles> numbers = one.run(*backend);
      for (Setting &setting : one.spec.settings)
        if (setting.name == "rate")
          setting.value = 0.0;
      // Without dropout, a library may compute attention, with other bits.
      if (bytesOf(type) == 2 && one.spec.kernel != "dropout")
        expectNear(one, one.run(*backend), numbers);
      else
        EXPECT_EQ(kept, one.runBytes(*backend)) << titleOf(one);
      EXPECT_NE(kept, dropping) << titleOf(one);
      kernels.insert(one.spec.kernel);
    }
  EXPECT_EQ(kernels,
            (std::set<std::string>{"attention", "attention_grad", "dropout"}));
}

TEST_P(Conformance, UpdatesAParameterThatIsItsOwnMaster) {
  const TensorView view{ElementType::f32, {3000}, {}};
  const Case apart = Case("adamw")
                         .set("decay", std::int64_t{1})
                         .in(view)
                         .out(view, Doubles(3000, 0.3))
                         .out(view, Doubles(3000, 0.3))
                         .out(view, Doubles(3000, 0.1))
                         .out(view, Doubles(3000, 0.2));
  const std::vector<Bytes> expected = apart.runBytes(*backend);
  EXPECT_EQ(expected[0], expected[1]);
  Memory &memory = backend->memory();
  auto placed = [&](const Doubles &values) {
    const Bytes bytes = Case::stored(view, values);
    Allocation place(memory, bytes.size());
    memory.upload(place.get(), bytes.data(), bytes.size());
    return place;
  };
  const Allocation gradient = placed(apart.input(0)),
                   own = placed(Doubles(3000, 0.3)),
                   mean = placed(Doubles(3000, 0.1)),
                   square = placed(Doubles(3000, 0.2));
  const void *const in[] = {gradient.get()};
  void *const out[] = {own.get(), own.get(), mean.get(), square.get()};
  StepNumbers numbers;
  numbers.update = apart.update;
  Allocation step(memory, sizeof(numbers));
  memory.upload(step.get(), &numbers, sizeof(numbers));
  backend->prepare(apart.spec)
      ->run({in, out, reinterpret_cast<const StepNumbers *>(step.get())});
  Bytes master = expected[1];
  memory.download(master.data(), own.get(), master.size());
  EXPECT_EQ(master, expected[1]);
}

TEST_P(Conformance, KeepsNan) {
  const double nan = std::nan("");
  const TensorView x{ElementType::f32, {1, 1, 6}, {}},
      token{ElementType::f32, {1, 1}, {}};
  const Doubles values{1, 2, nan, 3, 4, 5};
  EXPECT_TRUE(std::isnan(Case("vocab_max")
                             .set("classes", std::int64_t{6})
                             .in(x, values)
                             .out(token)
                             .run(*backend)[0][0]));
  for (const char *kind : {"gelu_tanh", "silu", "relu"}) {
    const Doubles result = Case("activation")
                               .set("kind", kind)
                               .in(x, values)
                               .out(x)
                               .run(*backend)[0];
    EXPECT_TRUE(std::isnan(result[2])) << kind;
    EXPECT_FALSE(std::isnan(result[3])) << kind;
  }
}

} // namespace mtplan::runtime::testing

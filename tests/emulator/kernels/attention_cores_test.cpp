//===- attention_cores_test.cpp - Attention on tensor cores ---------------===//

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/device.h"
#include "tests/emulator/races.h"
#include "tests/runtime/backend/conformance.h"

namespace mtplan::runtime::testing {
namespace {

struct Attention {
  std::int64_t batch, queries, heads, keys, keyHeads, width;
  bool causal;
  double rate;
  std::vector<Span> pieces; ///< the query's shard; empty: the whole tensor
  double sharpness = 1.5;   ///< multiplies the scores

  /// Returns a forward case with random inputs rounded to `rounded`.
  Case forward(ElementType rounded, ElementType type) const {
    return filled("attention", 3, rounded, type)
        .out(query(type))
        .out(lse(type));
  }
  /// Returns the backward case for `made`, the results of forward().
  Case backward(ElementType rounded, ElementType type,
                const std::vector<Doubles> &made) const {
    Case one = filled("attention_grad", 3, rounded, type);
    one.in(query(type), made[0]).in(lse(type), made[1]);
    one.in(query(type), numbers(query(rounded), 4));
    return one.out(query(type)).out(key(type)).out(key(type));
  }

  TensorView query(ElementType type) const {
    return {type, {batch, queries, heads * width}, pieces};
  }
  TensorView key(ElementType type) const {
    return {type, {batch, keys, keyHeads * width}, {}};
  }
  TensorView lse(ElementType type) const {
    return {type == ElementType::f64 ? type : ElementType::f32,
            {batch, queries, heads},
            {}};
  }

private:
  static Doubles numbers(const TensorView &view, unsigned seed) {
    return Case("", seed).in(view).input(0);
  }
  Case filled(const char *kernel, unsigned count, ElementType rounded,
              ElementType type) const {
    Case one =
        Case(kernel)
            .set("head_dim", width)
            .set("causal", std::int64_t{causal ? 1 : 0})
            .set("scale", sharpness / std::sqrt(static_cast<double>(width)))
            .set("rate", rate)
            .set("mask", "h.*.attn.drop");
    for (unsigned i = 0; i < count; ++i)
      one.in(i == 0 ? query(type) : key(type),
             numbers(i == 0 ? query(rounded) : key(rounded), i));
    return one;
  }
};

/// Returns cases that exercise the ends of tiles, causal masks, heads, dropout,
/// and scores far above those of earlier tiles.
std::vector<Attention> attentionsOf(std::int64_t width) {
  const std::int64_t half = 3 * width;
  return {
      {1, 150, 1, 150, 1, width, true, 0.0, {}},
      {2,
       70,
       3,
       140,
       1,
       width,
       true,
       0.2,
       {{1, 5}, {70, 140}, {half, 2 * half}}},
      {1, 5, 2, 67, 2, width, false, 0.1, {}},
      {1, 131, 2, 33, 1, width, false, 0.0, {}},
      {1, 40, 1, 36, 1, width, true, 0.3, {{3, 4}, {2, 42}, {0, width}}},
      {1, 70, 1, 210, 1, width, false, 0.1, {}, 40.0},
  };
}

/// Expects errors below `tolerance` times the larger of the element and the
/// root mean square.
void expectNear(const Case &one, const std::vector<Doubles> &actual,
                const std::vector<Doubles> &expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double squares = 0.0, worst = 0.0;
    for (const double value : expected[i])
      squares += value * value;
    const double typical =
        std::sqrt(squares / static_cast<double>(expected[i].size()));
    for (std::size_t e = 0; e < expected[i].size(); ++e) {
      const double error = std::abs(actual[i][e] - expected[i][e]) /
                           std::max(typical, std::abs(expected[i][e]));
      worst = error > worst || std::isnan(error) ? error : worst;
    }
    EXPECT_LE(worst, tolerance) << titleOf(one) << ", result " << i;
  }
}

class AttentionOnCores : public ::testing::TestWithParam<ElementType> {};

// Probabilities, their gradients and results are each rounded to 16 bits once,
// so the worst element is wrong by a few units in the last place.
TEST_P(AttentionOnCores, IsCloseToDoublePrecision) {
  const ElementType type = GetParam();
  const double tolerance = 8 * (type == ElementType::bf16 ? 0x1p-8 : 0x1p-11);
  const std::unique_ptr<Backend> cuda = makeCudaBackend(),
                                 reference = makeReferenceBackend();
  for (const std::int64_t width : {16, 64, 80, 96, 128})
    for (const Attention &one : attentionsOf(width)) {
      const std::uint64_t before = emulator::coreProducts();
      const Case forward = one.forward(type, type);
      const std::vector<Doubles> made = forward.run(*cuda);
      EXPECT_GT(emulator::coreProducts(), before) << titleOf(forward);
      expectNear(forward, made,
                 one.forward(type, ElementType::f64).run(*reference),
                 tolerance);
      const Case backward = one.backward(type, type, made);
      expectNear(backward, backward.run(*cuda),
                 one.backward(type, ElementType::f64, made).run(*reference),
                 tolerance);
    }
}

// A missing barrier, or a read before an asynchronous copy to shared memory is
// complete, would change the results.
TEST_P(AttentionOnCores, GivesTheSameBitsInTheOtherOrderOfThreads) {
  const ElementType type = GetParam();
  const std::unique_ptr<Backend> cuda = makeCudaBackend();
  for (const std::int64_t width : {64, 96, 128}) {
    const Attention one{1, 150, 2, 150, 1, width, true, 0.1, {}};
    const Case forward = one.forward(type, type),
               backward = one.backward(type, type, forward.run(*cuda));
    for (const Case &half : {forward, backward}) {
      std::vector<Bytes> there;
      {
        const emulator::WatchedAccesses watched;
        there = half.runBytes(*cuda);
      }
      emulator::setOrder(emulator::Order::descending);
      const std::vector<Bytes> back = half.runBytes(*cuda);
      emulator::setOrder(emulator::Order::ascending);
      EXPECT_EQ(there, back) << titleOf(half);
    }
  }
}

/// While an object exists, blocks have the shared memory of an A10 or L40.
struct SmallDevice {
  SmallDevice() { emulator::setSharedOfDevice(99 << 10); }
  ~SmallDevice() { emulator::setSharedOfDevice(emulator::kMostSharedOfAny); }
  SmallDevice(const SmallDevice &) = delete;
  SmallDevice &operator=(const SmallDevice &) = delete;
};

// A block has fewer queries, but each query sums in the same order.
TEST_P(AttentionOnCores, GivesTheSameBitsOnASmallDevice) {
  const ElementType type = GetParam();
  const std::unique_ptr<Backend> cuda = makeCudaBackend();
  for (const Attention &one : attentionsOf(128)) {
    const Case backward =
        one.backward(type, type, one.forward(type, type).run(*cuda));
    const std::vector<Bytes> large = backward.runBytes(*cuda);
    const SmallDevice device;
    EXPECT_EQ(backward.runBytes(*cuda), large) << titleOf(backward);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionOnCores,
                         ::testing::Values(ElementType::bf16, ElementType::f16),
                         [](const auto &of) {
                           return std::string(nameOf(of.param));
                         });

// Other types, widths, scales and dropout rates use plain kernels.
TEST(CudaAttention, UsesTensorCoresOnlyForSupportedShapes) {
  const std::unique_ptr<Backend> cuda = makeCudaBackend();
  const auto products = [&](ElementType type, std::int64_t width, double scale,
                            double rate = 0.0) {
    Case one =
        Attention{1, 3, 1, 4, 1, width, false, rate, {}}.forward(type, type);
    one.spec.settings[2].value = scale;
    const std::uint64_t before = emulator::coreProducts();
    one.run(*cuda);
    return emulator::coreProducts() - before;
  };
  EXPECT_GT(products(ElementType::bf16, 24, 0.5), 0U);
  EXPECT_EQ(products(ElementType::f32, 24, 0.5), 0U);
  EXPECT_EQ(products(ElementType::bf16, 20, 0.5), 0U);
  EXPECT_EQ(products(ElementType::bf16, 136, 0.5), 0U);
  EXPECT_EQ(products(ElementType::bf16, 24, -0.5), 0U);
  // 31/32 is the largest rate whose threshold is a 16-bit float.
  EXPECT_GT(products(ElementType::bf16, 24, 0.5, 0.96875), 0U);
  EXPECT_EQ(products(ElementType::bf16, 24, 0.5, 0.97), 0U);
}

} // namespace
} // namespace mtplan::runtime::testing

//===- attention_test.cpp - Head widths of attention and RoPE -------------===//

#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/runtime/backend/kernel_case.h"

namespace mtplan::runtime::testing {
namespace {

/// Returns a forward case and its backward case, with one head of `width`.
std::vector<Case> casesOf(std::int64_t width) {
  const TensorView query{ElementType::f32, {1, 5, width}, {}},
      key{ElementType::f32, {1, 37, width}, {}},
      lse{ElementType::f32, {1, 5, 1}, {}};
  auto named = [&](const char *kernel) {
    return Case(kernel).set("head_dim", width).set("scale", 0.1);
  };
  Case forward = named("attention").in(query).in(key).in(key);
  forward.out(query).out(lse);
  const std::vector<Doubles> made = forward.run(*makeReferenceBackend());
  Case backward = named("attention_grad")
                      .in(query, forward.input(0))
                      .in(key, forward.input(1))
                      .in(key, forward.input(2))
                      .in(query, made[0])
                      .in(lse, made[1])
                      .in(query);
  backward.out(query).out(key).out(key);
  return {forward, backward};
}

// Kernels are compiled for several accumulator widths. The test takes head
// widths that equal one of these and head widths that do not.
TEST(CudaAttention, SupportsHeadsUpTo256Wide) {
  const std::unique_ptr<Backend> cuda = makeCudaBackend(),
                                 reference = makeReferenceBackend();
  for (const std::int64_t width : {33, 64, 80, 128, 136, 256})
    for (const Case &one : casesOf(width)) {
      SCOPED_TRACE(width);
      expectWithin(1e-5, one, one.run(*cuda), one.run(*reference));
    }
}

// A head has more rotary pairs than the number of angles that a block holds at
// once.
TEST(CudaRope, RotatesHeadsOfAnyWidth) {
  const TensorView x{ElementType::f32, {1, 3, 2 * 310}, {}};
  for (const std::int64_t interleaved : {0, 1}) {
    const Case one = Case("rope")
                         .set("head_dim", std::int64_t{310})
                         .set("rotary_dim", std::int64_t{298})
                         .set("theta", 1e4)
                         .set("interleaved", interleaved)
                         .in(x)
                         .out(x);
    expectWithin(1e-5, one, one.run(*makeCudaBackend()),
                 one.run(*makeReferenceBackend()));
  }
}

TEST(CudaAttention, RejectsHeadsWiderThan256) {
  try {
    makeCudaBackend()->prepare(casesOf(264)[0].spec);
    ADD_FAILURE() << "was prepared";
  } catch (const std::runtime_error &error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(
                                  "head_dim 264; GPU kernels support at most "
                                  "256"));
  }
}

} // namespace
} // namespace mtplan::runtime::testing

//===- column_sums_test.cpp - Long columns, many samples, wide rows -------===//
//
// More than the suite of all backends has: a sample's pieces are many threads',
// samples go by turns, and the gradient of a norm is held by wider blocks.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/runtime/backend/kernel_case.h"

namespace mtplan::runtime::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TensorView of(const Shape &shape) { return {ElementType::f32, shape, {}}; }

Case normGrad(const Shape &shape) {
  const TensorView x = of(shape), row = of({shape.back()});
  return Case("layer_norm_grad").in(x).in(row).in(x).out(x).out(row).out(row);
}

// Sums of a column are of so many normal numbers.
void expectAlike(const Case &one) {
  const std::vector<Doubles> own = one.run(*makeCudaBackend()),
                             right = one.run(*makeReferenceBackend());
  for (std::size_t r = 0; r < right.size(); ++r)
    for (std::size_t e = 0; e < right[r].size(); ++e)
      ASSERT_NEAR(own[r][e], right[r][e], 1e-4)
          << one.spec.kernel << ", result " << r << ", element " << e;
}

TEST(CudaColumnSums, AreOfLongColumnsAndManySamples) {
  for (const Shape &shape :
       {Shape{3, 600, 24}, {40, 5, 21}, {5, 1300, 40}, {1, 4100, 8}})
    expectAlike(Case("sum").in(of(shape)).out(of({shape.back()})));
  for (const Shape &shape : {Shape{9, 300, 24}, {35, 17, 21}, {2, 600, 40}})
    expectAlike(normGrad(shape));
}

TEST(CudaNorms, TakeWideRows) {
  for (const std::int64_t width : {2049, 4097, 8193, 16385, 32768})
    expectAlike(normGrad({2, 1, width}));
  EXPECT_THAT(
      [] {
        makeCudaBackend()->prepare(normGrad({2, 1, 32769}).spec);
      },
      ThrowsMessage<std::runtime_error>(
          HasSubstr("h.*.layer_norm_grad (layer_norm_grad): has rows of 32769 "
                    "columns, of which a GPU takes at most 32768")));
}

} // namespace
} // namespace mtplan::runtime::testing

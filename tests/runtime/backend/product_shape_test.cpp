//===- product_shape_test.cpp - Einsums as few matrix products ------------===//

#include <gtest/gtest.h>

#include "runtime/backend/einsum.h"

namespace mtplan::runtime {
namespace {

using Shape = std::vector<std::int64_t>;

ProductShape shapeOf(const std::string &equation, const Shape &lhs,
                     const Shape &rhs, const Shape &result) {
  KernelSpec spec{"einsum", "test", {{"equation", equation}}, {}, {}};
  spec.inputs = {{ElementType::f32, lhs, {}}, {ElementType::f32, rhs, {}}};
  spec.outputs = {{ElementType::f32, result, {}}};
  return ProductShape::of(spec).value();
}

std::size_t products(const ProductShape &shape) {
  return placesOf(shape.outer).size() * placesOf(shape.summed).size();
}

TEST(ProductShape, SamplesAreALoop) {
  const ProductShape shape =
      shapeOf("bsi,io->bso", {4, 37, 50}, {50, 23}, {4, 37, 23});
  EXPECT_EQ(products(shape), 4U);
  EXPECT_EQ(shape.m.size, 37);
}

TEST(ProductShape, JoinedSamplesAreRows) {
  const ProductShape shape =
      shapeOf("bsi,io->bso", {4, 37, 50}, {50, 23}, {4, 37, 23}).joined();
  EXPECT_EQ(products(shape), 1U);
  EXPECT_EQ(shape.m.size, 4 * 37);
  EXPECT_EQ(shape.n.size, 23);
  EXPECT_EQ(shape.k.size, 50);
}

TEST(ProductShape, JoinedSamplesAreTermsOfASum) {
  const ProductShape shape =
      shapeOf("bsi,bso->io", {4, 37, 50}, {4, 37, 23}, {50, 23}).joined();
  EXPECT_EQ(products(shape), 1U);
  EXPECT_EQ(shape.m.size, 50);
  EXPECT_EQ(shape.k.size, 4 * 37);
}

TEST(ProductShape, SamplesAloneAreRows) {
  const ProductShape shape =
      shapeOf("bi,io->bo", {4, 30}, {30, 7}, {4, 7}).joined();
  EXPECT_EQ(products(shape), 1U);
  EXPECT_EQ(shape.m.size, 4);
}

// Each expert has its own weights and therefore its own product. The product's
// rows are those of all samples, which are adjacent.
TEST(ProductShape, ExpertsStayApart) {
  const ProductShape shape =
      shapeOf("ebci,eio->ebco", {3, 4, 5, 12}, {3, 12, 10}, {3, 4, 5, 10})
          .joined();
  ASSERT_EQ(shape.outer.size(), 1U);
  EXPECT_EQ(shape.outer[0].size, 3);
  EXPECT_EQ(shape.m.size, 4 * 5);
}

} // namespace
} // namespace mtplan::runtime

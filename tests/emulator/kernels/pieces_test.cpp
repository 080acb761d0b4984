//===- pieces_test.cpp - Pieces and types that meet otherwise -------------===//

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/cublaslt.h"
#include "tests/runtime/backend/followed_cases.h"

namespace mtplan::runtime::testing {
namespace {

// The second half of the positions, of a table that is whole.
TEST(CudaPositions, FindTheirRowsOfAWholeTable) {
  const TensorView x{ElementType::f32, {3, 9, 12}, {{0, 3}, {9, 18}, {0, 12}}},
      table{ElementType::f32, {15, 12}, {}};
  for (const Case &one : {Case("position_embedding").in(x).in(table).out(x),
                          Case("position_embedding_grad").in(x).out(table)}) {
    const Doubles actual = one.run(*makeCudaBackend())[0],
                  expected = one.run(*makeReferenceBackend())[0];
    for (std::size_t e = 0; e < expected.size(); ++e)
      EXPECT_NEAR(actual[e], expected[e], 1e-5)
          << one.spec.kernel << ", element " << e;
  }
}

// So that a loss in f64 is a sum that no order changes.
TEST(CudaLoss, OfASampleInF32IsAnF32) {
  const TensorView tokens{ElementType::f32, {1, 7}, {}},
      count{ElementType::f32, {}, {}}, loss{ElementType::f64, {}, {}};
  const double result = Case("token_loss")
                            .in(tokens)
                            .in(tokens, Doubles(7, 5.0))
                            .in(tokens)
                            .integers({1, 7}, 0, 9)
                            .in(count, Doubles{19.0})
                            .out(loss)
                            .run(*makeCudaBackend())[0][0];
  EXPECT_EQ(result, static_cast<double>(static_cast<float>(result)));
}

// Layers have the same products: the library is asked once for a shape.
TEST(CudaProducts, OfOneShapeAreChosenOnce) {
  const TensorView x{ElementType::f32, {2, 3, 8}, {}},
      w{ElementType::f32, {8, 12}, {}}, y{ElementType::f32, {2, 3, 12}, {}},
      wide{ElementType::f32, {8, 20}, {}}, z{ElementType::f32, {2, 3, 20}, {}};
  auto product = [&](const TensorView &weight, const TensorView &to,
                     unsigned seed) {
    return Case("einsum", seed)
        .set("equation", "bsi,io->bso")
        .in(x)
        .in(weight)
        .out(to);
  };
  const emulator::ProductCalls before = emulator::productCalls();
  const std::unique_ptr<Backend> device = makeCudaBackend();
  for (const Case &one :
       {product(w, y, 1), product(wide, z, 2), product(w, y, 3)}) {
    const Doubles actual = one.run(*device)[0],
                  expected = one.run(*makeReferenceBackend())[0];
    for (std::size_t e = 0; e < expected.size(); ++e)
      EXPECT_NEAR(actual[e], expected[e], 1e-4);
  }
  const emulator::ProductCalls after = emulator::productCalls();
  EXPECT_EQ(after.handles - before.handles, 1);
  EXPECT_EQ(after.heuristics - before.heuristics, 2);
}

// One kernel does both, but where there are many products, or where the library
// wants what it sums to lie along k, and cannot tell of a single one.
TEST(CudaProducts, SumWhatIsAboveBesideThem) {
  for (const ElementType type :
       {ElementType::f64, ElementType::f32, ElementType::bf16})
    for (const Case &one : biasGradientCases(type, 1)) {
      const std::vector<std::int64_t> &above = one.spec.inputs.back().shape;
      const std::string equation = one.spec.text("equation", "");
      const bool cannot =
          equation == "sei,seo->eio" ||
          (equation == "bsi,bso->oi" && above[0] * above[1] == 1);
      EXPECT_EQ(makeCudaBackend()->prepare(one.spec)->isInTurn(), cannot)
          << one.spec.kernel << " of " << above[0] << " samples";
    }
}

} // namespace
} // namespace mtplan::runtime::testing

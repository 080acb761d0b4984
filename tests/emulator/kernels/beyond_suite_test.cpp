//===- beyond_suite_test.cpp - Kernels beyond the conformance suite -------===//
//
// Tests GPU kernels on operands that the conformance suite lacks: sharded
// operands, mixed types, long columns, wide rows, and experts beyond their
// capacity. Also tests which results are fused.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/calibration/kernel_runs.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/cublaslt.h"
#include "tests/emulator/device.h"
#include "tests/runtime/backend/fused_cases.h"

namespace mtplan::runtime::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Activations are sharded over positions, and the table is replicated.
TEST(CudaPositions, FindTheirRowsOfAReplicatedTable) {
  const TensorView x{ElementType::f32, {3, 9, 12}, {{0, 3}, {9, 18}, {0, 12}}},
      table{ElementType::f32, {15, 12}, {}};
  for (const Case &one : {Case("position_embedding").in(x).in(table).out(x),
                          Case("position_embedding_grad").in(x).out(table)})
    expectWithin(1e-5, one, one.run(*makeCudaBackend()),
                 one.run(*makeReferenceBackend()));
}

// The f64 sum of a sample's f32 losses is exact here, so it does not depend on
// the order.
TEST(CudaLoss, OfASampleInF32IsRoundedToF32) {
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

// Layers repeat the same products, so the heuristic is called once per shape.
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
       {product(w, y, 1), product(wide, z, 2), product(w, y, 3)})
    expectWithin(1e-4, one, one.run(*device), one.run(*makeReferenceBackend()));
  const emulator::ProductCalls after = emulator::productCalls();
  EXPECT_EQ(after.handles - before.handles, 1);
  EXPECT_EQ(after.heuristics - before.heuristics, 2);
}

// The bias gradient is fused into the weight gradient except for batches of
// products, and for a k of 1, where the operand's orientation is ambiguous.
TEST(CudaProducts, FuseTheBiasGradient) {
  for (const ElementType type :
       {ElementType::f64, ElementType::f32, ElementType::bf16})
    for (const Case &one : biasGradientCases(type, 1)) {
      const std::vector<std::int64_t> &above = one.spec.inputs.back().shape;
      const std::string equation = one.spec.text("equation", "");
      const bool cannot =
          equation == "sei,seo->eio" ||
          (equation == "bsi,bso->oi" && above[0] * above[1] == 1);
      EXPECT_EQ(makeCudaBackend()->prepare(one.spec)->isSequential(), cannot)
          << one.spec.kernel << " of " << above[0] << " samples";
    }
}

// Adds are fused in all types. cuBLASLt fuses no activation but GELU, and only
// in 16-bit types.
TEST(CudaCalibration, MeasuresFusedConsumers) {
  const CalibrationShapes small{
      .samples = 2, .sequence = 64, .hidden = 128, .words = 512, .square = 256};
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    std::set<std::string> joined;
    const std::unique_ptr<Backend> backend = makeCudaBackend();
    for (const KernelRun &one : kernelRunsOf(small, type))
      if (one.run.as == MeasuredAs::followed &&
          !backend->prepare(one.spec)->isSequential())
        joined.insert(one.run.after + '+' + one.run.kernel + ' ' +
                      one.run.variant);
    std::set<std::string> expected{
        "+add ", "dropout+add ", "layer_norm_grad+add ", "rms_norm_grad+add "};
    if (bytesOf(type) == 2)
      expected.insert({"+activation gelu_tanh", "+activation_grad gelu_tanh"});
    EXPECT_EQ(joined, expected);
  }
}

// Each of six tokens chooses both experts. Each expert has a capacity of two
// tokens, so four tokens are dropped.
TEST(CudaExperts, DropTokensBeyondTheCapacity) {
  const TensorView tokens{ElementType::f32, {3, 6, 10}, {}},
      gates{ElementType::f32, {3, 6, 2}, {}},
      slots{ElementType::i32, {3, 6, 2}, {}},
      places{ElementType::f32, {2, 3, 2, 10}, {}};
  const std::unique_ptr<Backend> cuda = makeCudaBackend(),
                                 reference = makeReferenceBackend();
  const Case queue =
      Case("moe_slots").set("top_k", std::int64_t{2}).in(gates).out(slots);
  const Doubles held = queue.run(*cuda)[0];
  EXPECT_EQ(held, queue.run(*reference)[0]);
  EXPECT_EQ(*std::max_element(held.begin(), held.end()), 5.0);
  for (const Case &one :
       {Case("moe_dispatch").in(tokens).in(slots, held).out(places),
        Case("moe_dispatch_grad").in(slots, held).in(places).out(tokens),
        Case("moe_combine").in(places).in(gates).in(slots, held).out(tokens),
        Case("moe_combine_grad")
            .in(places)
            .in(gates)
            .in(slots, held)
            .in(tokens)
            .out(places)
            .out(gates)})
    expectWithin(1e-5, one, one.run(*cuda), one.run(*reference));
}

TensorView of(const Shape &shape) { return {ElementType::f32, shape, {}}; }

Case normGrad(const Shape &shape) {
  const TensorView x = of(shape), row = of({shape.back()});
  return Case("layer_norm_grad").in(x).in(row).in(x).out(x).out(row).out(row);
}

// The tolerance allows for sums over thousands of normal numbers.
void expectAlike(const Case &one) {
  expectWithin(1e-4, one, one.run(*makeCudaBackend()),
               one.run(*makeReferenceBackend()));
}

// The shapes are larger than those of the conformance suite: several threads
// share a sample, several samples share a block, and blocks are wider.
TEST(CudaColumnSums, AgreeForLongColumnsAndManySamples) {
  for (const Shape &shape :
       {Shape{3, 600, 24}, {40, 5, 21}, {5, 1300, 40}, {1, 4100, 8}})
    expectAlike(Case("sum").in(of(shape)).out(of({shape.back()})));
  for (const Shape &shape : {Shape{9, 300, 24}, {35, 17, 21}, {2, 600, 40}})
    expectAlike(normGrad(shape));
}

TEST(CudaNorms, SupportRowsUpTo32768Wide) {
  for (const std::int64_t width : {2049, 4097, 8192, 8193, 12288, 16385, 32768})
    expectAlike(normGrad({2, 1, width}));
  EXPECT_THAT(
      [] {
        makeCudaBackend()->prepare(normGrad({2, 1, 32769}).spec);
      },
      ThrowsMessage<std::runtime_error>(
          HasSubstr("h.*.layer_norm_grad (layer_norm_grad): has rows of 32769 "
                    "columns; GPU kernels support at most 32768")));
}

// An A100 block has 163 KiB of shared memory, too few for copies of such rows.
TEST(CudaNorms, SupportRowsThatSharedMemoryCannotHold) {
  emulator::setSharedOfDevice(163 << 10);
  expectAlike(normGrad({2, 1, 8192}));
  emulator::setSharedOfDevice(emulator::kMostSharedOfAny);
}

} // namespace
} // namespace mtplan::runtime::testing

//===- even_products_test.cpp - Batched products of equal strides ---------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/base/test_helpers.h"
#include "tests/emulator/cublaslt.h"
#include "tests/runtime/backend/conformance.h"
#include "tests/runtime/backend/even_cases.h"

namespace mtplan::runtime::testing {
namespace {

/// Returns the first case of this type with these properties.
EvenCase caseOf(ElementType type, const char *then, bool sums,
                std::size_t inputs) {
  for (EvenCase &even : evenCases(type))
    if (even.spec().text(kThen, "") == then &&
        (even.spec().find(kBiasGradient) != nullptr) == sums &&
        even.spec().inputs.size() == inputs)
      return even;
  throw std::logic_error("no such case");
}

EvenCase linear() { return caseOf(ElementType::bf16, "", false, 2); }

// The emulated cuBLASLt computes each matrix of a batch with the same loop, so
// that the bits differ only if the arguments are wrong.
TEST(EvenProducts, GiveTheBitsOfEachAlone) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  std::size_t written = 0;
  for (ElementType type : kTypes)
    for (const EvenCase &even : evenCases(type)) {
      const auto alone = even.run(*backend, false),
                 together = even.run(*backend, true);
      ASSERT_EQ(together.size(), even.runs.size()) << titleOf(even.runs[0]);
      for (std::size_t r = 0; r < alone.size(); ++r)
        for (std::size_t o = 0; o < alone[r].size(); ++o) {
          if (!even.isWritten(o)) {
            EXPECT_EQ(together[r][o], Case::stored(even.spec().outputs[o],
                                                   even.runs[r].before(o)));
            continue;
          }
          ++written;
          EXPECT_EQ(together[r][o], alone[r][o])
              << titleOf(even.runs[r]) << ", run " << r << ", result " << o;
        }
      EXPECT_EQ(backend->prepareEven(even.spec(), even.steps())->flops(),
                static_cast<double>(even.runs.size()) *
                    backend->prepare(even.spec())->flops());
    }
  EXPECT_GT(written, 100U);
}

// Strides must be non-negative multiples of the alignment, and the addend must
// have the stride of the result.
TEST(EvenProducts, NeedStridesThatTheLibrarySupports) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  const auto isOne = [&](const EvenCase &even, const EvenRuns &steps) {
    return backend->prepareEven(even.spec(), steps) != nullptr;
  };
  const EvenCase plain = linear();
  EvenRuns steps = plain.steps();
  EXPECT_TRUE(isOne(plain, steps));
  steps.inputs[1] += kAlignment / 2;
  EXPECT_FALSE(isOne(plain, steps));
  steps.inputs[1] = -kAlignment;
  EXPECT_FALSE(isOne(plain, steps));
  steps = plain.steps();
  steps.outputs[0] += 2;
  EXPECT_FALSE(isOne(plain, steps));
  const EvenCase sum = caseOf(ElementType::bf16, "add", false, 3);
  steps = sum.steps();
  EXPECT_TRUE(isOne(sum, steps));
  steps.inputs[2] += kAlignment;
  EXPECT_FALSE(isOne(sum, steps));
}

TEST(EvenProducts, NeedAProductThatIsOneLibraryCall) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  const auto isOne = [&](auto change) {
    EvenCase even = linear();
    change(even.runs[0].spec);
    EvenRuns steps = even.steps();
    return backend->prepareEven(even.spec(), steps) != nullptr;
  };
  EXPECT_TRUE(isOne([](KernelSpec &) {}));
  // GELU is not batched, because it also stores its input.
  EXPECT_FALSE(isOne([](KernelSpec &spec) {
    spec.settings.push_back({kThen, std::string("activation")});
    spec.settings.push_back({"kind", std::string("gelu_tanh")});
    spec.outputs.push_back(spec.outputs[0]);
  }));
  // These are not batched: operands of two types, a result of another type, a
  // product that is a batch already, and a kernel that is no einsum.
  EXPECT_FALSE(
      isOne([](KernelSpec &spec) { spec.inputs[1].type = ElementType::f32; }));
  EXPECT_FALSE(
      isOne([](KernelSpec &spec) { spec.outputs[0].type = ElementType::f16; }));
  EXPECT_FALSE(isOne([](KernelSpec &spec) {
    spec.settings[0].value = std::string("esi,eio->eso");
    spec.inputs[1].shape = {3, 48, 24};
  }));
  EXPECT_FALSE(isOne([](KernelSpec &spec) {
    spec.kernel = "mul";
    spec.settings.clear();
    spec.inputs[1] = spec.outputs[0] = spec.inputs[0];
  }));
  EXPECT_THROW(isOne([](KernelSpec &spec) {
                 spec.inputs[1].shape = {9, 24};
               }),
               std::runtime_error);
}

TEST(EvenProducts, AreSwitchedByTheEnvironmentVariable) {
  const EvenCase plain = linear();
  const auto isOne = [&](const char *wanted) {
    const ScopedVariable variable("MTPLAN_JOINT_PRODUCTS", wanted);
    return makeCudaBackend()->prepareEven(plain.spec(), plain.steps()) !=
           nullptr;
  };
  EXPECT_TRUE(isOne("1"));
  EXPECT_FALSE(isOne("0"));
  EXPECT_THROW(isOne("no"), std::runtime_error);
  EXPECT_THROW(isOne(""), std::runtime_error);
}

// The library may refuse the bias epilogue of a batch.
TEST(EvenProducts, AreNotBatchedIfTheLibraryRefusesTheBias) {
  const EvenCase biased = caseOf(ElementType::bf16, "", false, 3),
                 plain = linear();
  const emulator::RefusedBiases refused;
  EXPECT_FALSE(makeCudaBackend()->prepareEven(biased.spec(), biased.steps()));
  EXPECT_TRUE(makeCudaBackend()->prepareEven(plain.spec(), plain.steps()));
}

// If the library refuses operand sums, a kernel computes the bias gradients
// after the batch.
TEST(EvenProducts, SumBiasGradientsAfterwardsIfTheLibraryRefuses) {
  const emulator::RefusedSums refused;
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  int found = 0;
  for (ElementType type : kTypes)
    for (const EvenCase &even : evenCases(type)) {
      if (!even.spec().find(kBiasGradient))
        continue;
      const auto alone = even.run(*backend, false),
                 together = even.run(*backend, true);
      ASSERT_EQ(together.size(), even.runs.size()) << titleOf(even.runs[0]);
      for (std::size_t r = 0; r < alone.size(); ++r)
        for (std::size_t o = 0; o < alone[r].size(); ++o)
          if (even.isWritten(o)) {
            ++found;
            EXPECT_EQ(together[r][o], alone[r][o])
                << titleOf(even.runs[r]) << ", run " << r << ", result " << o;
          } else {
            EXPECT_EQ(together[r][o], Case::stored(even.spec().outputs[o],
                                                   even.runs[r].before(o)));
          }
    }
  EXPECT_GT(found, 50);
}

} // namespace
} // namespace mtplan::runtime::testing

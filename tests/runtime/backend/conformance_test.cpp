//===- conformance_test.cpp - The backends of the CPU -----------*- C++ -*-===//

#include <set>
#include <typeinfo>

#include <gtest/gtest.h>

#include "tests/runtime/backend/conformance.h"

namespace mtplan::runtime::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Backends, Conformance,
    ::testing::Values(Contender{"reference", makeReferenceBackend},
                      Contender{"cpu1", [] { return makeCpuBackend(1); }},
                      Contender{"cpu3", [] { return makeCpuBackend(3); }}),
    [](const auto &of) { return std::string(of.param.name); });

TEST(CpuBackend, BitsDoNotDependOnTheNumberOfThreads) {
  const std::unique_ptr<Backend> one = makeCpuBackend(1);
  const std::unique_ptr<Backend> two = makeCpuBackend(2);
  for (ElementType type : kTypes)
    for (const Case &each : catalog(type, 5))
      EXPECT_EQ(each.runBytes(*one), each.runBytes(*two)) << titleOf(each);
}

TEST(CpuBackend, LeavesRareKernelsToTheReference) {
  const std::unique_ptr<Backend> cpu = makeCpuBackend(1);
  const std::unique_ptr<Backend> reference = makeReferenceBackend();
  std::set<std::string> left;
  for (const Case &one : catalog(ElementType::f32, 1)) {
    const auto ours = cpu->prepare(one.spec),
               plain = reference->prepare(one.spec);
    const Kernel &own = *ours, &other = *plain;
    if (typeid(own) == typeid(other))
      left.insert(one.spec.kernel);
  }
  EXPECT_EQ(
      left,
      (std::set<std::string>{
          // The reference computes attention with a relative bias (T5).
          "attention", "attention_grad", "balance_loss", "balance_loss_grad",
          // UpdateRule computes this factor for CPU ranks.
          "gradient_factor", "moe_combine", "moe_combine_grad", "moe_dispatch",
          "moe_dispatch_grad", "moe_gate", "moe_gate_grad", "moe_slots",
          "put_first", "put_first_grad", "softmax", "softmax_grad",
          "take_first", "take_first_grad"}));
}

} // namespace
} // namespace mtplan::runtime::testing

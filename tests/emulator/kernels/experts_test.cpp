//===- experts_test.cpp - Experts that are asked by too many --------------===//

#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/runtime/backend/kernel_case.h"

namespace mtplan::runtime::testing {
namespace {

// Two places for six tokens, of which each asks both experts: four get none of
// either.
TEST(CudaExperts, LeaveOutWhoFindsNoPlace) {
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
            .out(gates)}) {
    const std::vector<Doubles> actual = one.run(*cuda),
                               expected = one.run(*reference);
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (std::size_t e = 0; e < expected[i].size(); ++e)
        EXPECT_NEAR(actual[i][e], expected[i][e], 1e-5)
            << one.spec.kernel << ", result " << i << ", element " << e;
  }
}

} // namespace
} // namespace mtplan::runtime::testing

//===- followed_product.cpp - Products with an epilogue -------------------===//

#include "runtime/backend/followed_product.h"

#include <algorithm>

#include "runtime/cuda/families.h"
#include "runtime/plan/first_term.h"

namespace mtplan::runtime::cuda {

namespace {

class WithEpilogue final : public Kernel {
public:
  /// \param theFirst  stores what the other adds, in run `theTerm`
  WithEpilogue(const FollowedProduct &theWhole, const MatrixProduct &theProduct,
               const MatrixProduct &theFirst, FirstTerm theTerm,
               SharedContext theContext)
      : whole(theWhole), product(theProduct), first(theFirst),
        firstTerm(theTerm), context(std::move(theContext)) {
    context->reserve(
        std::max(product.workspaceBytes(), first.workspaceBytes()));
  }

  void run(const Invocation &call) override {
    const void *other = whole.takesAddend || whole.takesKept
                            ? call.inputs[whole.operands]
                            : nullptr;
    const bool stores = firstTerm.isOf(call.microBatch, call.copy);
    (stores ? first : product)
        .run(streamOf(context),
             {call.inputs[whole.lhs], call.inputs[whole.rhs],
              whole.operands == 3 ? call.inputs[2] : nullptr, call.outputs[1],
              whole.takesAddend ? other : nullptr,
              whole.takesKept ? other : call.outputs[0]},
             context->shared<void>());
  }

  double flops() const override { return whole.flops; }

private:
  const FollowedProduct whole;
  const MatrixProduct &product, &first;
  const FirstTerm firstTerm;
  const SharedContext context;
};

} // namespace

MadeKernel makeFollowedProduct(const KernelSpec &spec,
                               const SharedContext &context) {
  const std::optional<FollowedProduct> whole = FollowedProduct::of(spec);
  if (!whole)
    return nullptr;
  const FirstTerm firstTerm = firstTermOf(spec.settings);
  MatrixShape stored = whole->shape;
  stored.adds = stored.adds && firstTerm.microBatch == FirstTerm::kNone;
  const MatrixProduct *product = context->products.find(whole->shape),
                      *first = context->products.find(stored);
  if (!product || !first)
    return nullptr;
  return std::make_unique<WithEpilogue>(*whole, *product, *first, firstTerm,
                                        context);
}

} // namespace mtplan::runtime::cuda

//===- followed_product.cpp - Products with an epilogue -------------------===//

#include "runtime/backend/followed_product.h"

#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

class WithEpilogue final : public Kernel {
public:
  WithEpilogue(const FollowedProduct &theWhole, const MatrixProduct &theProduct,
               SharedContext theContext)
      : whole(theWhole), product(theProduct), context(std::move(theContext)) {
    context->reserve(product.workspaceBytes());
  }

  void run(const Invocation &call) override {
    const void *other = whole.takesAddend || whole.takesKept
                            ? call.inputs[whole.operands]
                            : nullptr;
    product.run(streamOf(context),
                {call.inputs[whole.lhs], call.inputs[whole.rhs],
                 whole.operands == 3 ? call.inputs[2] : nullptr,
                 call.outputs[1], whole.takesAddend ? other : nullptr,
                 whole.takesKept ? other : call.outputs[0]},
                context->shared<void>());
  }

  double flops() const override { return whole.flops; }

private:
  const FollowedProduct whole;
  const MatrixProduct &product;
  const SharedContext context;
};

} // namespace

MadeKernel makeFollowedProduct(const KernelSpec &spec,
                               const SharedContext &context) {
  const std::optional<FollowedProduct> whole = FollowedProduct::of(spec);
  const MatrixProduct *product =
      whole ? context->products.find(whole->shape) : nullptr;
  if (!product)
    return nullptr;
  return std::make_unique<WithEpilogue>(*whole, *product, context);
}

} // namespace mtplan::runtime::cuda

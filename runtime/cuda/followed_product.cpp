//===- followed_product.cpp - Products with an epilogue -------------------===//

#include "runtime/backend/followed_product.h"

#include <algorithm>

#include "runtime/cuda/families.h"
#include "runtime/cuda/wanted_epilogues.h"
#include "runtime/plan/first_term.h"

namespace mtplan::runtime::cuda {

namespace {

/// Adds a vector that a product has stored to a bias's gradient.
MadeKernel adder(const KernelSpec &spec, const TensorView &gradient,
                 const SharedContext &context) {
  KernelSpec one{"accumulate", spec.label, {}, {gradient}, {gradient}};
  return makePointwise(one, context);
}

class WithEpilogue final : public Kernel {
public:
  /// \param theFirst  stores what the other adds, in run `theTerm`
  WithEpilogue(const KernelSpec &spec, const FollowedProduct &theWhole,
               const MatrixProduct &theProduct, const MatrixProduct &theFirst,
               FirstTerm theTerm, SharedContext theContext)
      : whole(theWhole), product(theProduct), first(theFirst),
        firstTerm(theTerm), context(std::move(theContext)) {
    if (sums() && whole.shape.adds) {
      const TensorView &gradient = spec.outputs[whole.biasGradient];
      addGradient = adder(spec, gradient, context);
      workspace = roundedUp(static_cast<std::size_t>(gradient.elements() *
                                                     bytesOf(gradient.type)));
    }
    context->reserve(
        workspace + std::max(product.workspaceBytes(), first.workspaceBytes()));
  }

  void run(const Invocation &call) override {
    const void *other = whole.takesAddend || whole.takesKept
                            ? call.inputs[whole.operands]
                            : nullptr;
    const bool stores = firstTerm.isOf(call.microBatch, call.copy);
    auto *scratch = context->shared<std::byte>();
    void *const gradient = sums() ? call.outputs[whole.biasGradient] : nullptr;
    // A sum is stored, never added.
    const void *vector = addGradient && !stores ? scratch : gradient;
    (stores ? first : product)
        .run(streamOf(context),
             {call.inputs[whole.lhs], call.inputs[whole.rhs],
              whole.operands == 3 ? call.inputs[2] : nullptr,
              call.outputs[whole.result], whole.takesAddend ? other : nullptr,
              whole.takesKept ? other : call.outputs[0],
              const_cast<void *>(vector)},
             scratch + workspace);
    if (vector != gradient)
      addGradient->run({&vector, &gradient});
  }

  double flops() const override { return whole.flops; }

private:
  bool sums() const { return whole.shape.sums != OperandSum::none; }

  const FollowedProduct whole;
  const MatrixProduct &product, &first;
  const FirstTerm firstTerm;
  const SharedContext context;
  MadeKernel addGradient;    ///< null: there is none to be added
  std::size_t workspace = 0; ///< where it begins; before it, the vector
};

} // namespace

MadeKernel makeFollowedProduct(const KernelSpec &spec,
                               const SharedContext &context) {
  const std::optional<FollowedProduct> whole = FollowedProduct::of(spec);
  if (!whole || !isWanted(whole->shape))
    return nullptr;
  const FirstTerm firstTerm = firstTermOf(spec.settings);
  MatrixShape stored = whole->shape;
  stored.adds = stored.adds && firstTerm.microBatch == FirstTerm::kNone;
  const MatrixProduct *product = context->products.find(whole->shape),
                      *first = context->products.find(stored);
  if (!product || !first)
    return nullptr;
  return std::make_unique<WithEpilogue>(spec, *whole, *product, *first,
                                        firstTerm, context);
}

} // namespace mtplan::runtime::cuda

//===- followed_product.cpp - Products with an epilogue -------------------===//

#include "runtime/backend/followed_product.h"

#include <algorithm>

#include "runtime/cuda/environment_switch.h"
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

/// Whether what a product sums is added to what is there.
bool addsSums(const FollowedProduct &whole) {
  return whole.shape.sums != OperandSum::none && whole.shape.adds;
}

std::size_t sumBytes(const KernelSpec &spec, const FollowedProduct &whole) {
  const TensorView &sum = spec.outputs[whole.biasGradient];
  return static_cast<std::size_t>(sum.elements() * bytesOf(sum.type));
}

class WithEpilogue final : public Kernel {
public:
  /// \param theWhole  of one or more matrices
  /// \param theFirst  stores what the other adds, in run `theTerm`
  WithEpilogue(const KernelSpec &spec, const FollowedProduct &theWhole,
               const MatrixProduct &theProduct, const MatrixProduct &theFirst,
               FirstTerm theTerm, SharedContext theContext)
      : whole(theWhole), product(theProduct), first(theFirst),
        firstTerm(theTerm), context(std::move(theContext)) {
    if (addsSums(whole)) {
      addGradient = adder(spec, spec.outputs[whole.biasGradient], context);
      toNextSum = roundedUp(sumBytes(spec, whole));
      workspace = static_cast<std::size_t>(whole.shape.batches) * toNextSum;
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
    if (vector == gradient)
      return;
    for (std::int64_t i = 0; i < whole.shape.batches; ++i) {
      const void *term = scratch + static_cast<std::size_t>(i) * toNextSum;
      void *sum = static_cast<std::byte *>(gradient) +
                  i * whole.shape.vectorStep * bytesOf(whole.shape.result);
      addGradient->run({&term, &sum});
    }
  }

  double flops() const override { return whole.flops; }

private:
  bool sums() const { return whole.shape.sums != OperandSum::none; }

  const FollowedProduct whole;
  const MatrixProduct &product, &first;
  const FirstTerm firstTerm;
  const SharedContext context;
  MadeKernel addGradient;    ///< null: there is none to be added
  std::size_t toNextSum = 0; ///< bytes, of those that are added
  std::size_t workspace = 0; ///< where it begins; before it, the vectors
};

MadeKernel made(const std::optional<FollowedProduct> &whole,
                const KernelSpec &spec, const SharedContext &context) {
  if (!whole || !isWanted(whole->shape))
    return nullptr;
  const FirstTerm firstTerm = firstTermOf(spec.settings);
  MatrixShape stored = whole->shape, added = whole->shape;
  stored.adds = stored.adds && firstTerm.microBatch == FirstTerm::kNone;
  if (addsSums(*whole) && added.batches > 1)
    added.vectorStep =
        static_cast<std::int64_t>(roundedUp(sumBytes(spec, *whole))) /
        bytesOf(added.result);
  if (stored.adds)
    stored = added;
  const MatrixProduct *product = context->products.find(added),
                      *first = context->products.find(stored);
  if (!product || !first)
    return nullptr;
  return std::make_unique<WithEpilogue>(spec, *whole, *product, *first,
                                        firstTerm, context);
}

} // namespace

MadeKernel makeFollowedProduct(const KernelSpec &spec,
                               const SharedContext &context) {
  return made(FollowedProduct::of(spec), spec, context);
}

MadeKernel makeEvenProducts(const KernelSpec &spec, const EvenRuns &runs,
                            const SharedContext &context) {
  if (!isSwitchedOn("MTPLAN_JOINT_PRODUCTS"))
    return nullptr;
  return made(FollowedProduct::of(spec, runs), spec, context);
}

} // namespace mtplan::runtime::cuda

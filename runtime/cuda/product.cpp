//===- product.cpp - Einsums as matrix products, and their epilogues ------===//

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/backend/einsum.h"
#include "runtime/backend/followed.h"
#include "runtime/cuda/families.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime::cuda {
namespace {

const std::byte *at(const void *data, std::int64_t element, ElementType type) {
  return static_cast<const std::byte *>(data) + element * bytesOf(type);
}

std::size_t bytesOfTensor(const TensorView &view, ElementType type) {
  return static_cast<std::size_t>(view.elements() * bytesOf(type));
}

/// Returns the calls in a form that cuBLASLt supports. If cuBLASLt does not
/// support the bias, the product is stored in f32 or f64, and the conversion to
/// the result adds the bias.
MatrixCalls doable(MatrixCalls calls, MatrixProducts &products) {
  if (!calls.biased || products.find(calls.first))
    return calls;
  calls.first.biased = false;
  if (calls.made != ElementType::f64)
    calls.made = ElementType::f32;
  calls.first.result = calls.further.result = calls.made;
  return calls;
}

struct Converted {
  MadeKernel kernel;     ///< null: no conversion is needed
  std::size_t place = 0; ///< offset in scratch memory in bytes
};

class Product final : public Kernel {
public:
  Product(const KernelSpec &spec, MatrixCalls theCalls,
          SharedContext theContext)
      : context(std::move(theContext)),
        calls(doable(std::move(theCalls), context->products)),
        out(spec.outputs[0]), outer(placesOf(calls.outer)),
        summed(placesOf(calls.summed)) {
    products.push_back(&context->products.of(calls.first));
    if (summed.size() > 1)
      products.push_back(&context->products.of(calls.further));
    auto reserve = [&](Converted &one, const TensorView &view, ElementType from,
                       ElementType to, ElementType kept) {
      if (from == to)
        return;
      one.kernel = cast(spec, view, from, to);
      one.place = workspace;
      workspace += roundedUp(bytesOfTensor(view, kept));
    };
    const TensorView &lhs = spec.inputs[calls.lhs],
                     &rhs = spec.inputs[calls.rhs];
    reserve(a, lhs, lhs.type, calls.in, calls.in);
    reserve(b, rhs, rhs.type, calls.in, calls.in);
    if (calls.biased)
      reserve(bias, spec.inputs[2], spec.inputs[2].type, calls.made,
              calls.made);
    reserve(result, out, calls.made, out.type, calls.made);
    std::size_t most = 0;
    for (const MatrixProduct *product : products)
      most = std::max(most, product->workspaceBytes());
    context->reserve(workspace + most);
  }

  void run(const Invocation &call) override {
    const void *left = converted(a, call.inputs[calls.lhs]);
    const void *right = converted(b, call.inputs[calls.rhs]);
    const void *vector =
        calls.biased ? converted(bias, call.inputs[2]) : nullptr;
    std::byte *scratch = context->shared<std::byte>();
    const cudaStream_t stream = context->stream().get();
    void *to = result.kernel ? scratch + result.place : call.outputs[0];
    for (const Place &place : outer)
      for (std::size_t term = 0; term < summed.size(); ++term)
        products[term == 0 ? 0 : 1]->run(
            stream,
            {at(left, place.a + summed[term].a, calls.in),
             at(right, place.b + summed[term].b, calls.in), vector,
             const_cast<std::byte *>(at(to, place.c, calls.made))},
            scratch + workspace);
    if (calls.biased && !calls.first.biased) {
      addRow(stream, {to, calls.made}, {vector, calls.made}, calls.first.n,
             {call.outputs[0], out.type}, out.elements(),
             calls.made == ElementType::f64);
    } else if (result.kernel) {
      const void *from = to;
      result.kernel->run({&from, call.outputs});
    }
  }

  double flops() const override { return calls.flops(); }

private:
  MadeKernel cast(const KernelSpec &spec, TensorView view, ElementType from,
                  ElementType to) const {
    KernelSpec one;
    one.kernel = "cast";
    one.label = spec.label;
    view.type = from;
    one.inputs = {view};
    view.type = to;
    one.outputs = {view};
    return makePointwise(one, context);
  }

  const void *converted(const Converted &one, const void *data) const {
    if (!one.kernel)
      return data;
    void *to = context->shared<std::byte>() + one.place;
    one.kernel->run({&data, &to});
    return to;
  }

  const SharedContext context;
  const MatrixCalls calls;
  const TensorView out;
  const std::vector<Place> outer, summed;
  /// Holds the products for the first term of a sum and for further terms.
  std::vector<const MatrixProduct *> products;
  Converted a, b, bias, result;
  std::size_t workspace = 0; ///< offset of cuBLASLt's workspace
};

bool sumsOperand(const FollowedProduct &whole) {
  return whole.shape.sums != OperandSum::none;
}

bool addsSums(const FollowedProduct &whole) {
  return sumsOperand(whole) && whole.shape.adds;
}

/// Returns the stride in bytes of a batch's bias gradients in scratch memory.
std::size_t sumStep(const KernelSpec &spec, const FollowedProduct &whole) {
  const TensorView &sum = spec.outputs[whole.biasGradient];
  return roundedUp(bytesOfTensor(sum, sum.type));
}

class WithEpilogue final : public Kernel {
public:
  /// \param theFirst  overwrites the sum; replaces `theProduct` in the run that
  /// `theTerm` identifies
  WithEpilogue(const KernelSpec &spec, const FollowedProduct &theWhole,
               const MatrixProduct &theProduct, const MatrixProduct &theFirst,
               FirstTerm theTerm, SharedContext theContext)
      : whole(theWhole), product(theProduct), first(theFirst),
        firstTerm(theTerm), context(std::move(theContext)) {
    if (addsSums(whole)) {
      const TensorView &gradient = spec.outputs[whole.biasGradient];
      addGradient = makePointwise(
          {"accumulate", spec.label, {}, {gradient}, {gradient}}, context);
      toNextSum = sumStep(spec, whole);
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
    void *const gradient =
        sumsOperand(whole) ? call.outputs[whole.biasGradient] : nullptr;
    // cuBLASLt overwrites the bias gradient, so a term that has to be
    // accumulated is first stored in scratch memory.
    const void *vector = addGradient && !stores ? scratch : gradient;
    (stores ? first : product)
        .run(context->stream().get(),
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
  const FollowedProduct whole;
  const MatrixProduct &product, &first;
  const FirstTerm firstTerm;
  const SharedContext context;
  MadeKernel addGradient;    ///< accumulates a stored term; may be null
  std::size_t toNextSum = 0; ///< stride of stored terms in bytes
  std::size_t workspace = 0; ///< offset of cuBLASLt's workspace
};

/// Returns whether the epilogues of a product are enabled. MTPLAN_EPILOGUES
/// lists the enabled epilogues: "gelu" (also its gradient), "sums" (bias
/// gradients), "gelu,sums" (the default) or "0". Whether fusion is faster
/// depends on the device and the version of cuBLASLt. Biases and addends are
/// always fused.
/// \throws std::runtime_error for other values
bool isWanted(const MatrixShape &shape) {
  const char *given = std::getenv("MTPLAN_EPILOGUES");
  if (!given)
    return true;
  const std::string_view all = given;
  bool gelu = false, sums = false;
  for (std::size_t start = 0; all != "0" && start <= all.size();) {
    const std::size_t end = std::min(all.find(',', start), all.size());
    const std::string_view word = all.substr(start, end - start);
    if (word != "gelu" && word != "sums")
      throw std::runtime_error("MTPLAN_EPILOGUES is \"" + std::string(all) +
                               "\": must be \"gelu\", \"sums\", "
                               "\"gelu,sums\" or \"0\"");
    (word == "gelu" ? gelu : sums) = true;
    start = end + 1;
  }
  return (gelu || shape.epilogue == Epilogue::none) &&
         (sums || shape.sums == OperandSum::none);
}

MadeKernel makeWithEpilogue(const std::optional<FollowedProduct> &whole,
                            const KernelSpec &spec,
                            const SharedContext &context) {
  if (!whole || !isWanted(whole->shape))
    return nullptr;
  const FirstTerm firstTerm = firstTermOf(spec.settings);
  MatrixShape stored = whole->shape, added = whole->shape;
  stored.adds = stored.adds && firstTerm.microBatch == FirstTerm::kNone;
  if (addsSums(*whole) && added.batches > 1)
    added.vectorStep = static_cast<std::int64_t>(sumStep(spec, *whole)) /
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

MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context) {
  if (!ProductShape::of(spec))
    return makeLetterSum(spec, context);
  return std::make_unique<Product>(spec, MatrixCalls::of(spec), context);
}

MadeKernel makeFusedProduct(const KernelSpec &spec,
                            const SharedContext &context) {
  return makeWithEpilogue(FollowedProduct::of(spec), spec, context);
}

} // namespace

void addProducts(Makers &to) {
  to.single["einsum"] = makeProduct;
  to.fused["einsum"] = makeFusedProduct;
}

MadeKernel makeEvenProducts(const KernelSpec &spec, const EvenRuns &runs,
                            const SharedContext &context) {
  if (!isSwitchedOn("MTPLAN_JOINT_PRODUCTS"))
    return nullptr;
  return makeWithEpilogue(FollowedProduct::of(spec, runs), spec, context);
}

} // namespace mtplan::runtime::cuda

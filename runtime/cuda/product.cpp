//===- product.cpp - Einsums ----------------------------------------------===//

#include <algorithm>

#include "runtime/backend/matrix_calls.h"
#include "runtime/cuda/added_row.h"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

const std::byte *at(const void *data, std::int64_t element, ElementType type) {
  return static_cast<const std::byte *>(data) + element * bytesOf(type);
}

/// What the device can do of it: where it adds no vectors to a product, what is
/// made is wide, and the vector is added as it is rounded.
MatrixCalls doable(MatrixCalls calls, MatrixProducts &products) {
  if (!calls.biased || products.find(calls.first))
    return calls;
  calls.first.biased = false;
  if (calls.made != ElementType::f64)
    calls.made = ElementType::f32;
  calls.first.result = calls.further.result = calls.made;
  return calls;
}

/// A tensor that is copied to another type before the product.
struct Converted {
  MadeKernel kernel; ///< null: it is used as it is
  std::size_t place = 0;
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
    auto reserve = [&](Converted &one, const TensorView &view,
                       ElementType type) {
      if (view.type == type)
        return;
      one.kernel = cast(spec, view, view.type, type);
      one.place = workspace;
      workspace +=
          roundedUp(static_cast<std::size_t>(view.elements() * bytesOf(type)));
    };
    reserve(a, spec.inputs[calls.lhs], calls.in);
    reserve(b, spec.inputs[calls.rhs], calls.in);
    if (calls.biased)
      reserve(bias, spec.inputs[2], calls.made);
    if (calls.made != out.type) {
      result.kernel = cast(spec, out, calls.made, out.type);
      result.place = workspace;
      workspace += roundedUp(
          static_cast<std::size_t>(out.elements() * bytesOf(calls.made)));
    }
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
    void *to = result.kernel ? scratch + result.place : call.outputs[0];
    for (const Place &place : outer)
      for (std::size_t term = 0; term < summed.size(); ++term)
        products[term == 0 ? 0 : 1]->run(
            streamOf(context),
            {at(left, place.a + summed[term].a, calls.in),
             at(right, place.b + summed[term].b, calls.in), vector,
             const_cast<std::byte *>(at(to, place.c, calls.made))},
            scratch + workspace);
    if (calls.biased && !calls.first.biased) {
      addRow(streamOf(context), {to, calls.made}, {vector, calls.made},
             calls.first.n, {call.outputs[0], out.type}, out.elements(),
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
  std::vector<const MatrixProduct *>
      products; ///< the first term, and the others
  Converted a, b, bias, result;
  std::size_t workspace = 0; ///< where it begins
};

} // namespace

MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context) {
  if (!ProductShape::of(spec))
    return makeLetterSum(spec, context);
  return std::make_unique<Product>(spec, MatrixCalls::of(spec), context);
}

} // namespace mtplan::runtime::cuda

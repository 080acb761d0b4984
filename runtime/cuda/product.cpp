//===- product.cpp - Einsums ----------------------------------------------===//
//
// As few products of matrices as the shapes allow; samples are rows, or terms
// of a sum, of one of them, so what one sample gives may differ in its last
// bits with how many there are. Where cuBLASLt has no product between types,
// it multiplies to f32 (or f64), and the result is rounded once.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <numeric>
#include <optional>

#include "runtime/backend/product_shape.h"
#include "runtime/cuda/families.h"
#include "runtime/cuda/matrix_product.h"

namespace mtplan::runtime::cuda {

namespace {

constexpr std::size_t kUnit = 256;

std::size_t roundedUp(std::size_t bytes) {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

const std::byte *at(const void *data, std::int64_t element, ElementType type) {
  return static_cast<const std::byte *>(data) + element * bytesOf(type);
}

/// A tensor that is copied to another type before the product.
struct Converted {
  MadeKernel kernel; ///< null: it is used as it is
  std::size_t place = 0;
};

class Product final : public Kernel {
public:
  Product(const KernelSpec &spec, const ProductShape &whole,
          SharedContext theContext)
      : context(std::move(theContext)), shape(whole.joined()),
        out(spec.outputs[0].type), biased(spec.inputs.size() == 3) {
    // One loop runs within the library: the longest.
    auto longest = std::ranges::max_element(shape.outer, {}, &LetterStep::size);
    if (longest != shape.outer.end()) {
      batch = *longest;
      shape.outer.erase(longest);
    }
    outer = placesOf(shape.outer);
    summed = placesOf(shape.summed);
    chooseTypes(spec);
    makeProducts(spec);
    std::size_t room = 0;
    auto reserve = [&](Converted &one, const TensorView &view,
                       ElementType type) {
      if (view.type == type)
        return;
      one.kernel = cast(spec, view, view.type, type);
      one.place = room;
      room +=
          roundedUp(static_cast<std::size_t>(view.elements() * bytesOf(type)));
    };
    reserve(a, spec.inputs[shape.lhs], in);
    reserve(b, spec.inputs[shape.rhs], in);
    if (biased)
      reserve(bias, spec.inputs[2], made);
    if (made != out) {
      result.kernel = cast(spec, spec.outputs[0], made, out);
      result.place = room;
      room += roundedUp(
          static_cast<std::size_t>(spec.outputs[0].elements() * bytesOf(made)));
    }
    workspace = room;
    std::size_t most = 0;
    for (const MatrixProduct &product : products)
      most = std::max(most, product.workspaceBytes());
    context->reserve(room + most);
  }

  void run(const Invocation &call) override {
    const void *left = converted(a, call.inputs[shape.lhs]);
    const void *right = converted(b, call.inputs[shape.rhs]);
    const void *vector = biased ? converted(bias, call.inputs[2]) : nullptr;
    std::byte *scratch = context->shared<std::byte>();
    void *to = result.kernel ? scratch + result.place : call.outputs[0];
    for (const Place &place : outer)
      for (std::size_t term = 0; term < summed.size(); ++term)
        products[term == 0 ? 0 : 1].run(
            *context, at(left, place.a + summed[term].a, in),
            at(right, place.b + summed[term].b, in), vector,
            const_cast<std::byte *>(at(to, place.c, made)),
            scratch + workspace);
    if (result.kernel) {
      const void *from = to;
      result.kernel->run({&from, call.outputs});
    }
  }

  double flops() const override {
    return 2.0 *
           static_cast<double>(shape.m.size * shape.n.size * shape.k.size) *
           static_cast<double>(batch.size) *
           static_cast<double>(outer.size() * summed.size());
  }

private:
  /// Both inputs have one type, and the result the same or, of 16 bits, f32.
  void chooseTypes(const KernelSpec &spec) {
    const ElementType left = spec.inputs[shape.lhs].type,
                      right = spec.inputs[shape.rhs].type;
    in = usesDouble(spec) ? ElementType::f64
         : left == right  ? left
                          : ElementType::f32;
    made = out == in ? in : in == ElementType::f64 ? in : ElementType::f32;
    // Sums of several products are rounded once.
    if (summed.size() > 1 && in != ElementType::f64)
      made = ElementType::f32;
  }

  void makeProducts(const KernelSpec &spec) {
    auto isMatrix = [](std::int64_t row, std::int64_t column,
                       std::int64_t columns) {
      return columns == 1 || row == 1 || column == 1;
    };
    if (!isMatrix(shape.m.a, shape.k.a, shape.k.size) ||
        !isMatrix(shape.k.b, shape.n.b, shape.n.size))
      refuse(spec, "an operand has neither rows nor columns side by side");
    MatrixShape one;
    one.m = shape.m.size;
    one.n = shape.n.size;
    one.k = shape.k.size;
    one.batches = batch.size;
    one.a = {shape.m.a, shape.k.a, batch.a};
    one.b = {shape.k.b, shape.n.b, batch.b};
    one.c = {shape.m.c, 1, batch.c};
    one.inputs = in;
    one.result = made;
    one.a.aligned = alignmentOf(&Place::a, in);
    one.b.aligned = alignmentOf(&Place::b, in);
    one.c.aligned = alignmentOf(&Place::c, made);
    one.biased = biased;
    products.emplace_back(one, *context);
    if (summed.size() > 1) {
      one.biased = false; // is in the first
      one.adds = true;
      products.emplace_back(one, *context);
    }
  }

  /// Of all places of the loops.
  std::uint32_t alignmentOf(std::int64_t Place::*side, ElementType type) const {
    std::int64_t all = kAlignment;
    for (const std::vector<Place> *places : {&outer, &summed})
      for (const Place &place : *places)
        all = std::gcd(all, place.*side * bytesOf(type));
    return static_cast<std::uint32_t>(all);
  }

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
  ProductShape shape;
  LetterStep batch;
  std::vector<Place> outer, summed;
  const ElementType out;
  const bool biased;
  ElementType in = ElementType::f32, made = ElementType::f32;
  std::vector<MatrixProduct> products; ///< the first term, and the others
  Converted a, b, bias, result;
  std::size_t workspace = 0; ///< where it begins
};

} // namespace

MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context) {
  const std::optional<ProductShape> shape = ProductShape::of(spec);
  if (!shape)
    return makeLetterSum(spec, context);
  return std::make_unique<Product>(spec, *shape, context);
}

} // namespace mtplan::runtime::cuda

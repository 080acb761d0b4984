//===- reference_backend.cpp - The backend of plain loops -----------------===//
//
// A kernel of this backend widens its operands to double, runs the reference
// kernel, and rounds every result once to the type of its tensor.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include "runtime/backend/element.h"
#include "runtime/backend/followed.h"
#include "runtime/backend/signature.h"
#include "runtime/reference/kernels.h"
#include "runtime/reference_backend/updates.h"

namespace mtplan::runtime {
namespace {

using reference::Call, reference::Doubles, reference::LocalShape;

bool isDouble(const TensorView &view) { return view.type == ElementType::f64; }

Doubles widened(const TensorView &view, const void *data) {
  Doubles values(static_cast<std::size_t>(view.elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = readElement(view.type, data, static_cast<std::int64_t>(i));
  return values;
}

void write(const TensorView &view, const Doubles &values, void *data) {
  for (std::size_t i = 0; i < values.size(); ++i)
    writeElement(view.type, data, static_cast<std::int64_t>(i), values[i]);
}

LocalShape shapeOf(const TensorView &view) {
  LocalShape shape{view.shape, {}};
  for (const Span &piece : view.pieces)
    shape.pieces.push_back({piece.offset, piece.global});
  return shape;
}

/// Returns a call without operands, results and moment, which each run sets.
Call preparedCall(const KernelSpec &spec) {
  Call call;
  for (const Setting &setting : spec.settings)
    call.attributes.set(setting.name, setting.value);
  for (const TensorView &input : spec.inputs)
    call.inShapes.push_back(shapeOf(input));
  for (const TensorView &output : spec.outputs) {
    call.outShapes.push_back(shapeOf(output));
    call.roundsSums.push_back(!isDouble(output));
  }
  call.roundsTerms = std::ranges::none_of(spec.inputs, isDouble);
  return call;
}

/// Runs a reference kernel on results that are set to zero first.
class ReferenceKernel : public Kernel {
public:
  ReferenceKernel(KernelSpec theSpec, reference::Kernel theKernel)
      : spec(std::move(theSpec)), kernel(theKernel),
        prepared(preparedCall(spec)) {}

  void run(const Invocation &invocation) override {
    Call call = prepared;
    if (invocation.step)
      call.moment = invocation.moment();
    std::vector<Doubles> operands;
    for (std::size_t i = 0; i < spec.inputs.size(); ++i)
      operands.push_back(widened(spec.inputs[i], invocation.inputs[i]));
    call.in.assign(operands.begin(), operands.end());
    for (const TensorView &output : spec.outputs)
      call.out.emplace_back(static_cast<std::size_t>(output.elements()), 0.0);
    kernel(call);
    for (std::size_t i = 0; i < spec.outputs.size(); ++i)
      write(spec.outputs[i], call.out[i], invocation.outputs[i]);
  }

private:
  const KernelSpec spec;
  const reference::Kernel kernel;
  const Call prepared;
};

/// Runs an update, which reads and changes its results.
class UpdateKernel : public Kernel {
public:
  UpdateKernel(KernelSpec theSpec, reference::Update theUpdate)
      : spec(std::move(theSpec)), update(theUpdate) {}

  void run(const Invocation &invocation) override {
    reference::UpdateCall call{spec, invocation, {}, {}};
    for (std::size_t i = 0; i < spec.inputs.size(); ++i)
      call.in.push_back(widened(spec.inputs[i], invocation.inputs[i]));
    for (std::size_t i = 0; i < spec.outputs.size(); ++i)
      call.out.push_back(widened(spec.outputs[i], invocation.outputs[i]));
    update(call);
    for (std::size_t i = 0; i < spec.outputs.size(); ++i)
      write(spec.outputs[i], call.out[i], invocation.outputs[i]);
  }

private:
  const KernelSpec spec;
  const reference::Update update;
};

class ReferenceBackend : public Backend {
public:
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    checkSpec(spec);
    if (isOfTwo(spec))
      return inTurn(*this, spec);
    const reference::KernelTable &kernels = reference::kernels();
    if (auto found = kernels.find(spec.kernel); found != kernels.end())
      return std::make_unique<ReferenceKernel>(spec, found->second);
    return std::make_unique<UpdateKernel>(spec,
                                          reference::updates().at(spec.kernel));
  }
};

} // namespace

std::unique_ptr<Backend> makeReferenceBackend() {
  return std::make_unique<ReferenceBackend>();
}

} // namespace mtplan::runtime

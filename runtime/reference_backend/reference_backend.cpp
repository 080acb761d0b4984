//===- reference_backend.cpp - The backend of plain loops -----------------===//
//
// A kernel of this backend widens its operands to double, runs the reference
// kernel, and rounds every result once to the type of its tensor.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "runtime/backend/element.h"
#include "runtime/backend/followed.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/long_sum.h"
#include "runtime/backend/signature.h"
#include "runtime/plan/kernel_settings.h"
#include "runtime/reference/kernels.h"

namespace mtplan::runtime {
namespace {

//===----------------------------------------------------------------------===//
// Kernels that change their results
//===----------------------------------------------------------------------===//

// These kernels exist only in the runtime, not in the IR. They accumulate
// gradients, compute the gradient norm, and update parameters.

/// Holds the arguments of one run. When the kernel starts, results have their
/// previous contents.
struct UpdateCall {
  const KernelSpec &spec;
  const Invocation &invocation;
  std::vector<std::vector<double>> in, out;
};

using Update = void (*)(UpdateCall &);

void accumulate(UpdateCall &call) {
  if (firstTermOf(call.spec.settings)
          .isOf(call.invocation.microBatch, call.invocation.copy)) {
    call.out[0] = call.in[0];
    return;
  }
  for (std::size_t i = 0; i < call.in[0].size(); ++i)
    call.out[0][i] += call.in[0][i];
}

void squareSum(UpdateCall &call) {
  LongSum sum{call.out[0][0], call.out[0][1]};
  if (call.spec.integer("counts", 1) != 0)
    for (double value : call.in[0])
      sum.addSquare(value);
  call.out[0] = {sum.sum, sum.lost};
}

/// Computes the factor that unscales and clips all gradients, and decides
/// whether the step is applied. Both follow from the sums of squares of all
/// ranks (runtime/training/gradient_factor.h).
void gradientFactor(UpdateCall &call) {
  LongSum all;
  for (std::size_t i = 0; i + 1 < call.in[0].size(); i += 2)
    all.add(LongSum{call.in[0][i], call.in[0][i + 1]});
  const NormRule &rule = call.invocation.step->norm;
  double &factor = call.out[0][0], &updates = call.out[0][1];
  updates = 1.0;
  if (!rule.applies)
    return;
  updates = std::isfinite(all.value()) ? 1.0 : 0.0;
  factor = 1.0 / rule.lossScale;
  const double norm = std::sqrt(all.value()) / rule.lossScale;
  if (rule.clip > 0.0 && rule.clip / (norm + 1e-6) < 1.0)
    factor *= rule.clip / (norm + 1e-6);
}

/// Implements AdamW (Loshchilov and Hutter 2019).
void adamw(UpdateCall &call) {
  const UpdateNumbers &numbers = call.invocation.step->update;
  const bool decay = call.spec.integer("decay", 0) != 0;
  const auto step = static_cast<double>(numbers.step);
  const double correction1 = 1.0 - std::pow(numbers.beta1, step);
  const double correction2 = 1.0 - std::pow(numbers.beta2, step);
  const bool single = call.spec.outputs[1].type != ElementType::f64;
  for (std::size_t i = 0; i < call.in[0].size(); ++i) {
    const double slope = call.in[0][i] * numbers.gradientFactor;
    double &weight = call.out[1][i];
    if (numbers.updates == 0.0) {
      call.out[0][i] = weight;
      continue;
    }
    double &mean = call.out[2][i], &square = call.out[3][i];
    mean = numbers.beta1 * mean + (1.0 - numbers.beta1) * slope;
    square = numbers.beta2 * square + (1.0 - numbers.beta2) * slope * slope;
    if (decay)
      weight -= numbers.learningRate * numbers.weightDecay * weight;
    weight -= numbers.learningRate * (mean / correction1) /
              (std::sqrt(square / correction2) + numbers.epsilon);
    call.out[0][i] = weight =
        single ? static_cast<double>(static_cast<float>(weight)) : weight;
  }
}

const std::map<std::string, Update> &updates() {
  static const std::map<std::string, Update> kUpdates = {
      {"accumulate", accumulate},
      {"square_sum", squareSum},
      {"gradient_factor", gradientFactor},
      {"adamw", adamw}};
  return kUpdates;
}

//===----------------------------------------------------------------------===//
// The backend
//===----------------------------------------------------------------------===//

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

/// Returns a call that has only the attributes and shapes. Each run adds
/// operands, results and moment.
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

/// Runs a reference kernel. Its results are zero when the kernel starts.
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
  UpdateKernel(KernelSpec theSpec, Update theUpdate)
      : spec(std::move(theSpec)), update(theUpdate) {}

  void run(const Invocation &invocation) override {
    UpdateCall call{spec, invocation, {}, {}};
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
  const Update update;
};

class ReferenceBackend : public Backend {
public:
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    checkSpec(spec);
    if (isOfTwo(spec))
      return makeSequential(*this, spec);
    const reference::KernelTable &kernels = reference::kernels();
    if (auto found = kernels.find(spec.kernel); found != kernels.end())
      return std::make_unique<ReferenceKernel>(spec, found->second);
    return std::make_unique<UpdateKernel>(spec, updates().at(spec.kernel));
  }
};

} // namespace

std::unique_ptr<Backend> makeReferenceBackend() {
  return std::make_unique<ReferenceBackend>();
}

} // namespace mtplan::runtime

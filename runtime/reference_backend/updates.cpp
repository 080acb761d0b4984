//===- updates.cpp - Reference kernels that change their results ----------===//

#include "runtime/reference_backend/updates.h"

#include <cmath>

#include "runtime/backend/long_sum.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime::reference {
namespace {

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

/// Computes the factor that unscales and clips all gradients from the square
/// sums of all ranks (runtime/training/gradient_factor.h).
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

/// Updates a parameter by AdamW (Loshchilov and Hutter 2019).
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

} // namespace

const std::map<std::string, Update> &updates() {
  static const std::map<std::string, Update> kUpdates = {
      {"accumulate", accumulate},
      {"square_sum", squareSum},
      {"gradient_factor", gradientFactor},
      {"adamw", adamw}};
  return kUpdates;
}

} // namespace mtplan::runtime::reference

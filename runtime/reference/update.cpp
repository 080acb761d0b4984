//===- update.cpp - What only the runtime has, plainly --------------------===//

#include <cmath>

#include "runtime/backend/long_sum.h"
#include "runtime/plan/first_term.h"
#include "runtime/reference/reference.h"

namespace mtplan::runtime::reference {
namespace {

void accumulate(Call &call) {
  if (firstTermOf(call.spec.settings)
          .isOf(call.moment.microBatch, call.moment.copy)) {
    call.out[0] = call.in[0];
    return;
  }
  for (std::size_t i = 0; i < call.in[0].size(); ++i)
    call.out[0][i] += call.in[0][i];
}

/// Elements of the piece by their indices in the whole tensor.
void piece(Call &call) {
  const std::vector<std::int64_t> &shape = call.outShape(0);
  forEachIndex(shape, [&](std::size_t i, const auto &index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      at = at * call.inShape(0)[d] + index[d] + call.outPiece(0, d).offset -
           call.inPiece(0, d).offset;
    call.out[0][i] = call.in[0][at];
  });
}

void transpose(Call &call) {
  const std::vector<std::int64_t> &from = call.inShape(0);
  forEachIndex(from, [&](std::size_t i, const auto &index) {
    call.out[0][(index[1] * from[0] + index[0]) * from[2] + index[2]] =
        call.in[0][i];
  });
}

void slice(Call &call) {
  const std::vector<std::int64_t> &piece = call.outShape(0);
  const auto dim = static_cast<std::size_t>(call.spec.integer("dim", 0));
  const std::int64_t place = call.spec.integer("place", 0);
  forEachIndex(piece, [&](std::size_t i, const auto &index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < piece.size(); ++d)
      at = at * call.inShape(0)[d] + index[d] +
           (d == dim ? place * piece[d] : 0);
    call.out[0][i] = call.in[0][at];
  });
}

void mask(Call &call) {
  if (call.spec.integer("place", 0) == 0)
    call.out[0] = call.in[0];
}

void squareSum(Call &call) {
  LongSum sum{call.out[0][0], call.out[0][1]};
  if (call.spec.integer("counts", 1) != 0)
    for (double value : call.in[0])
      sum.addSquare(value);
  call.out[0] = {sum.sum, sum.lost};
}

/// Of the sums of ranks (runtime/training/gradient_factor.h).
void gradientFactor(Call &call) {
  LongSum all;
  for (std::size_t i = 0; i + 1 < call.in[0].size(); i += 2)
    all.add(LongSum{call.in[0][i], call.in[0][i + 1]});
  const NormRule &rule = *call.norm;
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

/// With decoupled decay (Loshchilov and Hutter 2019).
void adamw(Call &call) {
  const UpdateNumbers &numbers = *call.update;
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

void addUpdate(Table &table) {
  table.updates["accumulate"] = accumulate;
  table.functions["slice"] = slice;
  table.functions["piece"] = piece;
  table.functions["transpose"] = transpose;
  table.functions["mask"] = mask;
  table.functions["copy"] = [](Call &call) { call.out[0] = call.in[0]; };
  table.functions["cast"] = table.functions["copy"];
  table.updates["square_sum"] = squareSum;
  table.updates["adamw"] = adamw;
  table.updates["gradient_factor"] = gradientFactor;
}

} // namespace mtplan::runtime::reference

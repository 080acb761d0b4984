//===- norm.cpp - Reference kernels of norms and softmax ------------------===//

#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

constexpr double kEpsilon = 1e-5; // the default in ir/norm_ops.td

/// Computes the mean of a row (0 for an RMS norm), and the scale that
/// normalizes the row: 1 / sqrt(mean of (x - mean)^2 + epsilon).
struct Statistics {
  double mean = 0.0, scale = 0.0;

  Statistics(const double *row, std::size_t width, double epsilon,
             bool centred) {
    for (std::size_t h = 0; centred && h < width; ++h)
      mean += row[h] / static_cast<double>(width);
    double squares = 0.0;
    for (std::size_t h = 0; h < width; ++h)
      squares += (row[h] - mean) * (row[h] - mean);
    scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
  }
};

/// Computes a layer norm if `centred`, and an RMS norm otherwise. An RMS norm
/// neither subtracts a mean nor adds beta.
void normalise(Call &call, bool centred) {
  const double epsilon = call.attributes.number("epsilon", kEpsilon);
  const std::span<const double> input = call.in[0], gamma = call.in[1];
  const std::size_t width = gamma.size();
  for (std::size_t first = 0; first < input.size(); first += width) {
    const Statistics row(&input[first], width, epsilon, centred);
    for (std::size_t h = 0; h < width; ++h)
      call.out[0][first + h] =
          (input[first + h] - row.mean) * row.scale * gamma[h] +
          (centred ? call.in[2][h] : 0.0);
  }
}

/// Computes the gradients of either norm: dx = scale * (d - mean(d) - n *
/// mean(d * n)). Here n is the normalized row, and d = gradient * gamma. An RMS
/// norm omits mean(d).
void normaliseGrad(Call &call, bool centred) {
  const double epsilon = call.attributes.number("epsilon", kEpsilon);
  const std::span<const double> input = call.in[0], gamma = call.in[1],
                                gradient = call.in[2];
  const std::size_t width = gamma.size();
  const std::vector<std::int64_t> &shape = call.inShape(0);
  const std::size_t sample =
      shape.size() < 2 ? input.size()
                       : input.size() / static_cast<std::size_t>(shape[0]);
  Doubles normal(width), scaled(width), gammaTerm(width, 0.0),
      betaTerm(width, 0.0);
  for (std::size_t first = 0; first < input.size(); first += width) {
    const Statistics row(&input[first], width, epsilon, centred);
    double mean = 0.0, projection = 0.0;
    for (std::size_t h = 0; h < width; ++h) {
      normal[h] = (input[first + h] - row.mean) * row.scale;
      scaled[h] = gradient[first + h] * gamma[h];
      mean += scaled[h] / static_cast<double>(width);
      projection += scaled[h] * normal[h] / static_cast<double>(width);
      gammaTerm[h] += gradient[first + h] * normal[h];
      betaTerm[h] += gradient[first + h];
    }
    for (std::size_t h = 0; h < width; ++h)
      call.out[0][first + h] = row.scale * (scaled[h] - (centred ? mean : 0.0) -
                                            normal[h] * projection);
    if ((first + width) % sample == 0) {
      call.addSample(1, gammaTerm);
      if (centred)
        call.addSample(2, betaTerm);
    }
  }
}

/// Returns the width of a row. A scalar counts as one row of one element.
std::size_t rowWidth(const std::vector<std::int64_t> &shape) {
  return shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
}

void softmax(Call &call) {
  const std::size_t width = rowWidth(call.inShape(0));
  for (std::size_t first = 0; first < call.in[0].size(); first += width) {
    const double *row = &call.in[0][first];
    double *result = &call.out[0][first];
    const double largest = *std::max_element(row, row + width);
    double total = 0.0;
    for (std::size_t h = 0; h < width; ++h)
      total += result[h] = std::exp(row[h] - largest);
    for (std::size_t h = 0; h < width; ++h)
      result[h] /= total;
  }
}

void softmaxGrad(Call &call) {
  const std::size_t width = rowWidth(call.inShape(0));
  for (std::size_t first = 0; first < call.in[0].size(); first += width) {
    double projection = 0.0;
    for (std::size_t h = first; h < first + width; ++h)
      projection += call.in[0][h] * call.in[1][h];
    for (std::size_t h = first; h < first + width; ++h)
      call.out[0][h] = call.in[0][h] * (call.in[1][h] - projection);
  }
}

} // namespace

void addNorm(KernelTable &table) {
  table["layer_norm"] = [](Call &call) { normalise(call, true); };
  table["layer_norm_grad"] = [](Call &call) { normaliseGrad(call, true); };
  table["rms_norm"] = [](Call &call) { normalise(call, false); };
  table["rms_norm_grad"] = [](Call &call) { normaliseGrad(call, false); };
  table["softmax"] = softmax;
  table["softmax_grad"] = softmaxGrad;
}

} // namespace mtplan::runtime::reference

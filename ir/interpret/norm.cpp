//===- norm.cpp - Kernels that read rows whole ----------------------------===//

#include <algorithm>
#include <cmath>

#include "ir/interpret/kernel.h"

namespace mtplan::ir {
namespace {

/// Calls `visit(first)` with the first element of every row.
template <typename Visit>
void forEachRow(const HostTensor &tensor, Visit &&visit) {
  const std::size_t width = tensor.shape.back();
  for (std::size_t first = 0; first < tensor.data.size(); first += width)
    visit(first);
}

/// Mean and reciprocal standard deviation of a row; the mean is left at 0 for
/// norms that do not subtract it.
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

/// Both norms: `beta` is null and `centred` false for the RMS norm.
void normalise(KernelCall &call, double epsilon, const HostTensor *beta,
               bool centred) {
  const HostTensor &input = *call.operands[0], &gamma = *call.operands[1];
  const std::size_t width = gamma.data.size();
  forEachRow(input, [&](std::size_t first) {
    const Statistics row(&input.data[first], width, epsilon, centred);
    for (std::size_t h = 0; h < width; ++h)
      call.results[0].data[first + h] =
          (input.data[first + h] - row.mean) * row.scale * gamma.data[h] +
          (beta ? beta->data[h] : 0.0);
  });
}

/// With n the normalised row and d = gradient * gamma:
/// dx = scale * (d - mean(d) - n * mean(d * n)), mean(d) only if centred.
void normaliseGrad(KernelCall &call, double epsilon, bool centred) {
  const HostTensor &input = *call.operands[0], &gamma = *call.operands[1];
  const HostTensor &gradient = *call.operands[2];
  const std::size_t width = gamma.data.size();
  std::vector<double> normal(width), scaled(width);
  forEachRow(input, [&](std::size_t first) {
    const Statistics row(&input.data[first], width, epsilon, centred);
    double mean = 0.0, projection = 0.0;
    for (std::size_t h = 0; h < width; ++h) {
      normal[h] = (input.data[first + h] - row.mean) * row.scale;
      scaled[h] = gradient.data[first + h] * gamma.data[h];
      mean += scaled[h] / static_cast<double>(width);
      projection += scaled[h] * normal[h] / static_cast<double>(width);
      call.results[1].data[h] += gradient.data[first + h] * normal[h];
      if (centred)
        call.results[2].data[h] += gradient.data[first + h];
    }
    for (std::size_t h = 0; h < width; ++h)
      call.results[0].data[first + h] =
          row.scale *
          (scaled[h] - (centred ? mean : 0.0) - normal[h] * projection);
  });
}

void layerNorm(LayerNormOp op, KernelCall &call) {
  normalise(call, op.getEpsilon().convertToDouble(), call.operands[2], true);
}

void layerNormGrad(LayerNormGradOp op, KernelCall &call) {
  normaliseGrad(call, op.getEpsilon().convertToDouble(), true);
}

void rmsNorm(RmsNormOp op, KernelCall &call) {
  normalise(call, op.getEpsilon().convertToDouble(), nullptr, false);
}

void rmsNormGrad(RmsNormGradOp op, KernelCall &call) {
  normaliseGrad(call, op.getEpsilon().convertToDouble(), false);
}

/// A tensor without dimensions is one row of one element.
std::size_t rowWidth(const HostTensor &tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.back();
}

void softmax(SoftmaxOp, KernelCall &call) {
  const std::vector<double> &input = call.operands[0]->data;
  std::vector<double> &result = call.results[0].data;
  const std::size_t width = rowWidth(*call.operands[0]);
  for (std::size_t first = 0; first < input.size(); first += width) {
    const double largest =
        *std::max_element(input.begin() + first, input.begin() + first + width);
    double total = 0.0;
    for (std::size_t h = first; h < first + width; ++h)
      total += result[h] = std::exp(input[h] - largest);
    for (std::size_t h = first; h < first + width; ++h)
      result[h] /= total;
  }
}

void softmaxGrad(SoftmaxGradOp, KernelCall &call) {
  const std::vector<double> &output = call.operands[0]->data;
  const std::vector<double> &gradient = call.operands[1]->data;
  const std::size_t width = rowWidth(*call.operands[0]);
  for (std::size_t first = 0; first < output.size(); first += width) {
    double projection = 0.0;
    for (std::size_t h = first; h < first + width; ++h)
      projection += output[h] * gradient[h];
    for (std::size_t h = first; h < first + width; ++h)
      call.results[0].data[h] = output[h] * (gradient[h] - projection);
  }
}

} // namespace

void addNormKernels(KernelTable &table) {
  table.add<LayerNormOp>(layerNorm);
  table.add<LayerNormGradOp>(layerNormGrad);
  table.add<RmsNormOp>(rmsNorm);
  table.add<RmsNormGradOp>(rmsNormGrad);
  table.add<SoftmaxOp>(softmax);
  table.add<SoftmaxGradOp>(softmaxGrad);
}

} // namespace mtplan::ir

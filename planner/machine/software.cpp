//===- software.cpp - What runs on the devices ----------------------------===//

#include "planner/machine/software.h"

#include <cassert>
#include <cmath>

namespace mtplan::planner {

const MeasuredKernels *measuredOf(const Software &software,
                                  const Device &device) {
  const MeasuredKernels &kernels = device.kernels;
  return !kernels.software.empty() && kernels.software == software.name
             ? &kernels
             : nullptr;
}

BytesPerSec measuredPassRate(const Software &software, const Device &device,
                             std::string_view kernel, Precision precision) {
  const MeasuredKernels *kernels = measuredOf(software, device);
  if (!kernels)
    return {};
  auto found = kernels->passes.find(kernel);
  return found == kernels->passes.end() ? BytesPerSec{}
                                        : found->second[storedAs(precision)];
}

AttentionRate attentionRateOf(const Software &software, const Device &device,
                              Precision precision) {
  if (const MeasuredKernels *kernels = measuredOf(software, device))
    if (auto own = kernels->attention[storedAs(precision)]; own.forward > 0)
      return {device.name, own.forward, own.backward};
  for (const std::string *key : {&device.name, &device.architecture})
    for (const AttentionRate &rate : software.attention.rates)
      if (!key->empty() && rate.device == *key)
        return rate;
  return {device.name, device.attentionEfficiency, device.attentionEfficiency};
}

double paddedHead(const AttentionKernel &kernel, double size) {
  assert(!kernel.headSizes.empty());
  for (int has : kernel.headSizes)
    if (size <= has)
      return has;
  double last = kernel.headSizes.back();
  return std::ceil(size / last) * last;
}

} // namespace mtplan::planner

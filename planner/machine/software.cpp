//===- software.cpp - The software that runs on the devices ---------------===//

#include "planner/machine/software.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace mtplan::planner {

Machine machineUnder(const Software &software, Machine machine) {
  Device &device = machine.device;
  const double products = software.reached.products;
  device.gemmEfficiency *= products;
  device.gemmEfficiencyFp8 *= products;
  for (double &efficiency : device.ownGemmEfficiency)
    efficiency *= products;
  for (std::size_t l = 1; l < machine.levels.size(); ++l) {
    NetworkLevel &level = machine.levels[l];
    if (level.ranks > 0 && level.ranks <= machine.devicesPerNode)
      continue; // inside a node
    level.bandwidth = level.bandwidth * software.reached.network;
    level.pointToPoint = level.pointToPoint * software.reached.network;
    level.reductionBandwidth =
        level.reductionBandwidth * software.reached.network;
  }
  return machine;
}

const MeasuredKernels *measuredOf(const Software &software,
                                  const Device &device) {
  const MeasuredKernels &kernels = device.kernels;
  return !kernels.software.empty() && kernels.software == software.name
             ? &kernels
             : nullptr;
}

std::string variantName(std::string_view kernel, std::string_view variant) {
  std::string name(kernel);
  return variant.empty() ? name : (name += '.') += variant;
}

BytesPerSec measuredPassRate(const Software &software, const Device &device,
                             std::string_view kernel, Precision precision,
                             std::string_view variant) {
  const MeasuredKernels *kernels = measuredOf(software, device);
  if (!kernels)
    return {};
  auto rateOf = [&](std::string_view name) {
    auto found = kernels->passes.find(name);
    return found == kernels->passes.end() ? BytesPerSec{}
                                          : found->second[storedAs(precision)];
  };
  if (!variant.empty())
    if (auto own = rateOf(variantName(kernel, variant)); own.value > 0)
      return own;
  return rateOf(kernel);
}

static bool isOnListed(const KernelFusions &fusions, const Device &device) {
  return std::ranges::any_of(fusions.devices, [&](const std::string &one) {
    return one == device.name || one == device.architecture;
  });
}

bool groupsMessages(const Software &software, const Device &device) {
  return software.fusions.messages && isOnListed(software.fusions, device);
}

bool isFused(const Software &software, const Device &device,
             std::string_view name, Precision precision) {
  if (const MeasuredKernels *kernels = measuredOf(software, device))
    return std::ranges::binary_search(kernels->fusions[storedAs(precision)],
                                      name);
  const std::vector<std::string> &names =
      software.fusions.kernels[storedAs(precision)];
  return isOnListed(software.fusions, device) &&
         std::ranges::find(names, name) != names.end();
}

std::string fusionName(std::string_view maker, std::string_view kernel,
                       std::string_view variant) {
  const std::string name = variantName(kernel, variant);
  return maker.empty() ? name : std::string(maker) + '+' + name;
}

AttentionRate attentionRateOf(const Software &software, const Device &device,
                              Precision precision, bool drops) {
  if (const MeasuredKernels *kernels = measuredOf(software, device)) {
    auto own = kernels->attention[storedAs(precision)];
    if (auto dropping = kernels->droppingAttention[storedAs(precision)];
        drops && dropping.forward > 0)
      own = dropping;
    if (own.forward > 0)
      return {device.name, own.forward, own.backward};
  }
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

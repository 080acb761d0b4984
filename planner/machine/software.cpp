//===- software.cpp - What runs on the devices ----------------------------===//

#include "planner/machine/software.h"

#include <cassert>
#include <cmath>

namespace mtplan::planner {

AttentionRate attentionRateOf(const Software &software, const Device &device) {
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

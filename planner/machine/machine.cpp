//===- machine.cpp - Devices and links of a cluster -----------------------===//

#include "planner/machine/machine.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace mtplan::planner {

const char *nameOf(Precision precision) {
  switch (precision) {
  case Precision::fp32:
    return "fp32";
  case Precision::fp16:
    return "fp16";
  case Precision::bf16:
    return "bf16";
  case Precision::fp8:
    return "fp8";
  }
  return "?";
}

int bytesOf(Precision precision) {
  return precision == Precision::fp32 ? 4 : 2;
}

std::size_t storedAs(Precision precision) {
  return static_cast<std::size_t>(precision == Precision::fp8 ? Precision::bf16
                                                              : precision);
}

std::optional<FlopsPerSec> Device::peak(Precision precision) const {
  switch (precision) {
  case Precision::fp32:
    return fp32;
  case Precision::fp16:
    return fp16;
  case Precision::bf16:
    return bf16;
  case Precision::fp8:
    return fp8;
  }
  return std::nullopt;
}

int sharersOf(const Machine &machine, int devices) {
  return std::max(1, std::min(machine.devicesPerNode, devices));
}

Bytes hostShareOf(const Machine &machine, int devices) {
  return machine.host ? machine.host->memory / sharersOf(machine, devices)
                      : Bytes{};
}

double slowestOf(const Device &device, int devices) {
  assert(devices >= 1);
  return 1.0 + device.spread * std::sqrt(2.0 * std::log(devices));
}

} // namespace mtplan::planner

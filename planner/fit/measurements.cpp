//===- measurements.cpp - The model's time of a measurement ---------------===//

#include "planner/fit/measurements.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/product_cost.h"

namespace mtplan::planner {

namespace {

std::string integer(double number) {
  return std::to_string(static_cast<std::int64_t>(number));
}

StepKind stepOf(MeasuredKind kind) {
  switch (kind) {
  case MeasuredKind::allGather:
    return StepKind::allGather;
  case MeasuredKind::reduceScatter:
    return StepKind::reduceScatter;
  case MeasuredKind::allToAll:
    return StepKind::allToAll;
  default:
    return StepKind::allReduce;
  }
}

} // namespace

const char *nameOf(MeasuredKind kind) {
  constexpr const char *kNames[] = {
      "launches",   "stream",         "elementwise", "product", "all_reduce",
      "all_gather", "reduce_scatter", "all_to_all",  "send"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool isCollective(MeasuredKind kind) { return kind >= MeasuredKind::allReduce; }

double Measurement::predicted(const Machine &machine) const {
  const Device &device = machine.device;
  switch (kind) {
  case MeasuredKind::launches:
    return count * device.launch.value;
  case MeasuredKind::stream:
    return (Bytes{bytes} / device.streamRate() + device.launch).value;
  case MeasuredKind::elementwise:
    return (Bytes{bytes} / device.passRate() + device.launch).value;
  case MeasuredKind::product: {
    Precision in = precision.value_or(machine.defaultPrecision);
    Seconds arithmetic = productTime({m, n, k, batch}, device, in,
                                     batch > 1 ? device.products.batched : 1.0);
    Bytes moved{batch * (m * k + k * n + m * n) * bytesOf(in)};
    return (std::max(arithmetic, moved / device.streamRate()) + device.launch)
        .value;
  }
  case MeasuredKind::send:
    return pointToPointTime(Bytes{bytes}, stride, machine).value;
  case MeasuredKind::allReduce:
  case MeasuredKind::allGather:
  case MeasuredKind::reduceScatter:
  case MeasuredKind::allToAll:
    break;
  }
  // The shard that one rank passes in identifies a gather.
  double payload = kind == MeasuredKind::allGather ? bytes / ranks : bytes;
  return collectiveTime(stepOf(kind), Bytes{payload}, {ranks, stride, 0},
                        machine)
      .value;
}

std::string Measurement::describe() const {
  switch (kind) {
  case MeasuredKind::launches:
    return integer(count) + " kernels";
  case MeasuredKind::stream:
  case MeasuredKind::elementwise:
    return std::string(nameOf(kind)) + " pass of " + integer(bytes) + " B";
  case MeasuredKind::product:
    return (batch > 1 ? integer(batch) + " products of " : "product of ") +
           integer(m) + " x " + integer(k) + " by " + integer(k) + " x " +
           integer(n) +
           (precision ? std::string(" in ") + nameOf(*precision) : "");
  case MeasuredKind::send:
    return "send of " + integer(bytes) + " B over " + std::to_string(stride) +
           " ranks";
  default:
    return std::string(nameOf(kind)) + " of " + integer(bytes) + " B over " +
           std::to_string(ranks) + " ranks" +
           (stride > 1 ? ", every " + std::to_string(stride) + "th" : "");
  }
}

} // namespace mtplan::planner

//===- setting.cpp - Words and constants of a candidate -------------------===//

#include "planner/search/setting.h"

#include <algorithm>

#include "planner/simulate/in_flight.h"

namespace mtplan::planner {

Mesh meshOf(int dp, int tp) {
  Mesh mesh;
  mesh.axes = {{"dp", dp}, {"tp", tp}};
  return mesh;
}

Mesh meshOf(const Parallelism &how) {
  int sharing = how.zeroStage > 0 ? how.zeroRanks : how.dp;
  Mesh mesh;
  int outer = how.dp / how.ep;
  bool hybrid = sharing < how.dp && sharing % how.ep == 0;
  int inner = hybrid ? sharing / how.ep : 1;
  mesh.axes.push_back({"dp", outer / inner});
  auto add = [&](const char *name, int size) {
    if (size > 1)
      mesh.axes.push_back({name, size});
  };
  add("zero", inner);
  add("ep", how.ep);
  add("cp", how.cp);
  mesh.axes.push_back({"tp", how.tp});
  return mesh;
}

Mesh worldMeshOf(const Parallelism &how) {
  Mesh mesh = meshOf(how);
  mesh.axes.insert(mesh.axes.begin(), {"pp", how.pp});
  return mesh;
}

ScheduleShape shapeOf(const Parallelism &how) {
  return {how.schedule, how.pp, how.virtualStages,
          static_cast<int>(how.microBatches())};
}

double inFlightOf(const Parallelism &how, int stage) {
  return static_cast<double>(inFlight(shapeOf(how), stage).total()) /
         how.virtualStages;
}

namespace {

// Of every `step`th part from `first` on.
double shareOf(const Parallelism &how, std::size_t first, std::size_t step) {
  int all = 0, again = 0;
  for (std::size_t part = first; part < how.layers.size(); part += step) {
    all += how.layers[part];
    again += std::min(how.layers[part], how.recomputeLayers);
  }
  return how.recomputeLayers < 0 || all == 0 ? 1.0 : double(again) / all;
}

} // namespace

double recomputeShareOf(const Parallelism &how) { return shareOf(how, 0, 1); }

double recomputeShareOf(const Parallelism &how, int stage) {
  return shareOf(how, static_cast<std::size_t>(stage),
                 static_cast<std::size_t>(how.pp));
}

double leastRecomputeShareOf(const Parallelism &how) {
  double least = 1.0;
  for (int stage = 0; stage < how.pp; ++stage)
    least = std::min(least, recomputeShareOf(how, stage));
  return least;
}

const char *nameOf(Recompute recompute) {
  switch (recompute) {
  case Recompute::none:
    return "none";
  case Recompute::selective:
    return "selective";
  case Recompute::full:
    return "full";
  }
  return "?";
}

const char *nameOf(Offload offload) {
  return offload == Offload::none ? "none" : "optimizer";
}

const char *wordOf(const Op &op, const Strategy &strategy, int axis) {
  int choice = strategy.axes[static_cast<std::size_t>(axis)];
  if (choice == kWhole)
    return "replicated";
  if (choice <= kLinear)
    return "partial";
  return nameOf(op.factors[static_cast<std::size_t>(choice)].split);
}

StateBytes stateBytesOf(Precision precision) {
  // fp32 needs no master copy: gradient 4, two moments 8. The update reads
  // gradient, master and moments and writes master, moments and weight.
  if (precision == Precision::fp32)
    return {4, 8, 28, 0};
  return {2, 12, 28, 0};
}

StateBytes stateBytesOf(const Setting &setting) {
  const ParameterTraffic &traffic = setting.software->parameters;
  StateBytes bytes = stateBytesOf(setting.precision);
  if (setting.precision != Precision::fp32)
    bytes.gradient = traffic.gradient;
  bytes.traffic = traffic.optimizer;
  bytes.sweep = traffic.sweep;
  // The host updates weights of its own, in fp32, by gradients that land beside
  // them; what it sends back lies there, too: in 16 bits, or its own weights.
  if (setting.offload == Offload::optimizer) {
    bytes.host = bytes.optimizer + bytes.gradient + bytesOf(setting.precision);
    bytes.optimizer = bytes.traffic = 0;
  }
  return bytes;
}

} // namespace mtplan::planner

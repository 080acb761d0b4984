//===- setting.cpp - What a configuration fixes before it is solved -------===//

#include "planner/search/space/setting.h"

#include <algorithm>

#include "planner/simulate/in_flight.h"

namespace mtplan::planner {

Mesh meshOf(int dp, int tp) {
  Mesh mesh;
  mesh.axes = {{"dp", dp}, {"tp", tp}};
  return mesh;
}

Mesh meshOf(const Parallelism &config) {
  int sharing = config.zeroStage > 0 ? config.zeroRanks : config.dp;
  Mesh mesh;
  int outer = config.dp / config.ep;
  bool hybrid = sharing < config.dp && sharing % config.ep == 0;
  int inner = hybrid ? sharing / config.ep : 1;
  mesh.axes.push_back({"dp", outer / inner});
  auto add = [&](const char *name, int size) {
    if (size > 1)
      mesh.axes.push_back({name, size});
  };
  add("zero", inner);
  add("ep", config.ep);
  add("cp", config.cp);
  mesh.axes.push_back({"tp", config.tp});
  return mesh;
}

Mesh worldMeshOf(const Parallelism &config) {
  Mesh mesh = meshOf(config);
  mesh.axes.insert(mesh.axes.begin(), {"pp", config.pp});
  return mesh;
}

ScheduleShape shapeOf(const Parallelism &config) {
  return {config.schedule, config.pp, config.virtualStages,
          static_cast<int>(config.microBatches())};
}

double inFlightOf(const Parallelism &config, int stage) {
  return static_cast<double>(inFlight(shapeOf(config), stage).total()) /
         config.virtualStages;
}

namespace {

// Averages over every `step`th virtual stage from `first` on.
double shareOf(const Parallelism &config, std::size_t first, std::size_t step) {
  int all = 0, recomputed = 0;
  for (std::size_t part = first; part < config.layers.size(); part += step) {
    all += config.layers[part];
    recomputed += std::min(config.layers[part], config.recomputeLayers);
  }
  return config.recomputeLayers < 0 || all == 0 ? 1.0
                                                : double(recomputed) / all;
}

} // namespace

double recomputeShareOf(const Parallelism &config) {
  return shareOf(config, 0, 1);
}

double recomputeShareOf(const Parallelism &config, int stage) {
  return shareOf(config, static_cast<std::size_t>(stage),
                 static_cast<std::size_t>(config.pp));
}

double leastRecomputeShareOf(const Parallelism &config) {
  double least = 1.0;
  for (int stage = 0; stage < config.pp; ++stage)
    least = std::min(least, recomputeShareOf(config, stage));
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
  if (choice == kReplicated)
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
  // The host updates weights of its own in fp32, with gradients that arrive
  // beside them. What it sends back is stored there too, in 16 bits or as its
  // own weights.
  if (setting.offload == Offload::optimizer) {
    bytes.host = bytes.optimizer + bytes.gradient + bytesOf(setting.precision);
    bytes.optimizer = bytes.traffic = 0;
  }
  return bytes;
}

} // namespace mtplan::planner

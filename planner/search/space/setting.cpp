//===- setting.cpp - Options of a search, setting of a solver -------------===//

#include "planner/search/space/setting.h"

#include "planner/integers.h"

namespace mtplan::planner {

std::string wordOf(const Op &op, const Strategy &strategy, int tensorAxis) {
  auto wordOn = [&](int choice) {
    return choice == kReplicated ? "replicated"
           : choice <= kLinear   ? "partial"
                                 : nameOf(op.factors[at(choice)].split);
  };
  std::string first = wordOn(strategy.axes[at(tensorAxis)]);
  for (std::size_t axis = at(tensorAxis) + 1; axis < strategy.axes.size();
       ++axis)
    if (std::string other = wordOn(strategy.axes[axis]); other != first)
      return first.append("+").append(other);
  return first;
}

StateBytes stateBytesOf(Precision precision) {
  // fp32 training has no master weights: the gradient has 4 bytes, and the two
  // moments have 8. An update reads the gradient, and reads and writes the
  // weight and the moments: 4 + 2 * 12 bytes. In other precisions, the gradient
  // has 2 bytes, and master weight and moments have 12. An update also writes
  // the weight: 2 + 2 * 12 + 2 bytes.
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
  // The host stores fp32 weights and moments, the gradients that it receives,
  // and the weights that it sends back in the training precision.
  if (setting.offload == Offload::optimizer) {
    bytes.host = bytes.optimizer + bytes.gradient + bytesOf(setting.precision);
    bytes.optimizer = bytes.traffic = 0;
  }
  return bytes;
}

bool hidesReplicaTraffic(const SearchOptions &options,
                         const Parallelism &config) {
  return (options.overlaps.gather || options.overlaps.reduce) &&
         config.dp * config.cp * config.tp > 1;
}

Setting settingOf(const SearchOptions &options, const Machine &machine,
                  const Parallelism &config) {
  Setting setting;
  setting.mesh = meshOf(config);
  for (const MeshAxis &axis : setting.mesh.axes)
    switch (roleOf(axis)) {
    case AxisRole::data: // replicas differ in their samples alone
      setting.rules.push_back({{Split::batch}, false});
      break;
    case AxisRole::expert:
      setting.rules.push_back({{Split::expert, Split::batch}, false});
      break;
    case AxisRole::context:
      setting.rules.push_back({{Split::sequence}, false});
      break;
    case AxisRole::tensor:
      setting.rules.push_back(
          {config.tp2 > 1 ? options.splitsOfTwoAxes : options.tensorSplits,
           true});
      // Feature splits follow from other splits, so they are always allowed.
      setting.rules.back().splits.push_back(Split::feature);
      break;
    }
  setting.collectives = options.collectives;
  setting.microBatches = config.microBatches();
  setting.parts = config.virtualStages;
  setting.devices = options.devices;
  setting.padsShards = options.padsShards;
  setting.sumsPerUse = options.sumsPerUse;
  setting.scattersEarly = options.scattersEarly;
  setting.gathersAhead = options.gathersAhead;
  setting.zeroStage = config.zeroStage;
  setting.recompute = config.recompute;
  setting.recomputeShare = recomputeShareOf(config);
  setting.offload = config.offload;
  setting.tiles = config.tiles;
  const Overlaps &overlaps = options.overlaps;
  bool besideHost = config.offload != Offload::none &&
                    (overlaps.down || overlaps.hostUpdate || overlaps.up);
  setting.updateAddsUp = !besideHost;
  // With several chunks, the host may update one chunk while the gradients of
  // another chunk are reduced.
  setting.hostAddsUp = config.virtualStages == 1 ||
                       (!besideHost && !hidesReplicaTraffic(options, config));
  setting.machine = &machine;
  setting.software = options.software;
  setting.precision = options.precision;
  setting.pins = options.pins;
  return setting;
}

} // namespace mtplan::planner

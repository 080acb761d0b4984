//===- search_options.cpp - What a configuration fixes --------------------===//

#include "planner/search/space/search_options.h"

namespace mtplan::planner {

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
      setting.rules.push_back({options.tensorSplits, true});
      // Feature splits follow from others and are no choice of their own.
      setting.rules.back().splits.push_back(Split::feature);
      break;
    }
  setting.microBatches = config.microBatches();
  setting.parts = config.virtualStages;
  setting.devices = options.devices;
  setting.padsShards = options.padsShards;
  setting.sumsPerUse = options.sumsPerUse;
  setting.scattersEarly = options.scattersEarly;
  setting.zeroStage = config.zeroStage;
  setting.recompute = config.recompute;
  setting.recomputeShare = recomputeShareOf(config);
  // With several chunks one may be reduced while the host works on another.
  setting.offload = config.offload;
  setting.tiles = config.tiles;
  const Overlaps &overlaps = options.overlaps;
  bool besideHost = config.offload != Offload::none &&
                    (overlaps.down || overlaps.hostUpdate || overlaps.up);
  setting.updateAddsUp = !besideHost;
  setting.hostAddsUp = config.virtualStages == 1 ||
                       (!besideHost && !hidesReplicaTraffic(options, config));
  setting.machine = &machine;
  setting.software = options.software;
  setting.precision = options.precision;
  setting.pins = options.pins;
  return setting;
}

} // namespace mtplan::planner

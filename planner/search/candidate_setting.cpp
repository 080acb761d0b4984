//===- candidate_setting.cpp - What prices of a candidate follow from -----===//

#include "planner/search/search.h"

namespace mtplan::planner {

bool hidesReplicaTraffic(const SearchOptions &options, const Parallelism &how) {
  return (options.overlaps.gather || options.overlaps.reduce) &&
         how.dp * how.cp * how.tp > 1;
}

Setting settingOf(const SearchOptions &options, const Machine &machine,
                  const Parallelism &how) {
  Setting setting;
  setting.mesh = meshOf(how);
  for (const MeshAxis &axis : setting.mesh.axes)
    switch (roleOf(axis)) {
    case AxisRole::data: // replicas differ in their samples and in nothing else
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
      // Splits that follow from others are no choice of their own.
      setting.rules.back().splits.push_back(Split::feature);
      break;
    }
  setting.microBatches = how.microBatches();
  setting.parts = how.virtualStages;
  setting.devices = options.devices;
  setting.padsShards = options.padsShards;
  setting.sumsPerUse = options.sumsPerUse;
  setting.scattersEarly = options.scattersEarly;
  setting.zeroStage = how.zeroStage;
  setting.recompute = how.recompute;
  setting.recomputeShare = recomputeShareOf(how);
  // Of several chunks one may be reduced while the host is at another.
  setting.offload = how.offload;
  setting.tiles = how.tiles;
  const Overlaps &overlaps = options.overlaps;
  bool besideHost = how.offload != Offload::none &&
                    (overlaps.down || overlaps.hostUpdate || overlaps.up);
  setting.updateAddsUp = !besideHost;
  setting.hostAddsUp = how.virtualStages == 1 ||
                       (!besideHost && !hidesReplicaTraffic(options, how));
  setting.machine = &machine;
  setting.software = options.software;
  setting.precision = options.precision;
  setting.pins = options.pins;
  return setting;
}

} // namespace mtplan::planner

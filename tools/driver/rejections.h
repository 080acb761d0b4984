//===- rejections.h - Meshes without a plan ---------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_REJECTIONS_H
#define MTPLAN_TOOLS_DRIVER_REJECTIONS_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// A mesh that has no plan in the result.
struct RejectedMesh {
  /// The reason of the candidate that came nearest to a plan.
  const planner::Rejection *nearest = nullptr;
  std::int64_t candidates = 0; ///< all rejected candidates of the mesh
};

/// The rejected meshes; those that came nearest to a plan come first.
std::vector<RejectedMesh> rejectedMeshes(const PlanOutcome &outcome);
std::string reasonText(const RejectedMesh &mesh, const PlanOutcome &outcome);

/// True if every mesh was rejected because no strategies of its operators go
/// together. The text names the pins or the splits.
bool nothingIsLegal(const PlanOutcome &outcome);
std::string nothingLegalText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_REJECTIONS_H

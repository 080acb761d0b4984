//===- plan_text.h - Plans and rejections as text ---------------*- C++ -*-===//
//
// Configurations, strategies, layouts and rejected meshes have the same text in
// every report. Strategies and layouts can also be read from text. "dp=b tp=o"
// assigns the axis dp to the factor b, and the axis tp to the factor o.
// "tp=partial" assigns tp to the operator's first linear group, "tp=partial.1"
// to the second. Layouts have the form "[dp, -, tp] partial={cp:sum}".
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_PLAN_TEXT_H
#define MTPLAN_TOOLS_DRIVER_PLAN_TEXT_H

#include <optional>
#include <string>
#include <vector>

#include "planner/graph/strategy.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns "dp 2 x tp 8", with the degrees above 1, or "one GPU".
std::string meshText(const planner::Parallelism &config);

/// Returns "micro-batch 4 x 64" for 64 micro-batches of 4 samples per step.
std::string batchText(const planner::Parallelism &config);

/// Returns choices other than defaults: "interleaved x2, ZeRO 1, full
/// recompute".
std::string choicesText(const planner::Parallelism &config);

/// Returns "dp 2 x tp 8, micro-batch 4, ZeRO 1, 28.1 of 80 GiB, 2.05 s a step".
std::string candidateText(const planner::PlannedCandidate &candidate);

std::string splitsText(const std::vector<planner::Split> &splits);

/// Returns the factor of each axis: "dp=b tp=o".
std::string strategyText(const planner::Op &op,
                         const planner::Strategy &strategy,
                         const planner::Mesh &mesh);

/// Reads a text in the form of strategyText(). Returns nothing, with an error,
/// if the operator does not have the strategy or `rules` forbid it.
std::optional<planner::Strategy>
readStrategy(const std::string &text, const planner::Op &op,
             const planner::Mesh &mesh,
             const std::vector<planner::AxisRule> &rules, std::string &error);

/// Reads a text in the form that planner::toString writes. Returns nothing,
/// with an error, if the text is no layout of a tensor of that shape.
std::optional<planner::Layout>
readLayout(const std::string &text, const std::vector<std::int64_t> &shape,
           const planner::Mesh &mesh, std::string &error);

struct RejectedMesh {
  /// Points to the rejection of the candidate that came nearest to a plan.
  const planner::Rejection *nearest = nullptr;
  std::int64_t candidates = 0; ///< number of rejected candidates
};

/// Returns the rejected meshes, ordered by how near they came to a plan.
std::vector<RejectedMesh> rejectedMeshes(const PlanOutcome &outcome);
std::string reasonText(const RejectedMesh &mesh, const PlanOutcome &outcome);

/// Returns whether no mesh has a legal combination of strategies.
bool nothingIsLegal(const PlanOutcome &outcome);
/// Returns a message that names the pins if there are any, else the allowed
/// splits and collectives. The outcome must satisfy nothingIsLegal().
std::string nothingLegalText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_PLAN_TEXT_H

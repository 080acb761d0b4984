//===- facts.h - What a report says about a plan ----------------*- C++ -*-===//
//
// Numbers and names of one candidate, worked out once for the screen and for
// JSON. Quantities keep their units here; GiB and ms are where they are
// printed.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_FACTS_H
#define MTPLAN_TOOLS_FACTS_H

#include <string>
#include <vector>

#include "tools/pipeline.h"

namespace mtplan::tools {

/// One operator of one run of copies.
struct OpFact {
  std::string label, kind, strategy;
  planner::Phase phase{};
  std::vector<std::int64_t> shape; ///< of its first result on one GPU
  std::string layout;              ///< of that result, over the mesh
};

/// One parameter of one run of copies.
struct ParameterFact {
  std::string label, layout;
  std::vector<std::int64_t> shape; ///< on one GPU
  /// The gradient is summed over the tensor axis once per step, not in each
  /// micro-batch.
  bool reduceOncePerStep = false;
};

/// Consecutive copies that are laid out alike.
struct RunFact {
  std::string segment;
  int first = 0, copies = 1;
  std::vector<OpFact> ops;
  std::vector<ParameterFact> parameters;
  /// Of this run alone; `perMicroBatch` counts all its copies.
  std::vector<planner::LedgerEntry> collectives;
};

struct PlanFacts {
  planner::Setting setting;
  planner::ModelGraph graph; ///< for one micro-batch of all replicas
  std::vector<RunFact> runs;
  std::vector<planner::LedgerEntry> collectives; ///< of the whole plan
  double tokensPerSecond = 0.0;
  planner::FlopsPerSec modelRate; ///< of one GPU, model products only
  double mfu = 0.0;               ///< of the precision's peak; 0 if unknown
  bool sequenceParallel = false;
};

PlanFacts factsOf(const Problem &problem,
                  const planner::PlannedCandidate &candidate);

/// "h.*.mlp.fc1 in 4, h.*.mlp.fc2 in 4": weights that are used in tiles.
std::string tiledText(const PlanFacts &facts);

/// GPUs over GPUs per node, rounded up.
int nodesOf(const Problem &problem);

/// What a candidate lost by against the best: the part of the step that grew
/// most, "tensor communication 310 ms against 205 ms".
std::string reasonAgainst(const planner::PlannedCandidate &candidate,
                          const planner::PlannedCandidate &best);

/// How much slower. Alternatives are not solved to the end once they cannot
/// win: then the plan at hand is one end of a range and the bound the other.
std::string slowdownText(const planner::PlannedCandidate &plan,
                         const planner::PlannedCandidate &best);

/// "Optimal over 34 candidates, 29 of them excluded by bounds"; the best plan
/// must exist.
std::string claimText(const PlanOutcome &outcome);

/// A mesh that has no plan in the result.
struct RejectedMesh {
  const planner::Rejection *nearest = nullptr; ///< of its candidates' reasons
  std::int64_t candidates = 0;                 ///< rejections counted together
};

/// What came nearest to a plan first.
std::vector<RejectedMesh> rejectedMeshes(const PlanOutcome &outcome);
std::string reasonText(const RejectedMesh &mesh, const PlanOutcome &outcome);

/// Whether every mesh was refused because no strategies of its operators go
/// together, and that in words: with the pins, or with the splits.
bool nothingIsLegal(const PlanOutcome &outcome);
std::string nothingLegalText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_FACTS_H

//===- plan_facts.h - Facts of a plan, for all reports ----------*- C++ -*-===//
//
// Numbers and names of one candidate, computed once for the screen and for
// JSON. Quantities keep their units; the writers convert them to GiB and ms.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PLAN_FACTS_H
#define MTPLAN_TOOLS_REPORT_PLAN_FACTS_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// An operator in a run of equal layers.
struct OpFact {
  std::string label, kind, strategy;
  planner::Phase phase{};
  std::vector<std::int64_t> shape; ///< of its first result, per GPU
  std::string layout;              ///< of its first result
};

/// A parameter in a run of equal layers.
struct ParameterFact {
  std::string label, layout;
  std::vector<std::int64_t> shape; ///< per GPU
  /// The gradient is summed over the tensor axis once per step, not in each
  /// micro-batch.
  bool reduceOncePerStep = false;
};

/// Consecutive repeated layers with the same layouts.
struct RunFact {
  std::string segment;
  int first = 0, copies = 1;
  std::vector<OpFact> ops;
  std::vector<ParameterFact> parameters;
  /// Collectives of this run; `perMicroBatch` counts those of all its layers.
  std::vector<planner::LedgerEntry> collectives;
};

struct PlanFacts {
  planner::Setting setting;
  planner::ModelGraph graph; ///< for one micro-batch of all replicas
  std::vector<RunFact> runs;
  std::vector<planner::LedgerEntry> collectives; ///< of the whole plan
  double tokensPerSecond = 0.0;
  planner::FlopsPerSec
      modelRate;    ///< of one GPU; counts the model's products only
  double mfu = 0.0; ///< share of the peak rate; 0 if unknown
  bool sequenceParallel = false;
};

PlanFacts factsOf(const Problem &problem,
                  const planner::PlannedCandidate &candidate);

/// Returns "h.*.mlp.fc1 in 4, h.*.mlp.fc2 in 4": the tiled weights.
std::string tiledText(const PlanFacts &facts);

/// Returns the number of nodes, rounded up.
int nodesOf(const Problem &problem);

/// Returns the part of the step that is most slower than in the best plan:
/// "tensor communication 310 ms against 205 ms".
std::string reasonAgainst(const planner::PlannedCandidate &candidate,
                          const planner::PlannedCandidate &best);

/// Returns the additional step time in percent. A candidate that cannot win is
/// not solved to the end; the text is then a range from its bound to the plan
/// found.
std::string slowdownText(const planner::PlannedCandidate &plan,
                         const planner::PlannedCandidate &best);

/// Returns "Optimal over 34 candidates, 29 of them excluded by bounds". The
/// outcome must have a plan.
std::string claimText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PLAN_FACTS_H

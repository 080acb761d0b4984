//===- plan_facts.h - Facts of a plan, for all reports ----------*- C++ -*-===//
//
// The screen, JSON and the page share these numbers and names of one candidate.
// Quantities keep their units; the writers convert them to GiB and ms.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PLAN_FACTS_H
#define MTPLAN_TOOLS_REPORT_PLAN_FACTS_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Names a term of a step's time. The terms are in the order of reports.
struct TimeTerm {
  const char *name;
  planner::Seconds planner::StepTime::*time;
};
inline constexpr TimeTerm kTimeTerms[] = {
    {"compute", &planner::StepTime::compute},
    {"tensor communication", &planner::StepTime::tensor},
    {"context communication", &planner::StepTime::context},
    {"expert communication", &planner::StepTime::exchange},
    {"data communication", &planner::StepTime::data},
    {"pipeline", &planner::StepTime::pipeline},
    {"host", &planner::StepTime::host},
    {"local copies", &planner::StepTime::local},
    {"update", &planner::StepTime::update}};

/// Names a class of a device's memory. The classes are in the order of reports.
struct MemoryClass {
  const char *name, *meaning;
  planner::Bytes planner::MemoryUse::*bytes;
};
inline constexpr MemoryClass kMemoryClasses[] = {
    {"parameters", "Weights, in the precision of the products.",
     &planner::MemoryUse::parameters},
    {"gradients", "Accumulated over the step.", &planner::MemoryUse::gradients},
    {"optimizer", "The optimizer's copy of the weights, and its moments.",
     &planner::MemoryUse::optimizer},
    {"activations",
     "Kept from forward to backward, of all micro-batches in flight.",
     &planner::MemoryUse::activations},
    {"workspace", "The most that is alive beside them within one segment.",
     &planner::MemoryUse::workspace},
    {"spare", "The unused rest of the memory reserved for the workspace.",
     &planner::MemoryUse::spare},
    {"reserved", "Context, libraries, fragmentation.",
     &planner::MemoryUse::reserved}};

/// Describes an operator in a run of equal layers.
struct OpFact {
  std::string label, kind, strategy;
  planner::Phase phase{};
  std::vector<std::int64_t> shape; ///< shape of the first result, per GPU
  std::string layout;              ///< layout of the first result
  bool operator==(const OpFact &) const = default;
};

/// Describes a parameter in a run of equal layers.
struct ParameterFact {
  std::string label, layout;
  std::vector<std::int64_t> shape; ///< per GPU
  std::vector<std::int64_t> globalShape;
  planner::Bytes bytes; ///< bytes of the shard on one GPU
  /// If set, the gradient is summed over the tensor axis once per step, not in
  /// each micro-batch.
  bool reduceOncePerStep = false;
  bool operator==(const ParameterFact &) const = default;
};

/// Describes consecutive repeated layers with the same layouts.
struct RunFact {
  std::string segment;
  int first = 0, copies = 1;
  bool isLayer = false; ///< of the layers that repeat in the model
  std::vector<OpFact> ops;
  std::vector<ParameterFact> parameters;
  /// In these entries, `perMicroBatch` counts the collectives of all layers.
  std::vector<planner::LedgerEntry> collectives;
};

struct PlanFacts {
  planner::Setting setting;
  planner::ModelGraph graph; ///< for one micro-batch of all replicas
  std::vector<RunFact> runs;
  std::vector<planner::LedgerEntry> collectives; ///< all in the plan
  double tokensPerSecond = 0.0;
  /// Holds the rate of the model's matrix products per GPU, without
  /// recomputation.
  planner::FlopsPerSec modelRate;
  double mfu = 0.0; ///< share of the peak rate; 0 if unknown
  bool sequenceParallel = false;
};

/// Computes the facts of a candidate of the problem.
PlanFacts factsOf(const Problem &problem,
                  const planner::PlannedCandidate &candidate);

/// Returns "h.*.mlp.fc1 in 4, h.*.mlp.fc2 in 4": the tiled weights.
std::string tiledText(const PlanFacts &facts);

/// Returns the number of nodes, rounded up.
int nodesOf(const Problem &problem);

/// Returns "dp 2 x tp 8, micro-batch 4 x 64, ZeRO 1".
std::string configText(const planner::Parallelism &config);

/// Returns what makes the faster plan less simple than the chosen one, as a
/// predicate: "has 6 kinds of layers".
std::string complicationOf(const planner::FasterPlan &faster);

/// Returns "Optimal over 34 candidates, 29 of them excluded by bounds". The
/// outcome must have a plan.
std::string claimText(const PlanOutcome &outcome);

/// Describes a pipeline stage.
struct StageFact {
  planner::MemoryUse memory; ///< memory of one of its GPUs
  /// Holds the time per step of compute, layout changes and the update. The
  /// time excludes messages between stages, and traffic of parameters and
  /// gradients that runs once a step or beside compute.
  planner::Seconds busy;
};

/// Returns a fact per pipeline stage.
std::vector<StageFact> stagesOf(const Problem &problem, const PlanFacts &facts,
                                const planner::PlannedCandidate &plan);

/// Describes a message that one rank sends to the next or to the previous
/// virtual stage, once per micro-batch.
struct Send {
  int from = 0, to = 0; ///< virtual stages, in the model's order
  planner::LedgerPhase phase{};
  std::string segment; ///< segment that produces the value
  planner::Bytes bytes;
  planner::Seconds time;
};

/// Returns the messages of one micro-batch in order: forward from the first
/// virtual stage, then backward from the last. Returns none without a pipeline.
std::vector<Send> sendsOf(const Problem &problem, const PlanFacts &facts,
                          const planner::PlannedCandidate &plan);

/// Describes the gradient of a tied weight. Each stage that holds the weight
/// all-reduces the gradient once a step.
struct TiedSum {
  std::string parameter;
  int stages = 0;        ///< number that hold the weight
  planner::Bytes bytes;  ///< one rank's shard
  planner::Seconds time; ///< time of the all-reduce
};

/// Returns the sums over stages; none without a pipeline.
std::vector<TiedSum> tiedSumsOf(const Problem &problem, const PlanFacts &facts,
                                const planner::PlannedCandidate &plan);

/// Describes the all-gather over all ranks, once a step, on whose result the
/// update depends. Each rank contributes its sum of squared gradients, as a sum
/// and its rounding error, and the reported values for the log, all in double
/// precision. The sums also show an overflow. GPUs gather the sums among
/// themselves, too. No time is predicted for this all-gather.
struct Agreement {
  planner::Bytes bytes; ///< of one rank
  std::string values;   ///< "gradient norm, overflow, loss"
};

/// Returns nothing for a single rank.
std::optional<Agreement> agreementOf(const PlanFacts &facts,
                                     const planner::PlannedCandidate &plan);

/// Sums collectives or messages of one rank of every stage per step.
struct Traffic {
  std::int64_t count = 0;
  planner::Bytes bytes;  ///< the inputs of the collectives
  planner::Seconds time; ///< beside compute or not
};

/// Returns the traffic over each axis, by the axis's name; "pp" has the
/// messages and sums between stages.
std::map<std::string, Traffic>
trafficByAxis(const Problem &problem, const PlanFacts &facts,
              const planner::PlannedCandidate &plan);

/// Names a term of the step time that no published run validates
/// (docs/accuracy).
struct UnvalidatedTerm {
  std::string name;      ///< "the zero-bubble schedule"
  std::string without;   ///< "as 1f1b": what is priced instead
  planner::Seconds step; ///< step time without this term
};

struct Unvalidated {
  std::vector<UnvalidatedTerm> terms;
  planner::Seconds step; ///< step time without all these terms
};

/// Returns the terms of a plan that published runs do not validate.
Unvalidated unvalidatedOf(const Problem &problem,
                          const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PLAN_FACTS_H

//===- plan_facts.h - Facts of a plan, for all reports ----------*- C++ -*-===//
//
// All reports share these facts about one candidate. Quantities have the
// planner's types, such as planner::Bytes. The writers of reports convert
// quantities to GiB and ms.
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
    {"host launches", &planner::StepTime::launch},
    {"local copies", &planner::StepTime::local},
    {"update", &planner::StepTime::update}};

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

struct OpFact {
  std::string label, kind, strategy;
  planner::Phase phase{};
  std::vector<std::int64_t> shape; ///< of the first result on one GPU
  std::string layout;              ///< of the first result
  bool operator==(const OpFact &) const = default;
};

struct ParameterFact {
  std::string label, layout;
  std::vector<std::int64_t> shape; ///< per GPU
  std::vector<std::int64_t> globalShape;
  planner::Bytes bytes; ///< of the shard on one GPU
  /// If set, the gradient is reduced over a tensor axis once per step instead
  /// of in each micro-batch.
  bool isReducedOncePerStep = false;
  bool operator==(const ParameterFact &) const = default;
};

/// Describes consecutive layers with the same layouts.
struct RunFact {
  std::string segment;
  int first = 0, copies = 1;
  bool isLayer = false; ///< the segment repeats in the model
  std::vector<OpFact> ops;
  std::vector<ParameterFact> parameters;
  /// Each `perMicroBatch` counts the collectives of all layers.
  std::vector<planner::LedgerEntry> collectives;
};

struct PlanFacts {
  planner::Setting setting;
  planner::ModelGraph graph; ///< for one micro-batch of all replicas
  std::vector<RunFact> runs;
  std::vector<planner::LedgerEntry> collectives;
  double tokensPerSecond = 0.0;
  /// Holds the rate of the model's matrix products per GPU, without
  /// recomputation.
  planner::FlopsPerSec modelRate;
  double mfu = 0.0; ///< share of the peak rate; 0 if unknown
  bool sequenceParallel = false;
};

PlanFacts factsOf(const Problem &problem,
                  const planner::PlannedCandidate &candidate);

/// Returns "h.*.mlp.fc1 in 4, h.*.mlp.fc2 in 4" for weights used in tiles.
std::string tiledText(const PlanFacts &facts);

int nodesOf(const Problem &problem);

/// Returns "dp 2 x tp 8, micro-batch 4 x 64, ZeRO 1".
std::string configText(const planner::Parallelism &config);

/// Returns the reason why the faster plan is less simple than the chosen plan.
/// The reason is a predicate: "has 6 kinds of layers".
std::string complicationOf(const planner::FasterPlan &faster);

/// Returns a text such as "Optimal over 34 candidates, 29 of them excluded by
/// bounds". The
/// outcome must have a plan.
std::string claimText(const PlanOutcome &outcome);

struct StageFact {
  planner::MemoryUse memory; ///< of one of the stage's GPUs
  /// Sums compute, layout changes and the update of a step. Excludes messages
  /// between stages. Also excludes traffic of parameters and gradients that
  /// runs once per step or overlaps compute.
  planner::Seconds busy;
};

std::vector<StageFact> stagesOf(const Problem &problem, const PlanFacts &facts,
                                const planner::PlannedCandidate &plan);

/// Describes a message that one rank sends to the next or the previous virtual
/// stage for each micro-batch.
struct Send {
  int from = 0, to = 0; ///< virtual stages, in the model's order
  planner::LedgerPhase phase{};
  std::string segment; ///< the segment that produces the value
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
  int stages = 0;       ///< number of stages that hold the weight
  planner::Bytes bytes; ///< one rank's shard
  planner::Seconds time;
};

/// Returns nothing without a pipeline.
std::vector<TiedSum> tiedSumsOf(const Problem &problem, const PlanFacts &facts,
                                const planner::PlannedCandidate &plan);

/// Describes the all-gather over all ranks that precedes each update. Each rank
/// contributes its sum of squared gradients, the rounding error of this sum,
/// and the values for the log, all in double precision. The sums also reveal
/// overflows. GPUs also all-gather the sums from device to device, so that
/// devices need not wait for the host. The planner predicts no time for this
/// all-gather.
struct Agreement {
  planner::Bytes bytes; ///< contribution of one rank
  std::string values;   ///< "gradient norm, overflow, loss"
};

std::optional<Agreement> agreementOf(const PlanFacts &facts,
                                     const planner::PlannedCandidate &plan);

/// Sums the collectives or messages of a step over one rank of every stage.
struct Traffic {
  std::int64_t count = 0;
  planner::Bytes bytes;  ///< of the collectives' inputs, or of the messages
  planner::Seconds time; ///< including time hidden by compute
};

/// Returns the traffic by the name of the axis. The entry "pp" has the messages
/// between stages and the sums of tied gradients.
std::map<std::string, Traffic>
trafficByAxis(const Problem &problem, const PlanFacts &facts,
              const planner::PlannedCandidate &plan);

/// Names a term of the step time that no published run validates
/// (docs/accuracy).
struct UnvalidatedTerm {
  std::string name;    ///< "the zero-bubble schedule"
  std::string without; ///< how `step` runs without the term: "as 1f1b"
  planner::Seconds step;
};

struct Unvalidated {
  std::vector<UnvalidatedTerm> terms;
  planner::Seconds step; ///< step time without all terms
};

Unvalidated unvalidatedOf(const Problem &problem,
                          const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PLAN_FACTS_H

//===- planning.h - Plans of example models, for tests ----------*- C++ -*-===//

#ifndef MTPLAN_TESTS_TOOLS_PLANNING_H
#define MTPLAN_TESTS_TOOLS_PLANNING_H

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns a request for `examples/<model>.json` on as many devices as `tp`
/// ranks, with a batch of 8 and one sample per micro-batch by default.
inline PlanRequest exampleRequest(const std::string &model, int tp) {
  PlanRequest request;
  request.model = std::string(MTPLAN_SOURCE_DIR "/examples/") + model + ".json";
  request.hardware = "dgx-a100-80g";
  request.gpus = tp;
  request.tp = tp;
  request.microBatch = 1;
  request.globalBatch = 8;
  request.splits = allSplits();
  request.memory = planner::Bytes{4e12}; // so that memory excludes nothing
  return request;
}

inline std::vector<planner::Split> megatronSplits() {
  return {planner::Split::column, planner::Split::row, planner::Split::head,
          planner::Split::vocab};
}

inline PlanOutcome planned(const PlanRequest &request) {
  PlanOutcome outcome = plan(request);
  for (const std::string &error : outcome.errors)
    ADD_FAILURE() << error;
  if (!outcome.best())
    throw std::runtime_error("no plan for " + request.model);
  return outcome;
}

inline std::vector<planner::LedgerEntry> ledger(const PlanOutcome &outcome) {
  const planner::PlannedCandidate &best = *outcome.best();
  const Problem &problem = *outcome.problem;
  planner::Setting setting =
      planner::settingOf(problem.options, problem.machine, best.config);
  return planner::ledgerOf(
      planner::withBatch(problem.graph,
                         best.config.microBatch * best.config.dp),
      best.plans(), setting);
}

/// Counts the collectives in `phase` by (kind, bytes): per step in the update,
/// else per micro-batch.
using Census = std::map<std::pair<std::string, double>, std::int64_t>;
inline Census censusOf(const PlanOutcome &outcome, planner::LedgerPhase phase) {
  Census census;
  for (const planner::LedgerEntry &entry : ledger(outcome))
    if (entry.phase == phase)
      census[{planner::nameOf(entry.kind), entry.bytes.value}] +=
          phase == planner::LedgerPhase::update ? entry.perStep
                                                : entry.perMicroBatch;
  return census;
}

} // namespace mtplan::tools

#endif // MTPLAN_TESTS_TOOLS_PLANNING_H

//===- batch_faults.h - What is wrong with a plan's batches -----*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_PLAN_BATCH_FAULTS_H
#define MTPLAN_TESTS_RUNTIME_PLAN_BATCH_FAULTS_H

#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan_checks.h"

namespace mtplan::runtime {

/// Returns what checkBatches alone finds.
/// \param plan  its indices are valid, but for those of batches
inline std::vector<std::string> batchFaultsOf(const Plan &plan) {
  Faults faults;
  checkBatches(plan, faults);
  return faults.take();
}

/// Returns what is wrong with the batches of the first program of a plan whose
/// only stage is this one, with two streams.
inline std::vector<std::string> faultsOfBatches(Plan plan, Stage stage,
                                                std::vector<Batch> batches) {
  plan.streams = {"compute", "beside"};
  stage.programs[0].batches = std::move(batches);
  plan.stages = {std::move(stage)};
  return batchFaultsOf(plan);
}

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_PLAN_BATCH_FAULTS_H

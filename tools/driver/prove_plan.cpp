//===- prove_plan.cpp - Proves a plan by execution ------------------------===//

#include "tools/driver/prove_plan.h"

#include "passes/verify/resize.h"

namespace mtplan::tools {

void checkProvable(int devices, std::vector<std::string> &errors) {
  constexpr int kMostProved = 256;
  if (devices > kMostProved)
    errors.push_back("--verify: a proof runs every rank, here " +
                     std::to_string(devices) + "; at most " +
                     std::to_string(kMostProved) +
                     " can be proved: prove the same --tp on fewer replicas");
}

std::optional<passes::Proof>
provePlan(const Problem &problem, const planner::PlannedCandidate &candidate,
          std::vector<std::string> &errors) {
  checkProvable(problem.options.devices, errors);
  if (!errors.empty())
    return std::nullopt;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      moduleOf(problem, Stage::planned, &candidate, errors);
  mlir::OwningOpRef<mlir::ModuleOp> model =
      moduleOf(problem, Stage::differentiated, nullptr, errors);
  if (!module || !model)
    return std::nullopt;
  const planner::Parallelism &config = candidate.config;
  passes::resizeBatch(*model, config.microBatch * config.dp);
  std::vector<std::string> failures;
  CapturedDiagnostics captured(*problem.context, failures);
  passes::ProofOptions options;
  options.schedule = config.schedule;
  // An interleaved schedule runs in rounds of pp micro-batches.
  if (config.virtualStages > 1)
    options.microBatches = config.pp;
  passes::Proof proof = passes::prove(*model, *module, options);
  proof.holds = proof.holds && failures.empty();
  proof.failures.insert(proof.failures.end(), failures.begin(), failures.end());
  return proof;
}

} // namespace mtplan::tools

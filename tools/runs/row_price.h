//===- row_price.h - Predicted times of published runs ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUNS_ROW_PRICE_H
#define MTPLAN_TOOLS_RUNS_ROW_PRICE_H

#include <map>
#include <memory>

#include "ir/model/transformer.h"
#include "planner/search/search.h"
#include "tools/runs/run_row.h"

namespace mtplan::tools {

struct PricedRow {
  RunRow row;
  std::string machine, software; ///< preset names
  bool assumedSoftware = false;
  std::string excluded; ///< why the row is not priced
  std::string error;    ///< why the row cannot be priced
  planner::StepTime time;
  planner::Flops modelFlops; ///< per step, without recomputation
  planner::Bytes memory, limit;

  bool isPriced() const { return excluded.empty() && error.empty(); }
  bool fits() const { return memory <= limit; }
  double predicted() const { return time.step.value; }
  double deviation() const { return predicted() / row.stepSeconds - 1.0; }
};

struct RowCase {
  planner::Machine stated;  ///< as the row states it
  planner::Machine machine; ///< `stated` under `software`
  planner::Software software;
  const planner::ModelGraph *graph = nullptr;
  planner::Parallelism config;
  planner::Pins pins;
  planner::SearchOptions options; ///< points into this struct
  /// Says whether the row states that reductions of gradients follow backward,
  /// whatever its software does.
  bool reducesAfterBackward = false;
};

/// Holds a run with its plan, which other software can price too.
class FixedRun {
public:
  FixedRun(std::unique_ptr<RowCase> theCase, planner::ModelGraph scaled,
           planner::PlannedParts plan)
      : one(std::move(theCase)), graph(std::move(scaled)),
        parts(std::move(plan)) {}

  /// Returns the time of a step with the plan's strategies.
  planner::Seconds stepWith(const planner::Software &software) const;
  bool spansNodes() const {
    return one->config.devices() > one->stated.devicesPerNode;
  }

private:
  std::unique_ptr<RowCase> one;
  planner::ModelGraph graph; ///< scaled to one micro-batch of all replicas
  planner::PlannedParts parts;
};

/// Prices rows. Keeps the graph of each model for later rows.
class RowPricer {
public:
  /// If limited, the plan must fit into the device's memory.
  enum class Memory { unlimited, limited };
  /// \param software  a preset or file that prices all rows; empty: each row's
  /// own (softwareOf)
  /// \param hardware  the same for machines (machineOf)
  /// \throws SoftwareError if `software` is no valid software
  explicit RowPricer(const std::string &software = {},
                     std::string hardware = {});
  PricedRow price(const RunRow &row, Memory memory = Memory::unlimited);
  /// Returns null, with the reason in `priced`, if the row cannot be priced.
  /// The pricer must outlive the result.
  std::unique_ptr<RowCase> caseOf(const RunRow &row, PricedRow &priced);
  /// Returns the row with the plan that price() prices. Returns nothing, with
  /// the reason in `priced`, if the row cannot be priced. The pricer must
  /// outlive the result.
  std::optional<FixedRun> fix(const RunRow &row, PricedRow &priced);

private:
  std::optional<planner::PlannedCandidate>
  solve(const RowCase &one, Memory memory, PricedRow &priced);
  const planner::ModelGraph *graphOf(const ir::Transformer &model, bool half,
                                     std::string &error);

  std::optional<FoundSoftware> givenSoftware;
  std::string givenMachine;
  using Shape = std::vector<std::int64_t>;
  std::map<Shape, planner::ModelGraph> graphs;
};

/// Holds a point of weak scaling in Megatron-LM 2019 (arXiv:1909.08053, figure
/// 5). Models grow with the number of GPUs. The speeds are per GPU, relative to
/// the smallest model on one GPU.
struct ScalingPoint {
  RunRow run;
  double published = 0.0; ///< relative speed per GPU
  double predicted = 0.0;
};

/// Returns nine points: tp 1, 2, 4 and 8 with one replica, the same with 64
/// replicas, and the largest model on 64 replicas without overlapped gradient
/// reduction.
std::vector<ScalingPoint> weakScaling();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_ROW_PRICE_H

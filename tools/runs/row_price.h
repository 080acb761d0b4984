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
  planner::Flops modelFlops;    ///< per step, without recomputation
  planner::Bytes memory, limit; ///< of the fullest stage; of the device
  double peakGiB = 0.0;         ///< predicts RunRow::peakGiB

  bool isPriced() const { return excluded.empty() && error.empty(); }
  bool fits() const { return memory <= limit; }
  double predicted() const { return time.step.value; }
  /// Returns predicted / measured - 1.
  double deviation(Quantity quantity = Quantity::stepTime) const;
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
  bool statesFirstStage = false; ///< RunRow::peakGiB is of the first stage
  std::string memoryKind;        ///< RunRow::memoryKind
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
  /// Returns the memory that RunRow::memoryKind counts: of the first stage if
  /// the source states that of rank 0, else of the fullest stage. Strategies
  /// stay as they are.
  double peakGiBWith(const planner::Software &software) const;
  double valueWith(const planner::Software &software, Quantity quantity) const {
    return quantity == Quantity::stepTime ? stepWith(software).value
                                          : peakGiBWith(software);
  }
  bool spansNodes() const {
    return one->config.devices() > one->stated.devicesPerNode;
  }

private:
  std::unique_ptr<RowCase> one;
  planner::ModelGraph graph; ///< scaled to one micro-batch of all replicas
  planner::PlannedParts parts;
};

std::vector<const FixedRun *> pointersTo(const std::vector<FixedRun> &runs);

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
  /// \param quantity  what is to be compared with a measurement
  PricedRow price(const RunRow &row, Memory memory = Memory::unlimited,
                  Quantity quantity = Quantity::stepTime);
  /// Returns null, with the reason in `priced`, if the row cannot be priced.
  /// The pricer must outlive the result.
  std::unique_ptr<RowCase> caseOf(const RunRow &row, PricedRow &priced,
                                  Quantity quantity = Quantity::stepTime);
  /// Returns the row with the plan that price() prices. Returns nothing, with
  /// the reason in `priced`, if the row cannot be priced. The pricer must
  /// outlive the result.
  std::optional<FixedRun> fix(const RunRow &row, PricedRow &priced,
                              Quantity quantity = Quantity::stepTime);

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

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_ROW_PRICE_H

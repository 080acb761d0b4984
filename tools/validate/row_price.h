//===- row_price.h - Predicted times of published runs ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_ROW_PRICE_H
#define MTPLAN_TOOLS_VALIDATE_ROW_PRICE_H

#include <map>
#include <memory>

#include "ir/model/transformer.h"
#include "planner/search/search.h"
#include "tools/validate/run_row.h"

namespace mtplan::tools {

struct PricedRow {
  RunRow row;
  std::string machine, software; ///< preset names
  bool assumedSoftware = false;
  std::string excluded; ///< why the row is not priced
  std::string error;    ///< why the row cannot be priced
  planner::StepTime time;
  planner::Flops modelFlops; ///< flops per step, without recomputation
  planner::Bytes memory, limit;

  bool isPriced() const { return excluded.empty() && error.empty(); }
  bool fits() const { return memory <= limit; }
  double predicted() const { return time.step.value; }
  /// Returns predicted over measured, minus 1.
  double deviation() const { return predicted() / row.stepSeconds - 1.0; }
};

/// Holds the inputs of a row's price.
struct RowCase {
  planner::Machine machine;
  planner::Software software;
  const planner::ModelGraph *graph = nullptr;
  planner::Parallelism config;
  planner::Pins pins;
  planner::SearchOptions options; ///< points into this struct
};

/// Prices rows. The graph of a model is built once, and reused by later rows.
class RowPricer {
public:
  /// States whether the device's memory limits the plan.
  enum class Memory { unlimited, limited };
  /// Returns the row with its price, or with the reason why it has none.
  PricedRow price(const RunRow &row, Memory memory = Memory::unlimited);
  /// Returns null, with the reason in `priced`, if the row cannot be priced.
  /// The pricer must outlive the result.
  std::unique_ptr<RowCase> caseOf(const RunRow &row, PricedRow &priced);

private:
  const planner::ModelGraph *graphOf(const ir::Transformer &model, bool half,
                                     std::string &error);

  using Shape = std::vector<std::int64_t>;
  std::map<Shape, planner::ModelGraph> graphs;
};

/// Holds a point of weak scaling in Megatron-LM 2019 (arXiv:1909.08053, figure
/// 5). Models grow with the number of GPUs, and the speed per GPU is compared
/// with that of the smallest model on one GPU.
struct ScalingPoint {
  RunRow run;
  double published = 0.0; ///< 1: as fast per GPU as one GPU
  double predicted = 0.0;
};

/// Returns nine points: tp 1, 2, 4 and 8 with one replica, then with 64
/// replicas each, then the largest of these without overlapped gradient
/// reduction.
std::vector<ScalingPoint> weakScaling();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ROW_PRICE_H

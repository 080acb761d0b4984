//===- row_price.h - What mtplan says a published run takes -----*- C++ -*-===//

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
  std::string machine, software; ///< names of presets
  bool assumedSoftware = false;
  std::string excluded; ///< why it is not priced
  std::string error;    ///< why it cannot be priced
  planner::StepTime time;
  planner::Flops modelFlops; ///< of a step
  planner::Bytes memory, limit;

  bool isPriced() const { return excluded.empty() && error.empty(); }
  bool fits() const { return memory <= limit; }
  double predicted() const { return time.step.value; }
  /// Predicted over measured, less 1.
  double deviation() const { return predicted() / row.stepSeconds - 1.0; }
};

/// What a row is priced from.
struct RowCase {
  planner::Machine machine;
  planner::Software software;
  const planner::ModelGraph *graph = nullptr;
  planner::Parallelism how;
  planner::Pins pins;
  planner::SearchOptions options; ///< points into this
};

/// Prices rows one after the other; models that occur again are built once.
class RowPricer {
public:
  /// What it may need: whatever it takes, or no more than there is.
  enum class Memory { endless, asItIs };
  PricedRow price(const RunRow &row, Memory memory = Memory::endless);
  /// Null where `priced` says why there is none. Lives no longer than this.
  std::unique_ptr<RowCase> caseOf(const RunRow &row, PricedRow &priced);

private:
  const planner::ModelGraph *graphOf(const ir::Transformer &model, bool half,
                                     std::string &error);

  using Shape = std::vector<std::int64_t>;
  std::map<Shape, planner::ModelGraph> graphs;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ROW_PRICE_H

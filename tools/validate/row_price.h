//===- row_price.h - What mtplan says a published run takes -----*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_ROW_PRICE_H
#define MTPLAN_TOOLS_VALIDATE_ROW_PRICE_H

#include <map>

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

/// Prices rows one after the other; models that occur again are built once.
class RowPricer {
public:
  PricedRow price(const RunRow &row);

private:
  using Shape = std::vector<std::int64_t>;
  std::map<Shape, planner::ModelGraph> graphs;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ROW_PRICE_H

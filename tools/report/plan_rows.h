//===- plan_rows.h - The rows of a plan, for people -------------*- C++ -*-===//
//
// A plan has choices for each operator of each layer. For human readers, the
// rows condense these choices to one block per kind of layer.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PLAN_ROWS_H
#define MTPLAN_TOOLS_REPORT_PLAN_ROWS_H

#include <string>
#include <utility>
#include <vector>

#include "tools/report/plan_facts.h"

namespace mtplan::tools {

/// Determines which neighbouring operators share a row. A row has at most six
/// operators.
enum class RowDetail {
  /// Operators with the same strategy and at most two shapes share a row,
  /// unless a forward collective is between operators of different modules.
  /// "loss.max" and "loss.sum_exp" are of the same module, "loss".
  summary,
  /// Operators with the same strategy and shape share a row, if no forward
  /// collective is between them.
  all
};

/// Describes consecutive forward operators with the same strategy, and the
/// forward and backward collectives that their results cause.
struct PlanRow {
  std::string operators; ///< "attn.q, k, v"
  std::string strategy, shape;
  std::string forward, backward; ///< per layer: "all_reduce tp 6.00 MiB"
  bool operator==(const PlanRow &) const = default;
};

/// Summarizes the collectives of one layer and micro-batch in one phase.
struct PhaseTraffic {
  planner::LedgerPhase phase{};
  std::string collectives; ///< "2 all_reduce tp 6.00 MiB"; empty without any
  planner::Seconds time;
};

/// Describes all layers that print the same rows, or a segment that does not
/// repeat.
struct PlanBlock {
  std::string segment;
  /// Lists the first layer and the number of layers of each run. The list is
  /// empty for a segment that does not repeat.
  std::vector<std::pair<int, int>> layers;
  std::vector<PlanRow> rows;
  std::vector<PhaseTraffic> traffic;
};

/// Returns the blocks of a plan, in the order of their first layers. The work
/// is proportional to the number of runs times the number of blocks.
std::vector<PlanBlock> blocksOf(const PlanFacts &facts, RowDetail detail);

/// Returns "h.3", "h.0..4, 20..24" or "embed". For many runs of layers, returns
/// "h.0..4, 20..24, ... (20 layers)" with the number of all layers.
std::string nameOf(const PlanBlock &block);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PLAN_ROWS_H

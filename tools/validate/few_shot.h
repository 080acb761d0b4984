//===- few_shot.h - Sources learnt from a few of their runs -----*- C++ -*-===//
//
// Fits the software of each source to a few of its runs and predicts the other
// runs of the source.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_FEW_SHOT_H
#define MTPLAN_TOOLS_VALIDATE_FEW_SHOT_H

#include <string>
#include <vector>

#include "tools/runs/software_fit.h"
#include "tools/validate/statistics.h"

namespace mtplan::tools {

struct FewShot {
  std::string source, base; ///< `base` is a preset or file
  std::vector<PricedRow> learnt, predicted;
  SoftwareFit fit; ///< unchanged software if nothing was learnt
};

/// Learns each source from `count` of its priced rows. Rows that different
/// presets price are learnt apart. The candidates are the rows of the smallest
/// model on at most kMostGpusToMeasure GPUs, or, if they are fewer than
/// `count`, the rows on the smallest clusters. suggestRuns() chooses among them
/// without regard to their times. Rows that cannot be priced are left out.
/// \param base      a preset or file from which every fit starts; empty: each
/// source's own software
/// \param quantity  what the rows must state; other rows are left out too
std::vector<FewShot> fewShot(const std::vector<RunRow> &rows, std::size_t count,
                             const std::string &base,
                             Quantity quantity = Quantity::stepTime);

/// Returns tables of the errors of all sources and of the fitted figures, and
/// for step times, of rank correlations and regrets.
std::string fewShotText(const std::vector<FewShot> &sources);

/// Summarizes how well predictions choose among the rows of one model, cluster,
/// batch and sequence. The regret of a group is the measured time of the row
/// that is predicted to be fastest, divided by the least measured time, minus
/// 1. Only groups of at least kLeastChoices rows count.
struct ChoiceSummary {
  std::size_t groups = 0;
  double spearman = 0.0; ///< mean rank correlation
  double meanRegret = 0.0, worstRegret = 0.0;
};
inline constexpr std::size_t kLeastChoices = 8;
ChoiceSummary choiceSummaryOf(const std::vector<PricedRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_FEW_SHOT_H

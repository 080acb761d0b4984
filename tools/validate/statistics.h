//===- statistics.h - Statistics of prediction errors -----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_STATISTICS_H
#define MTPLAN_TOOLS_VALIDATE_STATISTICS_H

#include <string>
#include <vector>

#include "tools/runs/row_price.h"

namespace mtplan::tools {

/// Summarizes deviations. A deviation is predicted / measured - 1.
struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0.0;   ///< mean of absolute values
  double median = 0.0; ///< median of absolute values
  double p90 = 0.0;    ///< 90th percentile of absolute values
  double worst = 0.0;  ///< largest absolute value
  double bias = 0.0;   ///< mean of signed values
};
/// Returns a summary of zeros if there are no deviations.
ErrorSummary summaryOf(const std::vector<double> &deviations);

/// Returns Spearman's rank correlation, -1 to 1. Equal values share the mean of
/// their ranks. Returns 0 if all values of `one` or of `other` are equal.
double spearman(const std::vector<double> &one,
                const std::vector<double> &other);

struct RowGroup {
  std::string name;
  std::vector<const PricedRow *> rows;
};

RowGroup pricedRows(const std::vector<PricedRow> &rows);

/// Names the properties that the rows of a group share, from coarse to fine.
enum class Grouping : std::uint8_t {
  source,
  hardwareModel, ///< model and cluster
  sourceHardwareModel,
  precision, ///< sourceHardwareModel and the precision
  gpus,      ///< precision and the number of devices
  batch      ///< gpus, the batch and the sequence
};
const char *nameOf(Grouping grouping);

/// Reports state the mean rank correlation for each of these groupings.
inline constexpr Grouping kRankedGroupings[] = {
    Grouping::hardwareModel, Grouping::sourceHardwareModel, Grouping::precision,
    Grouping::gpus, Grouping::batch};

/// Predicts the quantity of all rows that state it and enough else.
std::vector<PricedRow> pricesOf(const std::vector<RunRow> &rows,
                                RowPricer &pricer, Quantity quantity);

/// Groups the priced rows, in order of name.
std::vector<RowGroup> groupsOf(const std::vector<PricedRow> &rows,
                               Grouping grouping);

ErrorSummary summaryOf(const RowGroup &group,
                       Quantity quantity = Quantity::stepTime);

/// Correlates measured and predicted step times.
double spearman(const RowGroup &group);

struct RankSummary {
  std::size_t groups = 0; ///< groups with at least three rows
  double mean = 0.0;      ///< of their rank correlations
};
RankSummary rankSummaryOf(const std::vector<PricedRow> &rows,
                          Grouping grouping);

/// Groups with fewer rows have no meaningful rank correlation.
inline constexpr std::size_t kLeastRanked = 3;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_STATISTICS_H

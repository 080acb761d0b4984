//===- statistics.h - How far predictions are from measurements -*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_STATISTICS_H
#define MTPLAN_TOOLS_VALIDATE_STATISTICS_H

#include <string>
#include <vector>

#include "tools/validate/row_price.h"

namespace mtplan::tools {

/// Of deviations, predicted over measured less 1.
struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0.0; ///< of absolute values
  double p90 = 0.0;  ///< nine of ten absolute values are no larger
  double bias = 0.0; ///< mean with the sign
};
ErrorSummary summaryOf(const std::vector<double> &deviations);

/// Rank correlation, -1 to 1; equal values share the mean of their ranks. 0 if
/// all of one side are equal.
double spearman(const std::vector<double> &one,
                const std::vector<double> &other);

struct RowGroup {
  std::string name;
  std::vector<const PricedRow *> rows; ///< priced ones
};

/// What makes rows comparable, from the coarsest to the finest.
enum class Grouping : std::uint8_t {
  source,
  hardwareModel, ///< one model on one cluster
  sourceHardwareModel,
  precision, ///< and of one precision
  gpus,      ///< and on as many devices
  batch      ///< and of one batch and sequence
};
const char *nameOf(Grouping grouping);

/// Priced rows by `grouping`, in order of name.
std::vector<RowGroup> groupsOf(const std::vector<PricedRow> &rows,
                               Grouping grouping);

ErrorSummary summaryOf(const RowGroup &group);
double spearman(const RowGroup &group); ///< of step times

struct RankSummary {
  std::size_t groups = 0; ///< of at least three rows
  double mean = 0.0;
};
RankSummary rankSummaryOf(const std::vector<PricedRow> &rows,
                          Grouping grouping);

/// Fewer rows have no ranks to speak of.
inline constexpr std::size_t kLeastRanked = 3;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_STATISTICS_H

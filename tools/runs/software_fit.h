//===- software_fit.h - Software files fitted to runs -----------*- C++ -*-===//
//
// Fits the figures of a software file to measured runs. The fit minimises the
// sum of squares of log(predicted / measured) / kScatter, over the runs, and of
// log(value / base) / width, over the figures. The second sum keeps a figure
// near its base unless the runs contradict it, so a few runs suffice (ridge
// regression, Hoerl and Kennard 1970). If the base is 0, the second sum has
// value / usual / width instead. Large errors count by the logarithm of their
// squares, so a single bad run cannot decide (Black and Anandan 1996).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUNS_SOFTWARE_FIT_H
#define MTPLAN_TOOLS_RUNS_SOFTWARE_FIT_H

#include <string>
#include <vector>

#include "tools/runs/row_price.h"

namespace mtplan::tools {

/// The fit expects these standard deviations of log(predicted / measured). Runs
/// on one node weigh less, because plans are usually for several nodes.
inline constexpr double kScatter = 0.05, kScatterInNode = 0.1;
/// The same for the memory of all runs.
inline constexpr double kMemoryScatter = 0.05;

/// Is the most GPUs of the runs that are suggested for a measurement.
inline constexpr std::int64_t kMostGpusToMeasure = 16;

/// Describes a figure that can be fitted.
struct SoftwareFigure {
  const char *name; ///< the JSON pointer of the value, or of the scaled values
  const char *unit;
  /// Holds the expected standard deviation of log(value / base).
  double width;
  /// Holds the usual value, which scales the prior of a figure whose base is 0.
  double usual;
  double limit; ///< the largest allowed value
  double (*get)(const planner::Software &);
  void (*set)(planner::Software &, double);

  /// Returns whether the figure changes the value at `pointer`.
  bool changes(const std::string &pointer) const;
};

/// Returns the figures that can be fitted to a measured quantity, in the order
/// of SoftwareFit::figures.
const std::vector<SoftwareFigure> &
softwareFigures(Quantity quantity = Quantity::stepTime);

struct FittedSoftwareFigure {
  double base = 0.0, value = 0.0;
  /// Holds the standard deviation of log(value), from the figure's width, the
  /// expected scatter of the runs, and their errors if these are larger.
  double deviation = 0.0;
  bool isDetermined = false; ///< whether some run depends on the figure
};

struct SoftwareFit {
  Quantity quantity = Quantity::stepTime;
  planner::Software software;
  std::vector<FittedSoftwareFigure> figures;
  /// These are predicted / measured - 1 of every run, with the base and with
  /// the fit.
  std::vector<double> before, after;
  double cost = 0.0; ///< the minimised sum of squares
};

/// Fits software to runs. A figure on which no run depends keeps its value.
/// \param runs      at least one
/// \param measured  the quantity, by run
SoftwareFit fitSoftware(const planner::Software &base,
                        const std::vector<const FixedRun *> &runs,
                        const std::vector<double> &measured,
                        Quantity quantity = Quantity::stepTime);

/// Returns a table of the figures on which the runs depend: the base, the
/// fitted value and its standard deviation.
std::string figuresText(const SoftwareFit &fit);

/// Returns the preset that explains the step times best after a fit, with the
/// layouts that the runs have. To save time, only the three presets that
/// predict the runs best as they are, are fitted.
std::string nearestSoftware(const std::vector<const FixedRun *> &runs,
                            const std::vector<double> &measured);

/// Returns the base's file with the fitted values and their standard errors.
/// \param name    the name of the new software
/// \param origin  the source of the fitted values: "fit to 10 runs of x.csv"
std::string fittedSoftwareText(const std::string &baseText,
                               const SoftwareFit &fit, const std::string &name,
                               const std::string &origin);

/// Returns those of the offered runs whose measurement would improve the
/// predictions of all runs most (planner::chooseMeasurements). Assumes fast,
/// usual and slow hosts in turn, because the slower of host and device sets the
/// time.
/// \param runs     all runs that are to be predicted, measured or not
/// \param known    indices of runs that are measured
/// \param offered  indices of runs that can be measured
/// \param count    the most runs to return
std::vector<std::size_t> suggestRuns(const planner::Software &base,
                                     const std::vector<const FixedRun *> &runs,
                                     const std::vector<std::size_t> &known,
                                     const std::vector<std::size_t> &offered,
                                     std::size_t count,
                                     Quantity quantity = Quantity::stepTime);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_SOFTWARE_FIT_H

//===- intervals.h - Intervals of predicted times ---------------*- C++ -*-===//
//
// Finds how far measured steps are from their predictions, by software and
// device, for the list `accuracy` of software files. Tests how often intervals
// hold, each from the other runs only.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_INTERVALS_H
#define MTPLAN_TOOLS_VALIDATE_INTERVALS_H

#include <map>
#include <string>
#include <vector>

#include "planner/machine/interval.h"
#include "tools/validate/statistics.h"

namespace mtplan::tools {

/// Returns the entries of Software::accuracy, by preset. Runs whose software
/// was assumed from their options do not count.
std::map<std::string, std::vector<planner::Accuracy>>
accuracyOf(const std::vector<PricedRow> &rows);

struct Coverage {
  std::string source;
  std::size_t rows = 0, inside = 0;
  double width = 0.0; ///< mean of high / low - 1
};

/// Counts the rows whose measured time is inside the interval that the other
/// rows of the same software and devices give.
std::vector<Coverage> coverageOf(const std::vector<PricedRow> &rows);

/// Returns a table of coverageOf(), and one of the entries of accuracyOf().
std::string intervalsText(const std::vector<PricedRow> &rows);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_INTERVALS_H

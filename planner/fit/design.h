//===- design.h - What measurements say about figures -----------*- C++ -*-===//
//
// Estimates figures linearly, with a prior. Every figure has the standard
// deviation 1 before anything is measured, and every measurement has the error
// 1. A slope is the derivative of a measurement with respect to a figure, times
// the figure's prior deviation, divided by the deviation of the measurement.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_DESIGN_H
#define MTPLAN_PLANNER_FIT_DESIGN_H

#include <cstddef>
#include <vector>

namespace mtplan::planner {

/// Holds the slopes by measurement and figure. All rows have the same length.
using Slopes = std::vector<std::vector<double>>;

/// Returns the deviation of each figure after the measurements, in (0, 1]
/// (Bayesian linear regression, Lindley and Smith 1972).
std::vector<double> deviationsAfter(const Slopes &measured);

/// Returns those of the offered measurements that would improve the predictions
/// of all measurements most, the most useful first. Minimises the sum of the
/// variances of all measurements greedily (I-optimal design, Studden 1977), on
/// average over the scenarios.
/// \param scenarios  slopes of the same measurements under other figures
/// \param known      indices of the measurements that are done
/// \param offered    indices of the measurements that can be done
/// \param count      the most measurements to return
std::vector<std::size_t>
chooseMeasurements(const std::vector<Slopes> &scenarios,
                   const std::vector<std::size_t> &known,
                   std::vector<std::size_t> offered, std::size_t count);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_DESIGN_H

//===- in_flight.h - The activations that a stage saves ---------*- C++ -*-===//
//
// Activations are saved from a chunk's forward until its backward is done. In a
// zero-bubble schedule backward frees a part; the rest stays until the
// gradients of weights are computed. Counts are of (chunk, micro-batch) pairs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_IN_FLIGHT_H
#define MTPLAN_PLANNER_SIMULATE_IN_FLIGHT_H

#include <compare>
#include <vector>

#include "planner/simulate/schedule.h"
#include "planner/units.h"

namespace mtplan::planner {

struct InFlight {
  int full = 0;       ///< forward done, backward not
  int weightOnly = 0; ///< only the gradient of weights is missing
  int total() const { return full + weightOnly; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const InFlight &) const = default;
};

/// Returns the most that a stage holds at once: the moment with the most `full`
/// ones and, of those, the most in total. No other moment holds more in total.
/// O(1).
InFlight inFlight(const ScheduleShape &shape, int stage);

/// Counts the same from an order of tasks.
InFlight inFlight(const std::vector<Task> &order);

/// The bytes that one micro-batch leaves in memory.
struct Activations {
  Bytes full;       ///< after forward
  Bytes weightOnly; ///< after backward; zero-bubble only
};

/// Returns the most bytes that an order of tasks saves at once, by the
/// activations of each chunk. A task's own activations count while it runs.
/// O(tasks).
Bytes peakActivations(const std::vector<Task> &order,
                      const std::vector<Activations> &chunks);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_IN_FLIGHT_H

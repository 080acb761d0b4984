//===- in_flight.h - What a stage keeps for its backwards -------*- C++ -*-===//
//
// Activations are kept from a chunk's forward until its backward is done. In a
// zero-bubble schedule backward only lets go of a part; the rest stays until
// the gradients of weights are made. Counts are of (chunk, micro-batch) pairs.
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
  int whole = 0;      ///< forward done, backward not
  int weightOnly = 0; ///< only the gradient of weights is missing
  int total() const { return whole + weightOnly; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const InFlight &) const = default;
};

/// The most a stage holds at once: the moment with the most of `whole` and,
/// of those, the most in all. No other moment holds more in all. O(1).
InFlight inFlight(const ScheduleShape &shape, int stage);

/// The same, counted from an order of tasks.
InFlight inFlight(const std::vector<Task> &order);

/// What one micro-batch leaves in memory.
struct Activations {
  Bytes whole;      ///< after forward
  Bytes weightOnly; ///< after backward; zero-bubble only
};

/// The most bytes an order of tasks keeps at once, by the activations of each
/// chunk. A task's own activations count while it runs. O(tasks).
Bytes peakActivations(const std::vector<Task> &order,
                      const std::vector<Activations> &chunks);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_IN_FLIGHT_H

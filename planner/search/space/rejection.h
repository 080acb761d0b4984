//===- rejection.h - Why a configuration is not among the plans -*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_REJECTION_H
#define MTPLAN_PLANNER_SEARCH_SPACE_REJECTION_H

#include <cstdint>
#include <string>

#include "planner/search/space/parallelism.h"
#include "planner/units.h"

namespace mtplan::planner {

/// A configuration that was not solved, or not to the end, and the reason.
struct Rejection {
  Parallelism config; ///< microBatch 0: all of this mesh
  /// `budget` means that the search was stopped before it.
  enum class Reason : std::uint8_t {
    divisor,
    memory,
    host, ///< the host's memory
    bound,
    pins,
    budget
  } reason{};
  /// For `bound`, `memory` and `budget`: no plan that fits is faster.
  Seconds bound;
  /// For `memory` and `host`: a lower bound of what any plan needs
  /// (isLowerBound), or what the plan with the fewest parameters and saved
  /// values needs.
  Bytes needed;
  bool isLowerBound = false;
  std::string detail;
  bool limited = false; ///< whether more memory might lower the bound
  /// Configurations that this one stands for, itself included: they recompute
  /// more or less, or have other cuts.
  std::int64_t count = 1;
};

const char *nameOf(Rejection::Reason reason);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_REJECTION_H

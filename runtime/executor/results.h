//===- results.h - Numbers of a step for the host ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RESULTS_H
#define MTPLAN_RUNTIME_EXECUTOR_RESULTS_H

#include <map>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/backend/long_sum.h"

namespace mtplan::runtime {

/// Numbers are copied to the host in the order of the queue, and read when the
/// queue has finished.
class Results {
public:
  /// \param most  limit of numbers between two calls of clear()
  Results(Memory &theMemory, std::size_t most)
      : memory(theMemory), places(theMemory.staging(), most * kPlace) {}

  void clear() { kept.clear(); }
  /// Copies one number of the backend's memory.
  void keep(const std::string &label, ElementType type, const void *number);

  /// Returns sums by label, added in the order of keep().
  std::map<std::string, double> sums() const;

private:
  static constexpr std::size_t kPlace = 8; ///< bytes, for any type

  struct Kept {
    std::string label;
    ElementType type = ElementType::f32;
  };
  Memory &memory;
  Allocation places;
  std::vector<Kept> kept;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RESULTS_H

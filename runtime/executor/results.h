//===- results.h - Numbers of a step for the host ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RESULTS_H
#define MTPLAN_RUNTIME_EXECUTOR_RESULTS_H

#include <map>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/backend/long_sum.h"

namespace mtplan::runtime {

/// Numbers that the queue copies to the host during a step. They may be read
/// when the queue has finished.
class Results {
public:
  /// \param most  the most numbers between two calls of clear()
  Results(Memory &theMemory, std::size_t most)
      : memory(theMemory), places(theMemory.staging(), most * kPlace) {}

  void clear() { kept.clear(); }
  /// Queues the copy of one number from the backend's memory.
  void keep(const std::string &label, ElementType type, const void *number);

  /// Returns the sum of each label's numbers, added in the order of keep().
  std::map<std::string, double> sums() const;

private:
  static constexpr std::size_t kPlace = 8; ///< bytes of a slot, for any type

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

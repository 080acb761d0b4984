//===- results.h - Numbers of a step that the host wants --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RESULTS_H
#define MTPLAN_RUNTIME_EXECUTOR_RESULTS_H

#include <map>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/backend/long_sum.h"

namespace mtplan::runtime {

/// Copied to the host in the order of the queue, and read there when that has
/// been finished.
class Results {
public:
  /// \param most  that are kept between two calls of clear()
  Results(Memory &theMemory, std::size_t most)
      : memory(theMemory), places(theMemory.staging(), most * kPlace) {}

  void clear() { kept.clear(); }
  /// One number of the backend's memory.
  void keep(const std::string &label, ElementType type, const void *number);

  /// By label, added up in the order in which they were kept.
  std::map<std::string, double> sums() const;

private:
  static constexpr std::size_t kPlace = 8; ///< bytes, of any type

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

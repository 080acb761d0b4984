//===- plan_checks.h - The parts of checkPlan -------------------*- C++ -*-===//
//
// checkRanges runs first, because the others use indices that it has checked.
// checkRanks follows. The remaining checks rely on both, and checkMessages on
// all others.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H
#define MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::runtime {

inline std::string pointerPart(std::string_view part) {
  return '/' + std::string(part);
}
inline std::string pointerPart(std::size_t part) {
  return '/' + std::to_string(part);
}

/// Returns the JSON pointer of a member of a plan: at("stages", 0, "buffers",
/// 3).
template <typename... Parts> std::string at(const Parts &...parts) {
  return (pointerPart(parts) + ...);
}

/// The errors that a check finds, at most a hundred.
class Faults {
public:
  void add(const std::string &pointer, const std::string &what) {
    constexpr std::size_t kMost = 100;
    if (list.size() < kMost)
      list.push_back(pointer + ": " + what);
    else if (list.size() == kMost)
      list.emplace_back(": there are more faults");
  }

  bool any() const { return !list.empty(); }
  std::vector<std::string> take() { return std::move(list); }

private:
  std::vector<std::string> list;
};

void checkRanges(const Plan &plan, Faults &faults);
/// Checks the operands of every instruction.
void checkCalls(const Plan &plan, Faults &faults);
/// Checks which instructions use the host's memory, and when.
void checkSides(const Plan &plan, Faults &faults);
void checkParameters(const Plan &plan, Faults &faults);
/// Checks that reads find what was written.
void checkMemory(const Plan &plan, Faults &faults);
/// Checks that instructions of different streams touch the same bytes only if
/// one waits for the other.
void checkStreams(const Plan &plan, Faults &faults);
/// Checks that nothing else touches the bytes of an overlapped collective until
/// the schedule ends.
void checkOverlap(const Plan &plan, Faults &faults);
/// Checks that the instructions of each batch can be one launch.
void checkBatches(const Plan &plan, Faults &faults);
/// Checks messages between stages.
void checkMessages(const Plan &plan, Faults &faults);

std::int64_t elementsOf(const Tensor &tensor);

/// Returns the product, or the largest number if it is larger. Both factors are
/// at least 0.
inline std::int64_t times(std::int64_t a, std::int64_t b) {
  return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

/// Returns "buffer 3 ("name")".
std::string bufferName(const Stage &stage, int buffer);

/// Returns "[2, 6] of f32".
std::string tensorWords(const Tensor &tensor);

/// Returns what is wrong if the tensor has more bytes than its buffer's pieces;
/// otherwise "".
std::string misfitOf(const Stage &stage, const Tensor &tensor);

/// One part of a step: its name and its entries.
struct Phase {
  std::string_view name;
  const std::vector<ScheduleEntry> *entries;
};

/// Returns the parts of a step in their order: schedule, reduce, apply.
std::vector<Phase> phasesOf(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H

//===- plan_checks.h - The parts of checkPlan -------------------*- C++ -*-===//
//
// checkRanges runs first, because all other checks use indices. checkRanks of
// plan_check.cpp runs next. The remaining checks rely on these two. The last
// two checks, checkBatches and checkMessages, rely on all checks before them.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H
#define MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H

#include <algorithm>
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

/// Returns the JSON pointer of a member of a plan: at("stages", 0) is
/// "/stages/0".
template <typename... Parts> std::string at(const Parts &...parts) {
  return (pointerPart(parts) + ...);
}

/// Collects the first hundred errors that checks find.
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

/// Checks that numbers and indices are in range.
void checkRanges(const Plan &plan, Faults &faults);
void checkCalls(const Plan &plan, Faults &faults);
/// Checks which instructions use host memory, and in which phase.
void checkSides(const Plan &plan, Faults &faults);
/// Checks the shapes, buffers and replication of each parameter's tensors.
void checkParameters(const Plan &plan, Faults &faults);
/// Checks that instructions read only values that were written, are not
/// overwritten, and belong to the same layer and micro-batch.
void checkMemory(const Plan &plan, Faults &faults);
/// Checks that streams and waits order instructions that touch the same bytes.
void checkStreams(const Plan &plan, Faults &faults);
/// Checks that no other stream touches the bytes of an overlapped collective
/// until the schedule ends.
void checkOverlap(const Plan &plan, Faults &faults);
/// Checks that the instructions of each batch can be one launch.
void checkBatches(const Plan &plan, Faults &faults);
/// Checks that both ends of every message agree, that all stages of a group
/// make the same calls, and that the stages do not deadlock.
void checkMessages(const Plan &plan, Faults &faults);

std::int64_t elementsOf(const Tensor &tensor);

/// Returns the product of two numbers >= 0, at most INT64_MAX.
inline std::int64_t times(std::int64_t a, std::int64_t b) {
  return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

/// Returns "buffer 3 ("name")".
std::string bufferName(const Stage &stage, int buffer);

/// Returns "[2, 6] of f32".
std::string tensorWords(const Tensor &tensor);

/// Returns an error if the tensor has more bytes than a piece of its buffer,
/// else "".
std::string misfitOf(const Stage &stage, const Tensor &tensor);

struct Phase {
  std::string_view name;
  const std::vector<ScheduleEntry> *entries;
};

/// Returns the parts of a step in their order: schedule, reduce, apply.
std::vector<Phase> phasesOf(const Stage &stage);

/// Holds the partial order that streams and waits impose on a program's
/// instructions. Takes O(instructions * streams) time and space.
class ProgramOrder {
public:
  ProgramOrder(const Program &program, std::size_t streamCount)
      : streams(streamCount),
        last(program.instructions.size() * streamCount, -1) {
    std::vector<int> latest(streams, -1); // by stream
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const Instruction &instruction = program.instructions[i];
      streamOf.push_back(indexed(instruction.stream));
      int &before = latest[streamOf[i]];
      if (before >= 0)
        follow(i, indexed(before));
      for (int wait : instruction.waits)
        follow(i, indexed(wait));
      before = static_cast<int>(i);
    }
  }

  /// Returns whether `late` starts only after `early` has ended. `early` must
  /// precede `late` in the program.
  bool follows(std::size_t late, std::size_t early) const {
    return last[late * streams + streamOf[early]] >= static_cast<int>(early);
  }

private:
  void follow(std::size_t late, std::size_t early) {
    for (std::size_t s = 0; s < streams; ++s)
      last[late * streams + s] =
          std::max(last[late * streams + s], last[early * streams + s]);
    int &own = last[late * streams + streamOf[early]];
    own = std::max(own, static_cast<int>(early));
  }

  std::size_t streams;
  std::vector<std::size_t> streamOf;
  /// last[i * streams + s] is the last instruction on stream s that ends before
  /// instruction i starts; -1 if there is none.
  std::vector<int> last;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H

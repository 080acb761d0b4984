//===- program_order.h - The order that streams keep ------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_PROGRAM_ORDER_H
#define MTPLAN_RUNTIME_PLAN_PROGRAM_ORDER_H

#include <algorithm>
#include <vector>

#include "runtime/plan/plan_checks.h"

namespace mtplan::runtime {

/// The partial order that streams and waits impose on a program's instructions.
/// Construction takes O(instructions * streams) time and space.
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

  /// Returns whether `late` starts only after `early` has ended. `early`
  /// precedes it in the program.
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
  /// By instruction and stream, the last instruction of the stream that the
  /// instruction follows; -1 if none.
  std::vector<int> last;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PROGRAM_ORDER_H

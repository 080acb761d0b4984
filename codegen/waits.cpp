//===- waits.cpp - Which instructions wait for which ----------------------===//

#include "codegen/waits.h"

#include <algorithm>
#include <vector>

#include "codegen/memory_overlaps.h"

namespace mtplan::codegen {

using runtime::Instruction, runtime::Plan, runtime::Program, runtime::Stage;

namespace {

/// By stream, the last instruction of the stream that has ended before another
/// instruction begins, or -1.
using Ended = std::vector<int>;

void writeWaits(Program &program, std::size_t streams,
                const MemoryOverlaps &overlaps) {
  std::vector<Ended> before; // by instruction
  std::vector<std::vector<int>> queues(streams);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    Instruction &late = program.instructions[i];
    Ended ended(streams, -1);
    std::vector<int> &own = queues[indexed(late.stream)];
    if (!own.empty()) {
      ended = before[indexed(own.back())];
      ended[indexed(late.stream)] = own.back();
    }
    // The last instruction of each other stream is enough: it follows those
    // before it.
    std::vector<int> needed;
    for (std::size_t stream = 0; stream < streams; ++stream) {
      const std::vector<int> &queue = queues[stream];
      for (auto early = queue.rbegin();
           early != queue.rend() && *early > ended[stream]; ++early)
        if (overlaps.overlap(program.instructions[indexed(*early)], late)) {
          needed.push_back(*early);
          break;
        }
    }
    late.waits.clear();
    for (int early : needed) {
      const int stream = program.instructions[indexed(early)].stream;
      if (std::ranges::none_of(needed, [&](int other) {
            return before[indexed(other)][indexed(stream)] >= early;
          }))
        late.waits.push_back(early);
    }
    std::ranges::sort(late.waits);
    for (int early : late.waits) {
      for (std::size_t stream = 0; stream < streams; ++stream)
        ended[stream] = std::max(ended[stream], before[indexed(early)][stream]);
      int &last = ended[indexed(program.instructions[indexed(early)].stream)];
      last = std::max(last, early);
    }
    before.push_back(ended);
    own.push_back(static_cast<int>(i));
  }
}

} // namespace

void writeWaits(Plan &plan) {
  for (Stage &stage : plan.stages)
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      writeWaits(stage.programs[p], plan.streams.size(),
                 MemoryOverlaps(stage, static_cast<int>(p)));
}

} // namespace mtplan::codegen

//===- stream_order.cpp - Stream order of a program's run -----------------===//

#include "runtime/executor/stream_order.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/plan/plan_queries.h"

namespace mtplan::runtime {

// The event of an instruction has the instruction's index as its number. The
// end of stream s has event `instructions + s`. The beginning of a run uses
// event `instructions`, which is free because no stream waits for the end of
// stream 0.
StreamOrder::StreamOrder(const Stage &stage, const Program &program)
    : places(program.instructions.size()),
      instructions(static_cast<int>(places.size())) {
  std::set<int> used, followed;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Instruction &instruction = program.instructions[i];
    places[i].stream = instruction.stream;
    places[i].awaits = instruction.waits;
    places[i].isOnHost = sideOf(stage, instruction) == Side::host;
    for (const int early : instruction.waits)
      places[static_cast<std::size_t>(early)].isAwaited = true;
    if (instruction.stream == 0)
      continue;
    used.insert(instruction.stream);
    if (!instruction.overlapped)
      followed.insert(instruction.stream);
  }
  others.assign(used.begin(), used.end());
  joined.assign(followed.begin(), followed.end());
  std::ranges::set_difference(others, joined, std::back_inserter(overlapped));
}

int StreamOrder::eventsOf(const Stage &stage, int streams) {
  std::size_t most = 0;
  for (const Program &program : stage.programs)
    most = std::max(most, program.instructions.size());
  return static_cast<int>(most) + streams;
}

bool StreamOrder::hasHost() const {
  return std::ranges::any_of(places, &Place::isOnHost);
}

void StreamOrder::begin(Queue &queue) const {
  queue.select(0);
  if (others.empty())
    return;
  queue.record(endOf(0));
  for (const int stream : others) {
    queue.select(stream);
    queue.wait(endOf(0));
  }
}

void StreamOrder::before(std::size_t i, Queue &queue) const {
  queue.select(places[i].stream);
  for (const int early : places[i].awaits)
    queue.wait(early);
  if (!places[i].isOnHost)
    return;
  // A host kernel's event is recorded here, so that the host waits for the
  // kernel's dependencies, and again in after() if other instructions wait for
  // the kernel.
  queue.record(static_cast<int>(i));
  queue.await(static_cast<int>(i));
}

void StreamOrder::after(std::size_t i, Queue &queue) const {
  if (places[i].isAwaited)
    queue.record(static_cast<int>(i));
}

void StreamOrder::end(Queue &queue) const { join(joined, queue); }

void StreamOrder::join(const std::vector<int> &streams, Queue &queue) const {
  for (const int stream : streams) {
    queue.select(stream);
    queue.record(endOf(stream));
  }
  queue.select(0);
  for (const int stream : streams)
    queue.wait(endOf(stream));
}

} // namespace mtplan::runtime

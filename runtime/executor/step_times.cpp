//===- step_times.cpp - What each part of a step took ---------------------===//

#include "runtime/executor/step_times.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace mtplan::runtime {

namespace {

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

} // namespace

// A mark takes time, too: a microsecond of a GPU, of which a step has thousands
// of instructions. The shortest of several was disturbed by nothing.
void StepTimes::begin(bool areTimed, std::vector<InstructionRun> *theTrace) {
  on = areTimed;
  trace = theTrace;
  parts.clear();
  if (!on)
    return;
  constexpr int kPairs = 16;
  queue.finish();
  queue.select(0);
  clock->clear();
  for (int i = 0; i <= kPairs; ++i)
    clock->mark();
  queue.finish();
  nothing = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kPairs; ++i)
    nothing = std::min(nothing, clock->between(i, i + 1));
  setZero();
}

void StepTimes::setZero() {
  clock->clear();
  atZero = seconds();
  zero = clock->mark();
}

void StepTimes::turnTo(int before, int to) {
  if (!on || before == to)
    return;
  queue.select(before);
  queue.record(turn);
  queue.select(to);
  queue.wait(turn);
}

void StepTimes::start() {
  if (on)
    from = clock->mark();
}

void StepTimes::stop(double &spent, const InstructionRun *run) {
  if (!on)
    return;
  add(spent, run, clock->mark());
}

void StepTimes::pass(double &spent, const InstructionRun *run) {
  if (!on)
    return;
  start();
  add(spent, run, from);
}

void StepTimes::add(double &spent, const InstructionRun *run, int to) {
  parts.push_back(
      {&spent, run ? *run : InstructionRun{}, run != nullptr, from, to});
  if (parts.size() < kMost)
    return;
  collect();
  setZero();
}

void StepTimes::end() {
  if (on)
    collect();
  on = false;
}

void StepTimes::collect() {
  queue.finish();
  for (Part &part : parts) {
    const double took =
        std::max(0.0, clock->between(part.from, part.to) - nothing);
    *part.spent += took;
    if (!trace || !part.isTraced)
      continue;
    part.run.start = atZero + clock->between(zero, part.from);
    part.run.end = part.run.start + took;
    trace->push_back(part.run);
  }
  parts.clear();
}

} // namespace mtplan::runtime

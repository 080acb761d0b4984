//===- step_times.cpp - Times of the parts of a step ----------------------===//

#include "runtime/executor/step_times.h"

#include <algorithm>
#include <chrono>

namespace mtplan::runtime {

double monotonicSeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

void StepTimes::begin(bool areTimed, std::vector<InstructionRun> *theTrace) {
  on = areTimed;
  trace = theTrace;
  parts.clear();
  if (!on)
    return;
  queue.finish();
  queue.select(0);
  setZero();
}

void StepTimes::setZero() {
  clock->clear();
  atZero = monotonicSeconds();
  zero = clock->mark();
}

void StepTimes::switchStream(int before, int to) {
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

// A mark itself takes about a microsecond on a GPU, and a step has thousands of
// instructions. Most instructions follow each other directly. The median gap
// between the end mark of an instruction and the start mark of the next is
// therefore the time of a mark.
double StepTimes::secondsOfNothing() const {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < parts.size(); ++i)
    gaps.push_back(clock->between(parts[i - 1].to, parts[i].from));
  if (gaps.empty())
    return 0.0;
  const auto middle = gaps.begin() + std::ssize(gaps) / 2;
  std::ranges::nth_element(gaps, middle);
  return *middle;
}

void StepTimes::collect() {
  queue.finish();
  const double nothing = secondsOfNothing();
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

//===- rank_step.cpp - Executes a step of a rank --------------------------===//

#include <chrono>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "base/index.h"
#include "runtime/executor/task.h"

namespace mtplan::runtime {

using base::sized;

namespace {

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

StepNumbers numbersOf(const StepInput &input, bool drops) {
  NormRule norm;
  if (input.rule)
    norm = {true, input.lossScale, input.rule->clip()};
  return {input.seed, input.step, drops, input.update, norm};
}

} // namespace

// Events are numbered over the whole program, even if an evaluation runs only
// some of it.
void RankExecutor::run(const ScheduleEntry &entry, const StepInput &input,
                       const std::vector<bool> *wanted) {
  const auto &tasks = programs[sized(entry.program)];
  const auto &instructions = own.programs[sized(entry.program)].instructions;
  const StreamOrder &order = orders[sized(entry.program)];
  Queue &queue = backend.queue();
  TaskRun run;
  run.firstCopy = own.programs[sized(entry.program)].firstCopy;
  run.input = &input;
  run.microBatch = entry.microBatch;
  for (int i = 0; i < entry.count; ++i) {
    run.copy = entry.first + i * entry.step;
    order.begin(queue);
    int last = 0; // stream
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      stepTimes->turnTo(last, order.streamOf(t));
      last = order.streamOf(t);
      order.before(t, queue);
      if ((!wanted || (*wanted)[t]) &&
          runsFor(run.microBatch, instructions[t], plan.microBatches))
        runTimed(*tasks[t], run, {entry.program, static_cast<std::int32_t>(t)});
      order.after(t, queue);
    }
    if (order.overlaps())
      stepTimes->turnTo(last, 0);
    order.end(queue);
  }
}

// Runs everything up to the gradient norm.
void RankExecutor::runSchedule(const StepInput &input, bool reportsAlone) {
  const auto runAll = [&](const std::vector<ScheduleEntry> &entries) {
    for (const ScheduleEntry &entry : entries)
      run(entry, input,
          reportsAlone ? &reporting[sized(entry.program)] : nullptr);
  };
  runAll(own.schedule);
  for (const StreamOrder &order : orders)
    order.endOverlap(backend.queue());
  runAll(own.reduce);
}

void RankExecutor::runTimed(Task &task, const TaskRun &run,
                            InstructionRun what) {
  what.copy = run.copy;
  what.microBatch = run.microBatch;
  if (task.isIdle(run))
    return stepTimes->pass(task.seconds, &what);
  stepTimes->start();
  task.run(run);
  stepTimes->stop(task.seconds, &what);
}

// The first execution warms up, and may set things up that a recording could
// not hold.
void RankExecutor::queue(Part &part, const StepInput &input,
                         const std::function<void()> &work) {
  Queue &queue = backend.queue();
  const bool records = queue.records() && carrier().isQueued() &&
                       part.mayBeRecorded && !input.isTimed;
  if (++part.times == 1 || !records)
    return work();
  if (!part.recording) {
    const std::map<CollectiveCount, std::int64_t> before = counted;
    carrier().beginRecording();
    part.recording = queue.recorded([&] {
      work();
      part.calls = carrier().endRecording();
    });
    for (auto &[what, times] : counted) {
      part.counts[what] = times - before.at(what);
      times = before.at(what);
    }
  }
  if (part.calls)
    part.calls->repeat();
  part.recording->replay();
  if (part.calls)
    part.calls->repeated();
  for (auto &[what, times] : counted)
    times += part.counts.at(what);
}

void RankExecutor::feed(const StepInput &input, bool drops) {
  carrier().beginStep(input.step);
  for (const auto &tasks : programs)
    for (const std::unique_ptr<Task> &task : tasks)
      task->feed(input);
  *stepNumbers.as<StepNumbers>() = numbersOf(input, drops);
}

std::map<std::string, double> RankExecutor::evaluate(const StepInput &input) {
  const std::map<CollectiveCount, std::int64_t> before = counted;
  feed(input, false);
  queue(evaluation, input, [&] {
    beginStep();
    runSchedule(input, true);
  });
  backend.queue().finish();
  StepOutput output;
  output.reports = results.sums();
  agree(output, {}, 1.0);
  counted = before;
  return output.reports;
}

void RankExecutor::beginStep() {
  results.clear();
  backend.memory().queueUpload(numbers.get(), stepNumbers.get(),
                               sizeof(StepNumbers));
}

void RankExecutor::sumSquares() {
  void *out = squareSums.get();
  clearSquares->run({nullptr, &out});
  squares->run({});
  backend.memory().queueDownload(normOfOwn.get(), squareSums.get(),
                                 sizeof(LongSum));
}

// Does on every device what `agree` and the rule do, so that devices need not
// wait for the hosts.
void RankExecutor::decideThere() {
  constexpr std::int64_t kNumbers = sizeof(LongSum) / sizeof(double);
  everyoneThere->allGather("gradient norm", squareSums.get(),
                           allSquareSums.get(),
                           {ElementType::f64, 1, kNumbers});
  const void *in = allSquareSums.get();
  void *out = numbers.get() + offsetof(StepNumbers, update) +
              offsetof(UpdateNumbers, gradientFactor);
  gradientFactor->run({&in, &out, numbers.as<const StepNumbers>()});
}

// Reduces the sum of squares of all gradients and the reports, in one message.
// All ranks of a stage report the same, so the first one counts. Scales are
// usually powers of two, which leave the bits of reports unchanged.
double RankExecutor::agree(StepOutput &output, const LongSum &norm,
                           double scale) {
  std::vector<double> mine{norm.sum, norm.lost};
  for (const std::string &label : reported) {
    auto found = output.reports.find(label);
    bool speaks = world.rank() == stage().ranks.front();
    mine.push_back(speaks && found != output.reports.end() ? found->second
                                                           : 0.0);
  }
  std::vector<double> all(mine.size() * sized(plan.ranks));
  everyone->allGather(
      "gradient norm", mine.data(), all.data(),
      {ElementType::f64, 1, static_cast<std::int64_t>(mine.size())});
  std::vector<LongSum> sums(1 + reported.size());
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    sums[0].add(LongSum{all[at], all[at + 1]});
    for (std::size_t i = 1; i < sums.size(); ++i)
      sums[i].add(all[at + 1 + i]);
  }
  for (std::size_t i = 0; i < reported.size(); ++i)
    output.reports[reported[i]] = sums[1 + i].value() / scale;
  return sums[0].value();
}

void RankExecutor::applyUpdate(const StepInput &input) {
  if (input.beforeUpdate)
    input.beforeUpdate();
  queue(update, input, [&] {
    for (const ScheduleEntry &entry : own.apply)
      run(entry, input, nullptr);
  });
}

StepOutput RankExecutor::step(const StepInput &input) {
  const double start = seconds();
  feed(input, true);
  const bool isTimed = input.isTimed || !backend.queue().records();
  stepTimes->begin(isTimed, input.trace);
  queue(forward, input, [&] {
    beginStep();
    runSchedule(input, false);
    stepTimes->start();
    sumSquares();
    if (everyoneThere)
      decideThere();
    stepTimes->stop(secondsOfNorm, nullptr);
  });
  // The device continues with its own decision while the host learns of it. The
  // first update warms up, and may wait for devices itself.
  const bool isAhead =
      everyoneThere && update.mayBeRecorded && update.times > 0;
  if (isAhead) {
    backend.queue().select(0);
    backend.queue().record(sumsAreThere);
    applyUpdate(input);
    backend.queue().await(sumsAreThere);
  } else {
    backend.queue().finish();
  }
  StepOutput output;
  output.reports = results.sums();
  const double squareSum =
      agree(output, *normOfOwn.as<LongSum>(), input.lossScale);
  StepInput scaled = input;
  output.gradientNorm = std::sqrt(squareSum) * input.update.gradientFactor;
  if (input.rule) {
    UpdateDecision decision = input.rule->decide(input.step, squareSum);
    if (!decision.stop.empty())
      throw std::runtime_error(decision.stop);
    output.gradientNorm = decision.norm;
    output.skipped = !decision.update;
    scaled.update.gradientFactor = decision.factor;
  }
  if (!output.skipped && !isAhead) {
    *updateNumbers.as<StepNumbers>() = numbersOf(scaled, true);
    backend.queue().select(0);
    backend.memory().queueUpload(numbers.get(), updateNumbers.get(),
                                 sizeof(StepNumbers));
    applyUpdate(scaled);
  }
  stepTimes->end();
  if (isTimed)
    secondsOfSteps += seconds() - start;
  return output;
}

} // namespace mtplan::runtime

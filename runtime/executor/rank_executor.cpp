//===- rank_executor.cpp - One rank runs its part of a plan ---------------===//

#include "runtime/executor/rank_executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <set>
#include <stdexcept>

#include "runtime/backend/element.h"
#include "runtime/executor/index_walk.h"
#include "runtime/executor/task.h"

namespace mtplan::runtime {

namespace {

std::size_t sized(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// By program: the part of a step that it is scheduled in.
std::vector<std::string> phasesOf(const Stage &stage) {
  std::vector<std::string> phases(stage.programs.size(), "forward");
  for (std::size_t p = 0; p < phases.size(); ++p)
    if (stage.programs[p].name.ends_with(".backward"))
      phases[p] = "backward";
  for (const auto *entries : {&stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      phases[sized(entry.program)] = "update";
  return phases;
}

} // namespace

RankExecutor::RankExecutor(const Plan &thePlan, World &theWorld,
                           Backend &theBackend)
    : plan(thePlan), world(theWorld), backend(theBackend),
      where(plan, world.rank()), own(plan.stages[sized(where.stage())]),
      memory(own) {
  if (world.size() != plan.ranks)
    throw std::runtime_error("the plan is for " + std::to_string(plan.ranks) +
                             " ranks, but " + std::to_string(world.size()) +
                             " run");
  for (const Group &group : plan.groups) {
    groups.emplace_back();
    for (const std::vector<int> &ranks : group.communicators)
      if (std::ranges::find(ranks, world.rank()) != ranks.end())
        groups.back() = world.group(group.name, ranks);
  }
  everyone = world.everyone("all");
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *report = std::get_if<Report>(&instruction.what);
            report &&
            std::ranges::find(reported, report->label) == reported.end())
          reported.push_back(report->label);
  std::vector<std::string> phases = phasesOf(own);
  for (std::size_t p = 0; p < own.programs.size(); ++p) {
    programs.emplace_back();
    for (const Instruction &instruction : own.programs[p].instructions)
      programs.back().push_back(prepare(instruction, phases[p]));
  }
  findReporting();
  // By halves of single precision, which is what they all are made of.
  for (int buffer : own.zeroed) {
    const std::int64_t halves = own.buffers[sized(buffer)].size / 2;
    zeros.emplace_back(
        buffer, backend.prepare({"zeros",
                                 "sums of buffer " + std::to_string(buffer),
                                 {},
                                 {},
                                 {{ElementType::bf16, {halves}, {}}}}));
  }
  for (const Parameter &parameter : own.parameters) {
    bool counts = !parameter.countedElsewhere &&
                  std::ranges::all_of(parameter.alike, [&](int axis) {
                    return where.placeOn(axis) == 0;
                  });
    if (!counts)
      continue;
    TensorView sum;
    sum.type = ElementType::f64;
    sum.shape = {2};
    squares.emplace_back(&parameter,
                         backend.prepare({"square_sum",
                                          parameter.label,
                                          {{"counts", std::int64_t{1}}},
                                          {where.viewOf(parameter.gradient)},
                                          {sum}}));
  }
}

RankExecutor::~RankExecutor() = default;

// The weight and its master come of the same numbers, the master unrounded.
// Some rows at a time: a whole piece in double precision may be much.
void RankExecutor::initialise(const InitialValues &initial) {
  constexpr std::int64_t kMany = 1 << 18;
  std::vector<double> values;
  auto fill = [&](const Parameter &parameter, const Tensor &tensor, int copy) {
    TensorView piece = where.viewOf(tensor);
    std::byte *data = memory.at(tensor, copy, 0);
    const std::int64_t rows = piece.shape.empty() ? 1 : piece.shape[0];
    const std::int64_t row = piece.elements() / rows;
    const std::int64_t step = std::max<std::int64_t>(1, kMany / row);
    for (std::int64_t first = 0; first < rows; first += step) {
      TensorView some = piece;
      const std::int64_t count = std::min(step, rows - first);
      if (!some.shape.empty()) {
        some.shape[0] = count;
        some.pieces[0].offset += first;
      }
      values.assign(sized(count * row), 0.0);
      initial(parameter, copy, some, values.data());
      for (std::int64_t i = 0; i < count * row; ++i)
        writeElement(tensor.type, data, first * row + i, values[sized(i)]);
    }
  };
  for (const Parameter &parameter : own.parameters)
    for (int copy = 0; copy < parameter.copies; ++copy) {
      fill(parameter, parameter.value, copy);
      if (parameter.master)
        fill(parameter, *parameter.master, copy);
    }
}

double RankExecutor::flops() const {
  double all = 0.0;
  for (const auto *entries : {&own.schedule, &own.reduce, &own.apply})
    for (const ScheduleEntry &entry : *entries)
      for (const std::unique_ptr<Task> &task : programs[sized(entry.program)])
        all += entry.count * task->flops();
  return all;
}

void RankExecutor::run(const ScheduleEntry &entry, const StepInput &input,
                       StepOutput &output) {
  const Program &program = own.programs[sized(entry.program)];
  const auto &tasks = programs[sized(entry.program)];
  TaskRun run;
  run.input = &input;
  run.output = &output;
  run.microBatch = entry.microBatch;
  double before = seconds();
  for (int i = 0; i < entry.count; ++i) {
    run.copy = entry.first + i * entry.step;
    run.moment = {input.seed, input.step, entry.microBatch,
                  program.firstCopy + run.copy, true};
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      tasks[t]->run(run);
      double after = seconds();
      tasks[t]->seconds += after - before;
      if (input.trace)
        input.trace->push_back({entry.program, static_cast<std::int32_t>(t),
                                run.copy, entry.microBatch, before, after});
      before = after;
    }
  }
}

// What an evaluation needs of the programs: all of those that go forward, and
// of those that reduce what reports are made of.
void RankExecutor::findReporting() {
  reporting.resize(programs.size());
  const std::vector<std::string> phases = phasesOf(own);
  for (std::size_t p = 0; p < programs.size(); ++p)
    if (phases[p] == "forward")
      for (const std::unique_ptr<Task> &task : programs[p])
        reporting[p].push_back(task.get());
  std::set<int> wanted; // buffers
  std::set<int> seen;
  for (std::size_t e = own.reduce.size(); e-- > 0;) {
    const int p = own.reduce[e].program;
    if (!seen.insert(p).second)
      continue;
    const std::vector<Instruction> &all = own.programs[sized(p)].instructions;
    std::vector<Task *> &tasks = reporting[sized(p)];
    for (std::size_t i = all.size(); i-- > 0;) {
      if (!std::holds_alternative<Report>(all[i].what) &&
          std::ranges::none_of(all[i].outputs, [&](const Tensor &tensor) {
            return wanted.contains(tensor.buffer);
          }))
        continue;
      for (const Tensor &tensor : all[i].inputs)
        wanted.insert(tensor.buffer);
      tasks.insert(tasks.begin(), programs[sized(p)][i].get());
    }
  }
}

void RankExecutor::runSome(const ScheduleEntry &entry,
                           const std::vector<Task *> &tasks,
                           const StepInput &input, StepOutput &output) {
  TaskRun run;
  run.input = &input;
  run.output = &output;
  run.microBatch = entry.microBatch;
  for (int i = 0; i < entry.count; ++i) {
    run.copy = entry.first + i * entry.step;
    run.moment = {input.seed, input.step, entry.microBatch,
                  own.programs[sized(entry.program)].firstCopy + run.copy,
                  false};
    for (Task *task : tasks)
      task->run(run);
  }
}

std::map<std::string, double> RankExecutor::evaluate(const StepInput &input) {
  const std::map<CollectiveCount, std::int64_t> before = counted;
  StepOutput output;
  clearSums();
  for (const auto *entries : {&own.schedule, &own.reduce})
    for (const ScheduleEntry &entry : *entries)
      runSome(entry, reporting[sized(entry.program)], input, output);
  agree(output, {}, 1.0);
  for (auto &[what, times] : counted)
    times = before.at(what);
  return output.reports;
}

TimeSpent RankExecutor::timeSpent() const {
  TimeSpent spent;
  for (const auto &tasks : programs)
    for (const std::unique_ptr<Task> &task : tasks)
      spent.*(task->account()) += task->seconds;
  spent.kernels += secondsOfOwnKernels;
  spent.steps = secondsOfSteps;
  return spent;
}

std::vector<InstructionTime> RankExecutor::instructionTimes() const {
  std::vector<InstructionTime> times;
  for (std::size_t p = 0; p < programs.size(); ++p)
    for (std::size_t i = 0; i < programs[p].size(); ++i)
      times.push_back(
          {&own.programs[p].instructions[i], programs[p][i]->seconds});
  return times;
}

void RankExecutor::clearSums() {
  for (auto &[buffer, kernel] : zeros)
    for (int slot = 0; slot < own.buffers[sized(buffer)].slots; ++slot)
      for (int entry = 0; entry < own.buffers[sized(buffer)].entries; ++entry) {
        void *out = memory.at(buffer, entry, slot);
        kernel->run({nullptr, &out, {}, nullptr});
      }
}

LongSum RankExecutor::squaresOfOwn() {
  const double start = seconds();
  std::array<double, 2> sum{};
  for (auto &[parameter, kernel] : squares)
    for (int copy = 0; copy < parameter->copies; ++copy) {
      const void *in = memory.at(parameter->gradient, copy, 0);
      void *out = sum.data();
      kernel->run({&in, &out, {}, nullptr});
    }
  secondsOfOwnKernels += seconds() - start;
  return {sum[0], sum[1]};
}

// The sum of squares of all gradients, and the reports, in one message. All
// ranks of a stage report the same: the first speaks for it. Scales are powers
// of two, as a rule: then reports are as without.
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

StepOutput RankExecutor::step(const StepInput &input) {
  const double start = seconds();
  StepOutput output;
  clearSums();
  secondsOfOwnKernels += seconds() - start;
  for (const ScheduleEntry &entry : own.schedule)
    run(entry, input, output);
  for (const ScheduleEntry &entry : own.reduce)
    run(entry, input, output);
  const double squareSum = agree(output, squaresOfOwn(), input.lossScale);
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
  if (!output.skipped) {
    if (input.beforeUpdate)
      input.beforeUpdate();
    for (const ScheduleEntry &entry : own.apply)
      run(entry, scaled, output);
  }
  secondsOfSteps += seconds() - start;
  return output;
}

} // namespace mtplan::runtime

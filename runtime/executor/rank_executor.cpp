//===- rank_executor.cpp - Executes one rank's part of a plan -------------===//

#include "runtime/executor/rank_executor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <stdexcept>

#include "base/index.h"
#include "runtime/backend/kernel.h"
#include "runtime/executor/arena_memory.h"
#include "runtime/executor/step_data.h"
#include "runtime/training/piece_filler.h"

namespace mtplan::runtime {

using base::sized;

namespace {

std::size_t bytesOf(const TensorView &view) {
  return sized(view.elements() * runtime::bytesOf(view.type));
}

bool isSamePiece(const TensorView &one, const TensorView &other) {
  return one.shape == other.shape &&
         std::ranges::equal(
             one.pieces, other.pieces, [](const Span &a, const Span &b) {
               return a.offset == b.offset && a.global == b.global;
             });
}

std::set<int> seenByAny(const std::vector<std::set<int>> &arenas) {
  std::set<int> all;
  for (const std::set<int> &its : arenas)
    all.insert(its.begin(), its.end());
  return all;
}

std::size_t reportsOf(const Stage &stage) {
  std::int64_t all = 0;
  for (const auto *entries : {&stage.schedule, &stage.reduce})
    for (const ScheduleEntry &entry : *entries)
      all += entry.count *
             std::ranges::count_if(
                 stage.programs[sized(entry.program)].instructions,
                 [](const Instruction &instruction) {
                   return std::holds_alternative<Report>(instruction.what);
                 });
  return sized(all);
}

StepNumbers numbersOf(const StepInput &input, bool drops) {
  NormRule norm;
  if (input.rule)
    norm = {true, input.lossScale, input.rule->clip()};
  return {input.seed, input.step, drops, input.update, norm};
}

} // namespace

RankExecutor::RankExecutor(const Plan &thePlan, World &theWorld,
                           Backend &theBackend)
    : plan(thePlan), world(theWorld), backend(theBackend),
      where(plan, world.rank()), own(plan.stages[sized(where.stage())]),
      memory(own, backend.memory(), seenByAny(collectiveArenas(plan, own))),
      numbers(backend.memory(), sizeof(StepNumbers)),
      stepNumbers(backend.memory().staging(), sizeof(StepNumbers)),
      updateNumbers(backend.memory().staging(), sizeof(StepNumbers)),
      squareSums(backend.memory(), sizeof(LongSum)),
      normOfOwn(backend.memory().staging(), sizeof(LongSum)),
      allSquareSums(backend.memory(), sized(plan.ranks) * sizeof(LongSum)),
      results(backend.memory(), reportsOf(own)), carries(nullptr) {
  if (world.size() != plan.ranks)
    throw std::runtime_error("the plan is for " + std::to_string(plan.ranks) +
                             " ranks, but " + std::to_string(world.size()) +
                             " run");
  carries = backend.carrier(world);
  const auto streams = static_cast<int>(plan.streams.size());
  sumsAreThere = StreamOrder::eventsOf(own, streams);
  const int turn = sumsAreThere + 1;
  backend.queue().open(streams, turn + 1);
  stepTimes = std::make_unique<StepTimes>(backend.queue(), turn);
  for (const Group &group : plan.groups) {
    groups.emplace_back();
    for (const std::vector<int> &ranks : group.communicators)
      if (std::ranges::find(ranks, world.rank()) != ranks.end())
        groups.back() = carrier().group(group.name, ranks);
  }
  registerArenas();
  allRanks = world.allRanks("all");
  if (carries)
    allDeviceRanks = carries->allRanks("norm");
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *report = std::get_if<Report>(&instruction.what);
            report &&
            std::ranges::find(reported, report->label) == reported.end())
          reported.push_back(report->label);
  programs = std::make_unique<RankPrograms>(TaskContext{
      plan, own, where, memory, backend, carrier(), groups, results, counted,
      numbers.as<const StepNumbers>(), updateNumbers.as<const StepNumbers>()});
  update.mayBeRecorded =
      std::ranges::none_of(own.apply, [&](const ScheduleEntry &entry) {
        return programs->hasHost(entry.program);
      });
  prepareOwnKernels();
}

void RankExecutor::registerArenas() {
  const std::vector<std::set<int>> arenas = collectiveArenas(plan, own);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (int arena : arenas[g])
      groups[g]->registerMemory(memory.startOf(arena),
                                own.arenas[sized(arena)].size);
}

void RankExecutor::prepareOwnKernels() {
  const TensorView sum{ElementType::f64, {2}, {}};
  clearSquares =
      backend.prepare({"zeros", "norm of the gradients", {}, {}, {sum}});
  std::vector<FixedRun> squared;
  for (const Parameter &parameter : own.parameters) {
    bool counts = !parameter.countedElsewhere &&
                  std::ranges::all_of(parameter.alike, [&](int axis) {
                    return where.coordinateOn(axis) == 0;
                  });
    if (!counts)
      continue;
    const KernelSpec spec{"square_sum",
                          parameter.label,
                          {{"counts", std::int64_t{1}}},
                          {where.viewOf(parameter.gradient)},
                          {sum}};
    for (int copy = 0; copy < parameter.copies; ++copy)
      squared.push_back(
          {spec, {memory.at(parameter.gradient, copy, 0)}, {squareSums.get()}});
  }
  squares = prepareAll(backend, squared);
  if (allDeviceRanks)
    gradientFactor = backend.prepare({"gradient_factor",
                                      "norm of the gradients",
                                      {},
                                      {{ElementType::f64, {plan.ranks, 2}, {}}},
                                      {sum}});
}

RankExecutor::~RankExecutor() = default;

// Gives a weight and its master the same draws, each rounded to its own type.
// Draws are made once if both have the same shard.
void RankExecutor::initialise(const InitialValues &initial, int threads) {
  PieceFiller filler(backend.memory().staging(), threads);
  for (const Parameter &parameter : own.parameters)
    for (int copy = 0; copy < parameter.copies; ++copy) {
      const auto placed = [&](const Tensor &tensor) {
        return Filled{tensor.type, memory.at(tensor, copy, 0),
                      &memory.memoryOf(tensor)};
      };
      const DrawPart draw = [&](const TensorView &part, double *values) {
        initial(parameter, copy, part, values);
      };
      const TensorView piece = where.viewOf(parameter.value);
      std::vector<Filled> both{placed(parameter.value)};
      if (parameter.master) {
        const TensorView its = where.viewOf(*parameter.master);
        if (isSamePiece(its, piece))
          both.push_back(placed(*parameter.master));
        else
          filler.fill(its, {placed(*parameter.master)}, draw);
      }
      filler.fill(piece, both, draw);
    }
}

void RankExecutor::read(
    const Tensor &tensor, int copy,
    const std::function<void(const std::byte *)> &see) const {
  const std::byte *data = memory.at(tensor, copy, 0);
  Memory &near = memory.memoryOf(tensor);
  if (near.isHosts())
    return see(data);
  std::vector<std::byte> fetched(bytesOf(where.viewOf(tensor)));
  near.fetch(fetched.data(), data, fetched.size());
  see(fetched.data());
}

void RankExecutor::modify(const Tensor &tensor, int copy,
                          const std::function<void(std::byte *)> &fill) {
  std::byte *data = memory.at(tensor, copy, 0);
  Memory &near = memory.memoryOf(tensor);
  if (near.isHosts())
    return fill(data);
  std::vector<std::byte> filled(bytesOf(where.viewOf(tensor)));
  near.download(filled.data(), data, filled.size());
  fill(filled.data());
  near.upload(data, filled.data(), filled.size());
}

void RankExecutor::settle() { backend.queue().finish(); }

TimeSpent RankExecutor::timeSpent() const {
  TimeSpent spent;
  programs->addTo(spent);
  spent.kernels += secondsOfNorm;
  spent.steps = secondsOfSteps;
  return spent;
}

std::vector<InstructionTime> RankExecutor::instructionTimes() const {
  std::vector<InstructionTime> all = programs->instructionTimes();
  all.push_back({nullptr, secondsOfNorm});
  return all;
}

void RankExecutor::runSchedule(const StepInput &input, bool reportsAlone) {
  const auto runAll = [&](const std::vector<ScheduleEntry> &entries) {
    for (const ScheduleEntry &entry : entries)
      programs->run(entry, input, reportsAlone, *stepTimes);
  };
  runAll(own.schedule);
  programs->endOverlap();
  runAll(own.reduce);
}

// The first execution of a part is not recorded, because it warms up and may
// initialise state that a recording cannot contain.
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
  programs->feed(input);
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

// Computes the gradient factor on every device, like agree() and the update
// rule on the host. Devices therefore need not wait for the host.
void RankExecutor::decideThere() {
  constexpr std::int64_t kNumbers = sizeof(LongSum) / sizeof(double);
  allDeviceRanks->allGather("gradient norm", squareSums.get(),
                            allSquareSums.get(),
                            {ElementType::f64, 1, kNumbers});
  const void *in = allSquareSums.get();
  void *out = numbers.get() + offsetof(StepNumbers, update) +
              offsetof(UpdateNumbers, gradientFactor);
  gradientFactor->run({&in, &out, numbers.as<const StepNumbers>()});
}

// All-gathers the sums of squared gradients and the reports in one call, and
// returns the global sum of squares. All ranks of a stage have the same
// reports, so only the stage's first rank contributes reports. Dividing the
// reports by the loss scale is exact if the scale is a power of two, which is
// usual.
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
  allRanks->allGather(
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
      programs->run(entry, input, false, *stepTimes);
  });
}

StepOutput RankExecutor::step(const StepInput &input) {
  const double start = monotonicSeconds();
  feed(input, true);
  const bool isTimed = input.isTimed || !backend.queue().records();
  stepTimes->begin(isTimed, input.trace);
  queue(forward, input, [&] {
    beginStep();
    runSchedule(input, false);
    stepTimes->start();
    sumSquares();
    if (allDeviceRanks)
      decideThere();
    stepTimes->stop(secondsOfNorm, nullptr);
  });
  // The device updates by its own decision while the host computes the same
  // decision. The first update waits for the host's decision instead, because
  // that update warms up and may wait for the device.
  const bool isAhead =
      allDeviceRanks && update.mayBeRecorded && update.times > 0;
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
    secondsOfSteps += monotonicSeconds() - start;
  return output;
}

} // namespace mtplan::runtime

//===- rank_executor.cpp - Executes one rank's part of a plan -------------===//

#include "runtime/executor/rank_executor.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "base/index.h"
#include "runtime/backend/fixed_runs.h"
#include "runtime/executor/collective_arenas.h"
#include "runtime/executor/index_walk.h"
#include "runtime/executor/task.h"
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

// Returns, by program, the part of a step that it is scheduled in.
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
  everyone = world.allRanks("all");
  if (carries)
    everyoneThere = carries->allRanks("norm");
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
    orders.emplace_back(own, own.programs[p]);
    for (const Instruction &instruction : own.programs[p].instructions) {
      backend.queue().select(instruction.stream);
      programs.back().push_back(
          prepare(instruction, instruction.overlapped ? "update" : phases[p]));
    }
  }
  joinProducts();
  joinUpdates();
  findReporting();
  joinCollectives();
  backend.queue().select(0);
  update.mayBeRecorded =
      std::ranges::none_of(own.apply, [&](const ScheduleEntry &entry) {
        return orders[sized(entry.program)].hasHost();
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

// Prepares the kernels of the gradient norm.
void RankExecutor::prepareOwnKernels() {
  const TensorView sum{ElementType::f64, {2}, {}};
  clearSquares =
      backend.prepare({"zeros", "norm of the gradients", {}, {}, {sum}});
  std::vector<FixedRun> squared;
  for (const Parameter &parameter : own.parameters) {
    bool counts = !parameter.countedElsewhere &&
                  std::ranges::all_of(parameter.alike, [&](int axis) {
                    return where.placeOn(axis) == 0;
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
  if (everyoneThere)
    gradientFactor = backend.prepare({"gradient_factor",
                                      "norm of the gradients",
                                      {},
                                      {{ElementType::f64, {plan.ranks, 2}, {}}},
                                      {sum}});
}

RankExecutor::~RankExecutor() = default;

// The weight and its master are the same draws, the master unrounded. They are
// drawn once if both are the same shard.
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

void RankExecutor::look(
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

void RankExecutor::change(const Tensor &tensor, int copy,
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

double RankExecutor::flops() const {
  double all = 0.0;
  for (const auto *entries : {&own.schedule, &own.reduce, &own.apply})
    for (const ScheduleEntry &entry : *entries)
      for (const std::unique_ptr<Task> &task : programs[sized(entry.program)])
        all += entry.count * task->flops();
  return all;
}

// Finds the instructions that an evaluation needs: all of the forward pass, and
// those that reduce the inputs of reports.
void RankExecutor::findReporting() {
  const std::vector<std::string> phases = phasesOf(own);
  for (std::size_t p = 0; p < programs.size(); ++p)
    reporting.emplace_back(programs[p].size(), phases[p] == "forward");
  std::set<int> wanted; // buffers
  std::set<int> seen;
  for (std::size_t e = own.reduce.size(); e-- > 0;) {
    const int p = own.reduce[e].program;
    if (!seen.insert(p).second)
      continue;
    const std::vector<Instruction> &all = own.programs[sized(p)].instructions;
    for (std::size_t i = all.size(); i-- > 0;) {
      if (!std::holds_alternative<Report>(all[i].what) &&
          std::ranges::none_of(all[i].outputs, [&](const Tensor &tensor) {
            return wanted.contains(tensor.buffer);
          }))
        continue;
      for (const Tensor &tensor : all[i].inputs)
        wanted.insert(tensor.buffer);
      reporting[sized(p)][i] = true;
    }
  }
}

TimeSpent RankExecutor::timeSpent() const {
  TimeSpent spent;
  for (const auto &tasks : programs)
    for (const std::unique_ptr<Task> &task : tasks)
      spent.*(task->account()) += task->seconds;
  spent.kernels += secondsOfNorm;
  spent.steps = secondsOfSteps;
  return spent;
}

std::vector<InstructionTime> RankExecutor::instructionTimes() const {
  std::vector<InstructionTime> all;
  for (std::size_t p = 0; p < programs.size(); ++p)
    for (std::size_t i = 0; i < programs[p].size(); ++i)
      all.push_back(
          {&own.programs[p].instructions[i], programs[p][i]->seconds});
  all.push_back({nullptr, secondsOfNorm});
  return all;
}

} // namespace mtplan::runtime

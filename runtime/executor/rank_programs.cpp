//===- rank_programs.cpp - The programs of a rank, ready to run -----------===//

#include "runtime/executor/rank_programs.h"

#include <algorithm>
#include <set>

#include "base/index.h"
#include "runtime/executor/batched_tasks.h"

namespace mtplan::runtime {

using base::sized;

namespace {

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

void runTimed(Task &task, const TaskRun &run, InstructionRun what,
              StepTimes &times) {
  what.copy = run.copy;
  what.microBatch = run.microBatch;
  if (task.isIdle(run))
    return times.pass(task.seconds, &what);
  times.start();
  task.run(run);
  times.stop(task.seconds, &what);
}

} // namespace

RankPrograms::RankPrograms(const TaskContext &context) : all(context) {
  const std::vector<std::string> phases = phasesOf(all.stage);
  for (std::size_t p = 0; p < all.stage.programs.size(); ++p) {
    const Program &program = all.stage.programs[p];
    programs.emplace_back();
    orders.emplace_back(all.stage, program);
    for (const Instruction &instruction : program.instructions) {
      all.backend.queue().select(instruction.stream);
      programs.back().push_back(prepareTask(
          all, instruction, instruction.overlapped ? "update" : phases[p]));
    }
  }
  findReporting();
  batchTasks();
  all.backend.queue().select(0);
}

// An evaluation needs the forward pass, and the instructions of `reduce` that
// compute the inputs of reports.
void RankPrograms::findReporting() {
  const std::vector<std::string> phases = phasesOf(all.stage);
  for (std::size_t p = 0; p < programs.size(); ++p)
    reporting.emplace_back(programs[p].size(), phases[p] == "forward");
  std::set<int> wanted; // buffers that reports depend on
  std::set<int> seen;
  for (std::size_t e = all.stage.reduce.size(); e-- > 0;) {
    const int p = all.stage.reduce[e].program;
    if (!seen.insert(p).second)
      continue;
    const std::vector<Instruction> &instructions =
        all.stage.programs[sized(p)].instructions;
    for (std::size_t i = instructions.size(); i-- > 0;) {
      if (!std::holds_alternative<Report>(instructions[i].what) &&
          std::ranges::none_of(instructions[i].outputs,
                               [&](const Tensor &tensor) {
                                 return wanted.contains(tensor.buffer);
                               }))
        continue;
      for (const Tensor &tensor : instructions[i].inputs)
        wanted.insert(tensor.buffer);
      reporting[sized(p)][i] = true;
    }
  }
}

void RankPrograms::batchTasks() {
  const std::vector<ScheduleEntry> &apply = all.stage.apply;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const Program &program = all.stage.programs[p];
    const auto applied =
        std::ranges::find(apply, static_cast<int>(p), &ScheduleEntry::program);
    for (const Batch &batch : program.batches)
      if (std::holds_alternative<Collective>(
              program.instructions[sized(batch.instructions.front())].what))
        batchCollectives(p, batch);
      else if (applied != apply.end())
        batchUpdates(all, *applied, batch, programs[p]);
      else
        batchProducts(all, static_cast<int>(p), batch, programs[p]);
  }
}

// Groups the collectives of a batch into launches. An evaluation issues only
// some of the collectives. Therefore the batch is split, so that an evaluation
// issues either all collectives of a launch or none.
void RankPrograms::batchCollectives(std::size_t program, const Batch &batch) {
  const Program &what = all.stage.programs[program];
  const Instruction &first =
      what.instructions[sized(batch.instructions.front())];
  Communicator &group =
      *all.groups[sized(std::get<Collective>(first.what).group)];
  if (!group.joins())
    return;
  const std::vector<bool> &wanted = reporting[program];
  std::vector<int> members;
  const auto close = [&] {
    if (members.size() > 1)
      groupCollectives(all.memory, what, members, group, programs[program]);
    members.clear();
  };
  for (const int i : batch.instructions) {
    if (!members.empty() && wanted[sized(i)] != wanted[sized(members.front())])
      close();
    members.push_back(i);
  }
  close();
}

void RankPrograms::feed(const StepInput &input) {
  for (const Tasks &tasks : programs)
    for (const std::unique_ptr<Task> &task : tasks)
      task->feed(input);
}

// Waits and events are queued for all instructions, even if an evaluation runs
// only some of them.
void RankPrograms::run(const ScheduleEntry &entry, const StepInput &input,
                       bool reportsAlone, StepTimes &times) {
  const std::size_t p = sized(entry.program);
  const Tasks &tasks = programs[p];
  const Program &program = all.stage.programs[p];
  const StreamOrder &order = orders[p];
  Queue &queue = all.backend.queue();
  TaskRun run;
  run.firstCopy = program.firstCopy;
  run.input = &input;
  run.microBatch = entry.microBatch;
  for (int i = 0; i < entry.count; ++i) {
    run.copy = entry.first + i * entry.step;
    order.begin(queue);
    int last = 0; // the selected stream
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      times.switchStream(last, order.streamOf(t));
      last = order.streamOf(t);
      order.before(t, queue);
      if ((!reportsAlone || reporting[p][t]) &&
          runsFor(run.microBatch, program.instructions[t],
                  all.plan.microBatches))
        runTimed(*tasks[t], run, {entry.program, static_cast<std::int32_t>(t)},
                 times);
      order.after(t, queue);
    }
    if (order.overlaps())
      times.switchStream(last, 0);
    order.end(queue);
  }
}

void RankPrograms::endOverlap() {
  for (const StreamOrder &order : orders)
    order.endOverlap(all.backend.queue());
}

bool RankPrograms::hasHost(int program) const {
  return orders[sized(program)].hasHost();
}

double RankPrograms::flops() const {
  const Stage &stage = all.stage;
  double sum = 0.0;
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      for (const std::unique_ptr<Task> &task : programs[sized(entry.program)])
        sum += entry.count * task->flops();
  return sum;
}

void RankPrograms::addTo(TimeSpent &spent) const {
  for (const Tasks &tasks : programs)
    for (const std::unique_ptr<Task> &task : tasks)
      spent.*(task->account()) += task->seconds;
}

std::vector<InstructionTime> RankPrograms::instructionTimes() const {
  std::vector<InstructionTime> times;
  for (std::size_t p = 0; p < programs.size(); ++p)
    for (std::size_t i = 0; i < programs[p].size(); ++i)
      times.push_back(
          {&all.stage.programs[p].instructions[i], programs[p][i]->seconds});
  return times;
}

} // namespace mtplan::runtime

//===- pass_schedule.cpp - A stage's schedule as passes -------------------===//

#include "codegen/source/pass_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

bool isBackward(const Program &program) {
  return program.name.ends_with(".backward");
}

namespace {

/// Orders the entries of a pass: receive, compute, send.
enum class Phase { receive, compute, send };

Phase phaseOf(const Program &program) {
  const auto *first =
      program.instructions.empty()
          ? nullptr
          : std::get_if<Transfer>(&program.instructions.front().what);
  return !first ? Phase::compute : first->sends ? Phase::send : Phase::receive;
}

bool areEqual(const std::vector<ScheduleEntry> &one,
              const std::vector<ScheduleEntry> &other) {
  return std::ranges::equal(
      one, other, [](const ScheduleEntry &a, const ScheduleEntry &b) {
        return a.program == b.program && a.first == b.first &&
               a.step == b.step && a.count == b.count;
      });
}

std::set<std::string> segmentsOf(const Stage &stage, const Pass &pass) {
  std::set<std::string> names;
  for (const ScheduleEntry &entry : pass.entries) {
    const Program &program = stage.programs[indexed(entry.program)];
    if (phaseOf(program) == Phase::compute)
      names.insert(program.name.substr(0, program.name.find('.')));
  }
  return names;
}

/// Numbers the virtual stages, one per forward pass. A backward pass belongs to
/// the virtual stage with which it shares most segments.
void findParts(const Stage &stage, PassSchedule &schedule) {
  std::vector<std::set<std::string>> parts;
  for (Pass &pass : schedule.passes)
    if (!pass.isBackward) {
      pass.part = parts.size();
      parts.push_back(segmentsOf(stage, pass));
    }
  schedule.parts = std::max<std::size_t>(parts.size(), 1);
  for (Pass &pass : schedule.passes) {
    if (!pass.isBackward)
      continue;
    std::size_t most = 0;
    const std::set<std::string> own = segmentsOf(stage, pass);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const auto common = static_cast<std::size_t>(
          std::ranges::count_if(own, [&](const std::string &name) {
            return parts[part].contains(name);
          }));
      if (common > most) {
        most = common;
        pass.part = part;
      }
    }
  }
}

int groupSizeOf(const PassSchedule &schedule) {
  const std::size_t parts = schedule.parts;
  if (parts == 1 || schedule.passes.size() != 2 * parts)
    return 0;
  std::size_t group = 0;
  while (group < schedule.runs.size() &&
         schedule.runs[group].pass == schedule.runs.front().pass)
    ++group;
  std::size_t forward = 0, backward = 0;
  for (const PassRun &run : schedule.runs) {
    const Pass &pass = schedule.passes[run.pass];
    const std::size_t i = pass.isBackward ? backward++ : forward++;
    const std::size_t turn = i / group % parts;
    const std::size_t microBatch = i / (group * parts) * group + i % group;
    if (pass.part != (pass.isBackward ? parts - 1 - turn : turn) ||
        indexed(run.microBatch) != microBatch)
      return 0;
  }
  return static_cast<int>(group);
}

constexpr std::string_view kRecompute = ".recompute";

/// Returns how many instructions at a program's beginning recompute
/// activations.
std::size_t recomputedOf(const Program &program) {
  std::size_t count = 0;
  while (count < program.instructions.size() &&
         program.instructions[count].label.ends_with(".again"))
    ++count;
  return count;
}

/// Returns whether the program can be divided before instruction `at`. No
/// instruction from `at` on may wait for, or share a batch with, an instruction
/// before `at`. No batch may cover all layers.
bool canSplit(const Program &program, std::size_t at) {
  if (at == 0 || at == program.instructions.size())
    return false;
  for (std::size_t i = at; i < program.instructions.size(); ++i)
    for (const int early : program.instructions[i].waits)
      if (indexed(early) < at)
        return false;
  return std::ranges::all_of(program.batches, [&](const Batch &batch) {
    return !batch.ofAllCopies && (indexed(batch.instructions.front()) >= at ||
                                  indexed(batch.instructions.back()) < at);
  });
}

Program splitOff(Program &program, std::size_t at) {
  Program rest;
  rest.name = program.name;
  rest.firstCopy = program.firstCopy;
  const auto shift = static_cast<int>(at);
  rest.instructions.assign(program.instructions.begin() + shift,
                           program.instructions.end());
  program.instructions.resize(at);
  for (Instruction &one : rest.instructions)
    for (int &early : one.waits)
      early -= shift;
  for (Batch batch : std::exchange(program.batches, {})) {
    const bool isOfRest = indexed(batch.instructions.front()) >= at;
    if (isOfRest)
      for (int &instruction : batch.instructions)
        instruction -= shift;
    (isOfRest ? rest : program).batches.push_back(std::move(batch));
  }
  program.name.insert(program.name.find('.'), kRecompute);
  return rest;
}

} // namespace

void splitRecomputation(Plan &plan) {
  for (Stage &stage : plan.stages) {
    std::map<int, int> rests; // by program
    for (std::size_t p = 0, count = stage.programs.size(); p < count; ++p) {
      const std::size_t at = recomputedOf(stage.programs[p]);
      if (!isBackward(stage.programs[p]) || !canSplit(stage.programs[p], at))
        continue;
      rests[static_cast<int>(p)] = static_cast<int>(stage.programs.size());
      Program rest = splitOff(stage.programs[p], at);
      stage.programs.push_back(std::move(rest));
    }
    std::vector<ScheduleEntry> entries;
    for (const ScheduleEntry &entry : stage.schedule) {
      entries.push_back(entry);
      if (const auto rest = rests.find(entry.program); rest != rests.end()) {
        entries.push_back(entry);
        entries.back().program = rest->second;
      }
    }
    stage.schedule = std::move(entries);
  }
}

bool isRecomputation(const Program &program) {
  return program.name.find(kRecompute) != std::string::npos;
}

PassSchedule passesOf(const Stage &stage) {
  PassSchedule schedule;
  for (std::size_t at = 0; at < stage.schedule.size();) {
    const ScheduleEntry &first = stage.schedule[at];
    Pass pass;
    pass.isBackward = isBackward(stage.programs[indexed(first.program)]);
    Phase phase = Phase::receive;
    for (; at < stage.schedule.size(); ++at) {
      ScheduleEntry entry = stage.schedule[at];
      const Program &program = stage.programs[indexed(entry.program)];
      if (entry.microBatch != first.microBatch ||
          isBackward(program) != pass.isBackward || phaseOf(program) < phase)
        break;
      phase = phaseOf(program);
      entry.microBatch = 0;
      pass.entries.push_back(entry);
    }
    const auto found =
        std::ranges::find_if(schedule.passes, [&](const Pass &other) {
          return areEqual(other.entries, pass.entries);
        });
    schedule.runs.push_back(
        {static_cast<std::size_t>(found - schedule.passes.begin()),
         first.microBatch});
    if (found == schedule.passes.end())
      schedule.passes.push_back(std::move(pass));
  }
  findParts(stage, schedule);
  schedule.groupSize = groupSizeOf(schedule);
  return schedule;
}

int runsBeforeBackward(const PassSchedule &schedule) {
  const auto first =
      std::ranges::find_if(schedule.runs, [&](const PassRun &run) {
        return schedule.passes[run.pass].isBackward;
      });
  return static_cast<int>(first - schedule.runs.begin());
}

} // namespace mtplan::codegen

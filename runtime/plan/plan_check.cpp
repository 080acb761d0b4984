//===- plan_check.cpp - Checks that an executable plan is valid -----------===//

#include "runtime/plan/plan_check.h"

#include <algorithm>
#include <map>

#include "runtime/plan/plan_checks.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {
namespace {

void checkMesh(const Plan &plan, Faults &faults) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < plan.mesh.size(); ++i) {
    // The product fits 64 bits, because its factors are at most 2^20 + 1 and
    // 2^20.
    product = std::min(product * plan.mesh[i].size, kMostRanks + 1);
    for (std::size_t j = 0; j < i; ++j)
      if (plan.mesh[j].name == plan.mesh[i].name)
        faults.add(at("mesh", i, "name"), "\"" + plan.mesh[i].name +
                                              "\" is the name of axis " +
                                              std::to_string(j) + " as well");
  }
  if (product != plan.ranks)
    faults.add("/ranks", "is " + std::to_string(plan.ranks) +
                             ", but the axes of the mesh have " +
                             std::to_string(product) + " places");
}

void checkGroup(const Plan &plan, std::size_t g, Faults &faults) {
  const Group &group = plan.groups[g];
  for (std::size_t other = 0; other < g; ++other)
    if (plan.groups[other].name == group.name)
      faults.add(at("groups", g, "name"),
                 "\"" + group.name + "\" is the name of group " +
                     std::to_string(other) + " as well");
  if (group.communicators.empty())
    faults.add(at("groups", g, "communicators"), "has none");
  std::vector<int> owner(indexed(plan.ranks), -1);
  for (std::size_t c = 0; c < group.communicators.size(); ++c) {
    const std::vector<int> &ranks = group.communicators[c];
    if (ranks.empty() || ranks.size() != group.communicators[0].size())
      faults.add(at("groups", g, "communicators", c),
                 "has " + std::to_string(ranks.size()) +
                     " ranks; all of a group have as many as the first, " +
                     std::to_string(group.communicators[0].size()) +
                     ", and at least one");
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      int &place = owner[indexed(ranks[i])];
      if (place >= 0)
        faults.add(at("groups", g, "communicators", c, i),
                   "rank " + std::to_string(ranks[i]) + " is in communicator " +
                       std::to_string(place) + " as well");
      place = static_cast<int>(c);
    }
  }
}

void checkStageRanks(const Plan &plan, Faults &faults) {
  std::vector<int> owner(indexed(plan.ranks), -1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<int> &ranks = plan.stages[s].ranks;
    if (ranks.empty())
      faults.add(at("stages", s, "ranks"), "has none");
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (i > 0 && ranks[i] <= ranks[i - 1])
        faults.add(at("stages", s, "ranks", i),
                   "rank " + std::to_string(ranks[i]) + " comes after rank " +
                       std::to_string(ranks[i - 1]) + "; list them ascending");
      int &place = owner[indexed(ranks[i])];
      if (place >= 0 && place != static_cast<int>(s))
        faults.add(at("stages", s, "ranks", i),
                   "rank " + std::to_string(ranks[i]) + " is in stage " +
                       std::to_string(place) + " as well");
      place = static_cast<int>(s);
    }
  }
  auto lost = std::ranges::find(owner, -1);
  if (lost != owner.end())
    faults.add("/stages", "rank " + std::to_string(lost - owner.begin()) +
                              " is in none of them (ranks in none: " +
                              std::to_string(std::ranges::count(owner, -1)) +
                              ")");
}

void checkRanks(const Plan &plan, Faults &faults) {
  checkMesh(plan, faults);
  for (std::size_t g = 0; g < plan.groups.size(); ++g)
    checkGroup(plan, g, faults);
  checkStageRanks(plan, faults);
  if (plan.globalBatch % plan.microBatches != 0)
    faults.add("/global_batch", std::to_string(plan.globalBatch) +
                                    " samples cannot be divided evenly among " +
                                    std::to_string(plan.microBatches) +
                                    " micro-batches");
}

/// Checks that every program runs, and that the entries of `reduce` and `apply`
/// have micro-batch 0. `schedule` must run a program for the same layers in
/// every micro-batch.
void checkSchedule(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage &stage = plan.stages[s];
    // Lists the layers that `schedule` runs, by program and micro-batch.
    std::vector<std::map<int, std::vector<int>>> copies(stage.programs.size());
    std::vector<bool> runs(stage.programs.size(), false);
    for (const Phase &phase : phasesOf(stage))
      for (const ScheduleEntry &entry : *phase.entries)
        runs[indexed(entry.program)] = true;
    for (const Phase &phase : {phasesOf(stage)[1], phasesOf(stage)[2]})
      for (std::size_t i = 0; i < phase.entries->size(); ++i)
        if (int microBatch = (*phase.entries)[i].microBatch; microBatch != 0)
          faults.add(at("stages", s, phase.name, i, 1U),
                     "must be 0, as it runs once for all micro-batches, got " +
                         std::to_string(microBatch));
    for (const ScheduleEntry &entry : stage.schedule)
      for (int i = 0; i < entry.count; ++i)
        copies[indexed(entry.program)][entry.microBatch].push_back(
            entry.first + i * entry.step);
    for (std::size_t p = 0; p < copies.size(); ++p) {
      if (!runs[p])
        faults.add(at("stages", s, "programs", p),
                   "\"" + stage.programs[p].name + "\" is never run");
      if (copies[p].empty())
        continue;
      const std::string name = "program " + std::to_string(p) + " (\"" +
                               stage.programs[p].name + "\") runs ";
      for (auto &[microBatch, list] : copies[p])
        std::ranges::sort(list);
      const auto &[shown, all] = *copies[p].begin();
      if (copies[p].size() != indexed(plan.microBatches)) {
        int missing = 0;
        while (copies[p].contains(missing))
          ++missing;
        faults.add(at("stages", s, "schedule"),
                   name + "for " + std::to_string(copies[p].size()) + " of " +
                       std::to_string(plan.microBatches) +
                       " micro-batches; number " + std::to_string(missing) +
                       " is missing");
      }
      for (const auto &[microBatch, list] : copies[p])
        if (list != all) {
          faults.add(at("stages", s, "schedule"),
                     name + std::to_string(list.size()) +
                         " copies for micro-batch " +
                         std::to_string(microBatch) + " and " +
                         std::to_string(all.size()) +
                         " copies, or others, for micro-batch " +
                         std::to_string(shown));
          break;
        }
    }
  }
}

} // namespace

std::int64_t elementsOf(const Tensor &tensor) {
  std::int64_t product = 1;
  for (std::int64_t size : tensor.shape)
    product *= size;
  return product;
}

std::string bufferName(const Stage &stage, int buffer) {
  return "buffer " + std::to_string(buffer) + " (\"" +
         stage.buffers[indexed(buffer)].name + "\")";
}

std::string tensorWords(const Tensor &tensor) {
  return shapeWords(tensor.shape) + " of " + std::string(wordOf(tensor.type));
}

std::string misfitOf(const Stage &stage, const Tensor &tensor) {
  const std::int64_t bytes = elementsOf(tensor) * bytesOf(tensor.type),
                     size = stage.buffers[indexed(tensor.buffer)].size;
  return bytes <= size
             ? ""
             : tensorWords(tensor) + " takes " + std::to_string(bytes) +
                   " bytes, but " + bufferName(stage, tensor.buffer) +
                   " has pieces of " + std::to_string(size);
}

std::vector<Phase> phasesOf(const Stage &stage) {
  return {{"schedule", &stage.schedule},
          {"reduce", &stage.reduce},
          {"apply", &stage.apply}};
}

std::vector<std::string> checkPlan(const Plan &plan) {
  Faults faults;
  checkRanges(plan, faults);
  if (faults.any())
    return faults.take();
  checkRanks(plan, faults);
  if (faults.any())
    return faults.take();
  checkSchedule(plan, faults);
  checkCalls(plan, faults);
  checkSides(plan, faults);
  checkParameters(plan, faults);
  checkMemory(plan, faults);
  checkStreams(plan, faults);
  checkOverlap(plan, faults);
  if (!faults.any())
    checkBatches(plan, faults);
  if (!faults.any())
    checkMessages(plan, faults);
  return faults.take();
}

} // namespace mtplan::runtime

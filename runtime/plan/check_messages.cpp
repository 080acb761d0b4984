//===- check_messages.cpp - Checks messages between stages ----------------===//
//
// The check compares both ends of every message and the calls of every group.
// Then the check simulates all stages together to find deadlocks.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/plan/plan_checks.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

// Describes a run of an instruction that communicates with other stages.
struct Event {
  const Instruction *instruction;
  std::size_t program, number; ///< number: index in the program
  int microBatch;
};

std::vector<int> stagesOfRanks(const Plan &plan) {
  std::vector<int> stages(indexed(plan.ranks), -1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (int rank : plan.stages[s].ranks)
      stages[indexed(rank)] = static_cast<int>(s);
  return stages;
}

using Channel = std::tuple<int, int, int>; ///< from stage, to stage, number

Channel channelOf(std::size_t stage, const Transfer &transfer) {
  int own = static_cast<int>(stage);
  return transfer.sends ? Channel{own, transfer.stage, transfer.channel}
                        : Channel{transfer.stage, own, transfer.channel};
}

std::string described(const Instruction &instruction) {
  const Tensor &operand = instruction.inputs.empty() ? instruction.outputs[0]
                                                     : instruction.inputs[0];
  return '"' + instruction.label + "\", " + tensorWords(operand);
}

std::string described(const Instruction &instruction, const Collective &call) {
  std::string text =
      std::string(wordOf(call.kind)) + " of " + described(instruction);
  if (reduces(call.kind))
    text += ", " + std::string(wordOf(call.reduction));
  if (gathers(call.kind))
    text += ", gathered " + std::to_string(call.gathered);
  if (scatters(call.kind))
    text += ", scattered " + std::to_string(call.scattered);
  return text;
}

class Messages {
public:
  Messages(const Plan &whole, Faults &list)
      : plan(whole), faults(list), events(plan.stages.size()) {
    findPartners();
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      collect(s);
  }

  void check() {
    checkChannels();
    checkGroups();
    // The simulation is skipped after a mismatch, which would itself cause a
    // deadlock.
    if (!faults.any())
      runAll();
  }

private:
  void findPartners() {
    const std::vector<int> stageOf = stagesOfRanks(plan);
    partners.resize(plan.groups.size());
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
      std::vector<std::set<int>> found(plan.stages.size());
      for (const std::vector<int> &ranks : plan.groups[g].communicators) {
        std::set<int> stages;
        for (int rank : ranks)
          stages.insert(stageOf[indexed(rank)]);
        for (int stage : stages)
          for (int other : stages)
            if (other != stage)
              found[indexed(stage)].insert(other);
      }
      for (const std::set<int> &stages : found)
        partners[g].emplace_back(stages.begin(), stages.end());
    }
  }

  bool concernsOthers(std::size_t s, const Instruction &instruction) const {
    if (const auto *call = std::get_if<Collective>(&instruction.what))
      return !partners[indexed(call->group)][s].empty();
    return std::holds_alternative<Transfer>(instruction.what);
  }

  void collect(std::size_t s) {
    const Stage &stage = plan.stages[s];
    std::vector<std::vector<Event>> ofProgram(stage.programs.size());
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      for (std::size_t i = 0; i < stage.programs[p].instructions.size(); ++i)
        if (const Instruction &one = stage.programs[p].instructions[i];
            concernsOthers(s, one))
          ofProgram[p].push_back({&one, p, i, 0});
    for (const Phase &phase : phasesOf(stage))
      for (const ScheduleEntry &entry : *phase.entries)
        for (int copy = 0;
             copy < entry.count && !ofProgram[indexed(entry.program)].empty();
             ++copy)
          for (Event event : ofProgram[indexed(entry.program)]) {
            event.microBatch = entry.microBatch;
            if (runsFor(event.microBatch, *event.instruction,
                        plan.microBatches))
              events[s].push_back(event);
          }
  }

  std::string where(std::size_t stage, const Event &event) const {
    return at("stages", stage, "programs", event.program, "instructions",
              event.number);
  }

  void checkChannels() {
    struct Ends {
      std::vector<const Event *> sent, received;
    };
    std::map<Channel, Ends> channels;
    for (std::size_t s = 0; s < events.size(); ++s)
      for (const Event &event : events[s])
        if (const auto *transfer =
                std::get_if<Transfer>(&event.instruction->what)) {
          Ends &ends = channels[channelOf(s, *transfer)];
          (transfer->sends ? ends.sent : ends.received).push_back(&event);
        }
    for (const auto &[channel, ends] : channels) {
      auto [from, to, number] = channel;
      const std::string name = "channel " + std::to_string(number) +
                               " from stage " + std::to_string(from) +
                               " to stage " + std::to_string(to);
      bool moreSent = ends.sent.size() > ends.received.size();
      if (ends.sent.size() != ends.received.size())
        faults.add(moreSent ? where(indexed(from), *ends.sent.back())
                            : where(indexed(to), *ends.received.back()),
                   name + " sends " + std::to_string(ends.sent.size()) +
                       " messages a step and receives " +
                       std::to_string(ends.received.size()));
      for (std::size_t i = 0;
           i < std::min(ends.sent.size(), ends.received.size()); ++i) {
        auto text = [](const Event &event) {
          return described(*event.instruction) + ", of micro-batch " +
                 std::to_string(event.microBatch);
        };
        if (text(*ends.sent[i]) == text(*ends.received[i]))
          continue;
        faults.add(where(indexed(to), *ends.received[i]),
                   "message " + std::to_string(i) + " of " + name + " is " +
                       text(*ends.sent[i]) + ", but is received as " +
                       text(*ends.received[i]));
        break;
      }
    }
  }

  void checkGroups() {
    std::vector<std::vector<std::vector<const Event *>>> calls(
        plan.groups.size(),
        std::vector<std::vector<const Event *>>(plan.stages.size()));
    for (std::size_t s = 0; s < events.size(); ++s)
      for (const Event &event : events[s])
        if (const auto *call =
                std::get_if<Collective>(&event.instruction->what))
          calls[indexed(call->group)][s].push_back(&event);
    for (std::size_t g = 0; g < calls.size(); ++g)
      for (std::size_t s = 0; s < calls[g].size(); ++s)
        for (int other : partners[g][s])
          if (other > static_cast<int>(s))
            compare(g, s, calls[g][s], indexed(other),
                    calls[g][indexed(other)]);
  }

  void compare(std::size_t g, std::size_t s,
               const std::vector<const Event *> &here, std::size_t other,
               const std::vector<const Event *> &there) {
    const std::string name = "group \"" + plan.groups[g].name + '"';
    auto text = [](const Event &event) {
      return described(*event.instruction,
                       std::get<Collective>(event.instruction->what));
    };
    for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i)
      if (text(*here[i]) != text(*there[i])) {
        faults.add(where(other, *there[i]),
                   "call " + std::to_string(i) + " of " + name + " is " +
                       text(*there[i]) + ", but stage " + std::to_string(s) +
                       " calls " + text(*here[i]));
        return;
      }
    if (here.size() == there.size())
      return;
    bool fewer = here.size() < there.size();
    faults.add(fewer ? where(other, *there[here.size()])
                     : where(s, *here[there.size()]),
               name + " is called " + std::to_string(here.size()) +
                   " times a step by stage " + std::to_string(s) + " and " +
                   std::to_string(there.size()) + " times by stage " +
                   std::to_string(other));
  }

  void runAll() {
    next.assign(events.size(), 0);
    joined.assign(plan.groups.size(),
                  std::vector<std::size_t>(events.size(), 0));
    calling.assign(events.size(), false);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < events.size(); ++s)
        while (next[s] < events[s].size() && waitsFor(s) < 0) {
          ++next[s];
          calling[s] = false;
          moved = true;
        }
    }
    for (std::size_t s = 0; s < events.size(); ++s)
      if (next[s] < events[s].size())
        return reportCycle(s);
  }

  // Returns the stage that blocks the next event of stage `s`, or -1 if the
  // event completes.
  int waitsFor(std::size_t s) {
    const Instruction &instruction = *events[s][next[s]].instruction;
    if (const auto *transfer = std::get_if<Transfer>(&instruction.what)) {
      std::size_t &waiting = inFlight[channelOf(s, *transfer)];
      if (transfer->sends)
        ++waiting;
      else if (waiting == 0)
        return transfer->stage;
      else
        --waiting;
      return -1;
    }
    std::size_t g = indexed(std::get<Collective>(instruction.what).group);
    if (!calling[s])
      ++joined[g][s];
    calling[s] = true;
    for (int other : partners[g][s])
      if (joined[g][indexed(other)] < joined[g][s])
        return other;
    return -1;
  }

  // Follows the waits from stage `s` and reports the cycle that the waits
  // reach. Such a cycle exists, because every blocked stage waits for another
  // blocked stage.
  void reportCycle(std::size_t s) {
    std::vector<bool> seen(events.size(), false);
    while (!seen[s]) {
      seen[s] = true;
      s = indexed(waitsFor(s));
    }
    std::string text = "stages wait for each other: ";
    std::size_t first = s;
    do {
      const Event &event = events[s][next[s]];
      std::size_t other = indexed(waitsFor(s));
      text += (s == first ? "stage " : "; stage ") + std::to_string(s) +
              " waits in " + where(s, event) + " (\"" +
              event.instruction->label + "\", micro-batch " +
              std::to_string(event.microBatch) + ") for stage " +
              std::to_string(other);
      s = other;
    } while (s != first);
    faults.add(where(first, events[first][next[first]]), text);
  }

  const Plan &plan;
  Faults &faults;
  // Lists, by group and stage, the other stages with which the stage shares a
  // communicator of the group.
  std::vector<std::vector<std::vector<int>>> partners;
  std::vector<std::vector<Event>> events; ///< by stage, in order
  std::vector<std::size_t> next;          ///< by stage: its next event
  /// Counts, by group and stage, the calls that the stage has begun.
  std::vector<std::vector<std::size_t>> joined;
  std::vector<bool> calling; ///< by stage: `joined` counts the next event
  std::map<Channel, std::size_t> inFlight;
};

} // namespace

void checkMessages(const Plan &plan, Faults &faults) {
  Messages(plan, faults).check();
}

} // namespace mtplan::runtime

//===- check_streams.cpp - Checks the order across streams ----------------===//

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "runtime/plan/placement.h"
#include "runtime/plan/plan_checks.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Streams
//
// Two instructions of a program on different streams conflict if they touch the
// same bytes and at least one of them writes. The later instruction must then
// wait, directly or indirectly, for the earlier one. Calls of one group must be
// ordered in the same way, and so must messages of one channel, because all
// ranks must issue these in the same order.
//===----------------------------------------------------------------------===//

namespace {

class StreamCheck {
public:
  StreamCheck(const Plan &whole, std::size_t number, Faults &list)
      : plan(whole), stage(whole.stages[number]), s(number), faults(list),
        placement(stage, s, toldElsewhere) {}

  void check() {
    if (!placement.complete())
      return;
    for (p = 0; p < stage.programs.size(); ++p)
      checkProgram();
  }

private:
  const Program &program() const { return stage.programs[p]; }

  void checkProgram() {
    const std::vector<Instruction> &list = program().instructions;
    auto isElsewhere = [&](const Instruction &one) {
      return one.stream != list[0].stream;
    };
    if (std::ranges::none_of(list, isElsewhere))
      return;
    const ProgramOrder order(program(), plan.streams.size());
    checkCalls(order);
    const int period = microBatchPeriod();
    std::set<std::tuple<int, int, int, int>> seen; // the checked entries
    for (const Phase &phase : phasesOf(stage))
      for (std::size_t e = 0; e < phase.entries->size(); ++e) {
        const ScheduleEntry &entry = (*phase.entries)[e];
        if (indexed(entry.program) != p ||
            !seen.emplace(entry.microBatch % period, entry.first, entry.step,
                          entry.count)
                 .second)
          continue;
        where = at("stages", s, phase.name, e);
        microBatch = entry.microBatch;
        for (int k = 0; k < entry.count; ++k) {
          copy = entry.first + k * entry.step;
          checkRun(order);
        }
      }
  }

  // Returns the period, in micro-batches, with which the program reuses the
  // pieces of its buffers.
  int microBatchPeriod() const {
    std::int64_t period = 1;
    for (const Instruction &one : program().instructions)
      for (const std::vector<Tensor> *tensors : {&one.inputs, &one.outputs})
        for (const Tensor &tensor : *tensors)
          if (period < plan.microBatches)
            period = std::lcm(
                period,
                std::int64_t{stage.buffers[indexed(tensor.buffer)].slots});
    return static_cast<int>(std::min(period, std::int64_t{plan.microBatches}));
  }

  // Checks that each collective follows the previous one of its group, and that
  // each send or receive follows the previous one of its channel.
  void checkCalls(const ProgramOrder &order) {
    std::map<int, std::size_t> ofGroup;
    std::map<std::tuple<int, int, bool>, std::size_t> ofChannel;
    for (std::size_t i = 0; i < program().instructions.size(); ++i) {
      const Instruction &one = program().instructions[i];
      auto meet = [&](auto &last, const auto &key, const std::string &name) {
        auto [found, isFirst] = last.try_emplace(key, i);
        if (!isFirst && !order.follows(i, found->second))
          fail(i, found->second, "is the previous call of " + name);
        found->second = i;
      };
      if (const auto *call = std::get_if<Collective>(&one.what))
        meet(ofGroup, call->group,
             "group \"" + plan.groups[indexed(call->group)].name + '"');
      else if (const auto *transfer = std::get_if<Transfer>(&one.what))
        meet(ofChannel,
             std::tuple(transfer->stage, transfer->channel, transfer->sends),
             "channel " + std::to_string(transfer->channel));
    }
  }

  // Checks that each instruction of a run follows every earlier instruction
  // that conflicts with it on a piece.
  void checkRun(const ProgramOrder &order) {
    struct Users { // by stream, the last reader and the last writer
      std::map<int, std::size_t> readers, writers;
    };
    std::map<std::size_t, Users> users; // by piece
    for (std::size_t i = 0; i < program().instructions.size(); ++i) {
      const Instruction &one = program().instructions[i];
      auto follow = [&](const std::map<int, std::size_t> &last,
                        const char *does) {
        for (auto [stream, early] : last)
          if (!order.follows(i, early))
            fail(i, early,
                 does + std::string(" the same bytes on stream ") +
                     std::to_string(stream) + ", in " + where +
                     " (micro-batch " + std::to_string(microBatch) + ", copy " +
                     std::to_string(copy) + ")");
      };
      auto meet = [&](std::size_t piece, bool writes) {
        auto found = users.find(piece);
        if (found == users.end())
          return;
        follow(found->second.writers, "writes");
        if (writes)
          follow(found->second.readers, "reads");
      };
      placement.forEachOverlap(one, copy, microBatch, meet);
      placement.forEachPiece(
          one, copy, microBatch, [&](std::size_t piece, bool writes) {
            Users &own = users[piece];
            (writes ? own.writers : own.readers)[one.stream] = i;
          });
    }
  }

  // Reports each pair at most once, because the same fault recurs in many runs.
  void fail(std::size_t late, std::size_t early, const std::string &why) {
    if (reported.emplace(p, late, early).second)
      faults.add(at("stages", s, "programs", p, "instructions", late, "waits"),
                 "must order this after instruction " + std::to_string(early) +
                     " (\"" + program().instructions[early].label +
                     "\"), which " + why);
  }

  const Plan &plan;
  const Stage &stage;
  std::size_t s, p = 0;
  Faults &faults;
  Faults toldElsewhere; ///< placement errors, which checkMemory reports
  Placement placement;
  std::string where; ///< pointer of the schedule entry
  int microBatch = 0, copy = 0;
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> reported;
};

} // namespace

void checkStreams(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    StreamCheck(plan, s, faults).check();
}

//===----------------------------------------------------------------------===//
// Overlapped collectives
//
// Later runs do not wait for an overlapped collective. The collective must
// therefore be on a stream other than 0. The collective's group must have no
// ranks of other stages. Other streams must not touch the collective's bytes
// before the schedule ends.
//===----------------------------------------------------------------------===//

namespace {

class OverlapCheck {
public:
  OverlapCheck(const Plan &whole, std::size_t number, Faults &list)
      : plan(whole), stage(whole.stages[number]), s(number), faults(list),
        placement(stage, s, toldElsewhere) {}

  void check() {
    const std::vector<bool> scheduled = scheduledAlone();
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      for (std::size_t i = 0; i < stage.programs[p].instructions.size(); ++i)
        if (stage.programs[p].instructions[i].overlapped)
          checkOne(p, i, scheduled[p]);
    if (!placement.complete())
      return;
    for (std::size_t e = 0; e < stage.schedule.size(); ++e)
      for (int k = 0; k < stage.schedule[e].count; ++k)
        checkRun(e, stage.schedule[e].first + k * stage.schedule[e].step);
  }

private:
  /// Identifies an overlapped collective that may still be running.
  struct UnderWay {
    std::size_t program = 0, instruction = 0;
    bool isWritten = false;
  };

  // Returns, by program, whether only `schedule` runs the program.
  std::vector<bool> scheduledAlone() const {
    std::vector<bool> scheduled(stage.programs.size(), true);
    for (const auto *entries : {&stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *entries)
        scheduled[indexed(entry.program)] = false;
    return scheduled;
  }

  void checkOne(std::size_t p, std::size_t i, bool isScheduled) {
    const Instruction &one = stage.programs[p].instructions[i];
    const auto *call = std::get_if<Collective>(&one.what);
    if (!call)
      return fail(
          p, i,
          "is not a collective; only a collective may overlap later runs");
    if (one.stream == 0)
      fail(p, i, "is on stream 0, which all runs begin on");
    if (!isScheduled)
      fail(p, i,
           "is in \"" + stage.programs[p].name +
               "\", which does not run in /schedule alone");
    const Group &group = plan.groups[indexed(call->group)];
    if (!isWithin(group, stage))
      return fail(p, i,
                  "is of group \"" + group.name +
                      "\", in which other stages wait for this one");
  }

  void checkRun(std::size_t e, int copy) {
    const ScheduleEntry &entry = stage.schedule[e];
    const std::size_t p = indexed(entry.program);
    const std::vector<Instruction> &all = stage.programs[p].instructions;
    for (std::size_t i = 0; i < all.size() && !underWay.empty(); ++i) {
      auto meet = [&](std::size_t piece, bool writes) {
        const auto found = underWay.find(piece);
        if (found == underWay.end())
          return;
        for (const auto &[stream, early] : found->second)
          if (stream != all[i].stream && (writes || early.isWritten))
            reportOverlap(p, i, e, copy, early);
      };
      placement.forEachOverlap(all[i], copy, entry.microBatch, meet);
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].overlapped &&
          runsFor(entry.microBatch, all[i], plan.microBatches))
        placement.forEachPiece(all[i], copy, entry.microBatch,
                               [&](std::size_t piece, bool writes) {
                                 UnderWay &there =
                                     underWay[piece][all[i].stream];
                                 there = {p, i, there.isWritten || writes};
                               });
  }

  void fail(std::size_t p, std::size_t i, const std::string &what) {
    faults.add(at("stages", s, "programs", p, "instructions", i, "overlapped"),
               what);
  }

  void reportOverlap(std::size_t p, std::size_t i, std::size_t e, int copy,
                     const UnderWay &early) {
    if (reported.emplace(p, i, early.program, early.instruction).second)
      fail(early.program, early.instruction,
           "may still be under way when \"" +
               stage.programs[p].instructions[i].label + "\" of " +
               at("stages", s, "programs", p, "instructions", i) +
               " touches the same bytes, in " + at("stages", s, "schedule", e) +
               " (copy " + std::to_string(copy) + ")");
  }

  const Plan &plan;
  const Stage &stage;
  const std::size_t s;
  Faults &faults;
  Faults toldElsewhere; ///< placement errors, which checkMemory reports
  Placement placement;
  std::map<std::size_t, std::map<int, UnderWay>> underWay; ///< by piece, stream
  std::set<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>>
      reported;
};

} // namespace

void checkOverlap(const Plan &plan, Faults &faults) {
  const auto isAny = [](const Program &program) {
    return std::ranges::any_of(program.instructions, &Instruction::overlapped);
  };
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    if (std::ranges::any_of(plan.stages[s].programs, isAny))
      OverlapCheck(plan, s, faults).check();
}

} // namespace mtplan::runtime

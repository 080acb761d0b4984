//===- check_overlap.cpp - What runs beside later runs --------------------===//
//
// Later runs do not follow what is overlapped: so it is on a stream of its own,
// no other stage waits in it, and nobody else touches its bytes before the
// schedule ends.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/plan/group_within.h"
#include "runtime/plan/placement.h"

namespace mtplan::runtime {

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
  /// Of what is overlapped and may still be under way.
  struct UnderWay {
    std::size_t program = 0, instruction = 0;
    bool isWritten = false;
  };

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
      return fail(p, i, "is no collective; later runs follow all else");
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
    auto forEachPiece = [&](const Instruction &one, auto act) {
      for (const auto *some : {&one.inputs, &one.outputs})
        for (const Tensor &tensor : *some)
          if (const std::int64_t at =
                  tensor.entry + std::int64_t{copy} * tensor.entryStep;
              at >= 0) // else told by checkMemory
            act(placement.pieceOf(tensor.buffer, at, entry.microBatch),
                some == &one.outputs);
    };
    for (std::size_t i = 0; i < all.size() && !underWay.empty(); ++i) {
      auto meet = [&](std::size_t piece, bool writes) {
        const auto found = underWay.find(piece);
        if (found == underWay.end())
          return;
        for (const auto &[stream, early] : found->second)
          if (stream != all[i].stream && (writes || early.isWritten))
            tellMeeting(p, i, e, copy, early);
      };
      forEachPiece(all[i], [&](std::size_t piece, bool writes) {
        meet(piece, writes);
        for (const std::size_t other : placement.overlaps(piece))
          meet(other, writes);
      });
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].overlapped &&
          runsFor(entry.microBatch, all[i], plan.microBatches))
        forEachPiece(all[i], [&](std::size_t piece, bool writes) {
          UnderWay &there = underWay[piece][all[i].stream];
          there = {p, i, there.isWritten || writes};
        });
  }

  void fail(std::size_t p, std::size_t i, const std::string &what) {
    faults.add(at("stages", s, "programs", p, "instructions", i, "overlapped"),
               what);
  }

  // Once a pair: what is wrong in one run is wrong in many.
  void tellMeeting(std::size_t p, std::size_t i, std::size_t e, int copy,
                   const UnderWay &early) {
    if (told.emplace(p, i, early.program, early.instruction).second)
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
  Faults toldElsewhere; ///< about the placement, by checkMemory
  Placement placement;
  std::map<std::size_t, std::map<int, UnderWay>> underWay; ///< piece, stream
  std::set<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>> told;
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

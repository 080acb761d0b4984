//===- overlapped_reduces.cpp - Gradients are reduced beside backward -----===//

#include "codegen/overlapped_reduces.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/meetings.h"
#include "runtime/plan/arena_bytes.h"
#include "runtime/plan/group_within.h"

namespace mtplan::codegen {

using runtime::ArenaBytes, runtime::Collective, runtime::Instruction,
    runtime::Plan, runtime::Program, runtime::ScheduleEntry, runtime::Stage,
    runtime::Tensor;

namespace {

int copyOf(const ScheduleEntry &entry, int run) {
  return entry.first + run * entry.step;
}

/// The last that touches what an instruction reduces.
struct LastUse {
  int program = -1;
  std::size_t instruction = 0;
};

class StageReduces {
public:
  StageReduces(Plan &thePlan, Stage &theStage)
      : plan(thePlan), stage(theStage) {}

  void overlap() {
    for (std::size_t r = 0; r < stage.reduce.size(); ++r)
      move(r);
    for (std::vector<Moved> &all : moved) {
      // Each hop behind the one before, and turned: its first waits for all.
      std::ranges::stable_sort(all, [](const Moved &one, const Moved &other) {
        if (one.hop != other.hop)
          return one.hop < other.hop;
        return one.hop % 2 == 0 ? one.readyAfter > other.readyAfter
                                : one.readyAfter < other.readyAfter;
      });
      for (Moved &one : all)
        stage.programs[indexed(one.to)].instructions.push_back(
            std::move(one.instruction));
    }
    dropEmpty();
  }

private:
  struct Moved {
    int to = 0;                 ///< program
    std::size_t readyAfter = 0; ///< instruction of it
    std::ptrdiff_t hop = 0;     ///< reduces of the same before it
    Instruction instruction;
  };

  void move(std::size_t r) {
    const ScheduleEntry &entry = stage.reduce[r];
    std::vector<Instruction> &all =
        stage.programs[indexed(entry.program)].instructions;
    moved.resize(stage.programs.size());
    std::vector<Instruction> kept;
    std::vector<std::optional<LastUse>> places;
    places.reserve(all.size());
    for (const Instruction &one : all)
      places.push_back(placeFor(one, entry));
    for (std::size_t i = 0; i < all.size(); ++i)
      if (places[i]) {
        all[i].overlapped = true;
        const Tensor sum = all[i].outputs[0];
        std::vector<Moved> &there = moved[indexed(places[i]->program)];
        const std::ptrdiff_t hop =
            std::ranges::count_if(there, [&](const Moved &one) {
              return isSame(one.instruction.outputs[0], sum);
            });
        there.push_back({places[i]->program, places[i]->instruction, hop,
                         std::move(all[i])});
      } else {
        kept.push_back(std::move(all[i]));
      }
    all = std::move(kept);
  }

  /// Whether it is an all-reduce within the stage of a gradient where it is.
  bool staysInPlace(const Instruction &one) const {
    const auto *call = std::get_if<Collective>(&one.what);
    if (!call || call->kind != runtime::CollectiveKind::allReduce ||
        !runtime::isWithin(plan.groups[indexed(call->group)], stage) ||
        !isSame(one.inputs[0], one.outputs[0]))
      return false;
    const int arena = stage.buffers[indexed(one.inputs[0].buffer)].arena;
    return stage.arenas[indexed(arena)].memoryClass ==
           runtime::MemoryClass::gradients;
  }

  /// Behind what it may run; none where it has to stay.
  std::optional<LastUse> placeFor(const Instruction &one,
                                  const ScheduleEntry &entry) const {
    if (!staysInPlace(one))
      return std::nullopt;
    const Tensor &sum = one.inputs[0];
    // Of several reduces of it all go, or none.
    for (const ScheduleEntry &other : stage.reduce)
      for (const Instruction &user :
           stage.programs[indexed(other.program)].instructions)
        if (touches(other, user, entry, sum) &&
            (other.program != entry.program || !staysInPlace(user) ||
             !isSame(user.inputs[0], sum)))
          return std::nullopt;
    for (std::size_t e = stage.schedule.size(); e-- > 0;)
      if (const std::optional<LastUse> use =
              useOf(stage.schedule[e], entry, sum))
        return use->program < 0 ||
                       stage.schedule[e].microBatch + 1 != plan.microBatches
                   ? std::nullopt
                   : use;
    return std::nullopt;
  }

  /// In the runs of `late`; none: it does not touch the sum. The program is -1
  /// where runs touch those of other copies than their own.
  std::optional<LastUse> useOf(const ScheduleEntry &late,
                               const ScheduleEntry &entry,
                               const Tensor &sum) const {
    std::optional<LastUse> last;
    bool isOfOwn = true;
    const auto &all = stage.programs[indexed(late.program)].instructions;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (touches(late, all[i], entry, sum)) {
        isOfOwn = isOfOwn && isOfOwnCopies(late, all[i], entry, sum);
        last = {isOfOwn ? late.program : -1, i};
      }
    return last;
  }

  template <typename Meet>
  bool anyMeeting(const ScheduleEntry &runs, const Instruction &user,
                  const ScheduleEntry &entry, const Tensor &sum,
                  Meet meet) const {
    const int arena = stage.buffers[indexed(sum.buffer)].arena;
    for (const auto *some : {&user.inputs, &user.outputs})
      for (const Tensor &tensor : *some) {
        if (stage.buffers[indexed(tensor.buffer)].arena != arena)
          continue;
        for (int i = 0; i < runs.count; ++i) {
          const ArenaBytes there = runtime::arenaBytesOf(
              stage, tensor, copyOf(runs, i), runs.microBatch);
          for (int j = 0; j < entry.count; ++j)
            if (there.meets(runtime::arenaBytesOf(stage, sum, copyOf(entry, j),
                                                  entry.microBatch)) &&
                meet(copyOf(runs, i), copyOf(entry, j)))
              return true;
        }
      }
    return false;
  }

  bool touches(const ScheduleEntry &runs, const Instruction &user,
               const ScheduleEntry &entry, const Tensor &sum) const {
    return anyMeeting(runs, user, entry, sum, [](int, int) { return true; });
  }

  bool isOfOwnCopies(const ScheduleEntry &runs, const Instruction &user,
                     const ScheduleEntry &entry, const Tensor &sum) const {
    const auto lowest = [](const ScheduleEntry &one) {
      return std::min(one.first, copyOf(one, one.count - 1));
    };
    return runs.count == entry.count && lowest(runs) == lowest(entry) &&
           std::abs(runs.step) == std::abs(entry.step) &&
           !anyMeeting(runs, user, entry, sum,
                       [](int one, int other) { return one != other; });
  }

  // Numbers of programs are those of the entries.
  void dropEmpty() {
    std::vector<int> numbers;
    std::vector<Program> kept;
    for (Program &program : stage.programs) {
      numbers.push_back(
          program.instructions.empty() ? -1 : static_cast<int>(kept.size()));
      if (!program.instructions.empty())
        kept.push_back(std::move(program));
    }
    stage.programs = std::move(kept);
    for (auto *entries : {&stage.schedule, &stage.reduce, &stage.apply}) {
      for (ScheduleEntry &entry : *entries)
        entry.program = numbers[indexed(entry.program)];
      std::erase_if(*entries, [](const ScheduleEntry &entry) {
        return entry.program < 0;
      });
    }
  }

  Plan &plan;
  Stage &stage;
  std::vector<std::vector<Moved>> moved; ///< by program
};

} // namespace

void overlapReduces(Plan &plan) {
  for (Stage &stage : plan.stages)
    StageReduces(plan, stage).overlap();
}

} // namespace mtplan::codegen

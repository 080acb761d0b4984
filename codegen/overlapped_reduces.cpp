//===- overlapped_reduces.cpp - Gradients are reduced beside backward -----===//

#include "codegen/overlapped_reduces.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/group_axis.h"
#include "codegen/memory_overlaps.h"
#include "ir/replica_axes.h"
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

/// The last instruction that touches what is reduced.
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
      // Each hop comes behind the hop before. The order of every second hop is
      // reversed, so that its first reduction waits for all of the hop before.
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
    int to = 0;                 ///< the program
    std::size_t readyAfter = 0; ///< the instruction of the program
    Tensor sum; ///< the gradient that is reduced, or what is left of it
    std::ptrdiff_t hop = 0; ///< earlier reductions of the same gradient
    Instruction instruction;
  };

  void move(std::size_t r) {
    const ScheduleEntry &entry = stage.reduce[r];
    std::vector<Instruction> &all =
        stage.programs[indexed(entry.program)].instructions;
    moved.resize(stage.programs.size());
    const std::vector<Tensor> sums = sumsOf(all);
    std::vector<Instruction> kept;
    std::vector<std::optional<LastUse>> places;
    places.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      places.push_back(placeFor(i, entry, sums));
    for (std::size_t i = 0; i < all.size(); ++i)
      if (places[i]) {
        all[i].overlapped = true;
        std::vector<Moved> &there = moved[indexed(places[i]->program)];
        const std::ptrdiff_t hop = std::ranges::count_if(
            there, [&](const Moved &one) { return isSame(one.sum, sums[i]); });
        there.push_back({places[i]->program, places[i]->instruction, sums[i],
                         hop, std::move(all[i])});
      } else {
        kept.push_back(std::move(all[i]));
      }
    all = std::move(kept);
  }

  /// Returns, by instruction, the sum of gradients that it reduces or goes on
  /// reducing.
  static std::vector<Tensor> sumsOf(const std::vector<Instruction> &all) {
    std::vector<Tensor> sums(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].inputs.empty())
        continue;
      sums[i] = all[i].inputs[0];
      for (std::size_t early = 0; early < i; ++early)
        if (!all[early].outputs.empty() &&
            isSame(all[early].outputs[0], all[i].inputs[0]))
          sums[i] = sums[early];
    }
    return sums;
  }

  /// Whether an instruction reduces a gradient within the stage and leaves the
  /// result in the arena of gradients, in place or as a piece elsewhere. A
  /// later reduction of a piece stays if layers communicate over its axis, too,
  /// because layers would wait for the piece.
  /// \param sum  the gradient that the instruction reduces
  bool mayMove(const Instruction &one, const Tensor &sum) const {
    const auto *call = std::get_if<Collective>(&one.what);
    if (!call)
      return false;
    const runtime::Group &group = plan.groups[indexed(call->group)];
    if (!runtime::isWithin(group, stage) ||
        (!isSame(one.inputs[0], sum) && !ir::isReplicaAxis(axisOf(group))))
      return false;
    const bool isReduce =
        call->kind == runtime::CollectiveKind::reduceScatter ||
        (call->kind == runtime::CollectiveKind::allReduce &&
         isSame(one.inputs[0], one.outputs[0]));
    return isReduce && isGradient(one.inputs[0]) && isGradient(one.outputs[0]);
  }

  bool isGradient(const Tensor &tensor) const {
    const int arena = stage.buffers[indexed(tensor.buffer)].arena;
    return stage.arenas[indexed(arena)].memoryClass ==
           runtime::MemoryClass::gradients;
  }

  /// Returns the instruction behind which instruction i of an entry of `reduce`
  /// may run, or nothing if it has to stay.
  std::optional<LastUse> placeFor(std::size_t i, const ScheduleEntry &entry,
                                  const std::vector<Tensor> &sums) const {
    const Tensor &sum = sums[i];
    const auto &all = stage.programs[indexed(entry.program)].instructions;
    if (!mayMove(all[i], sum))
      return std::nullopt;
    // If a gradient is reduced several times, the first of its reductions move
    // or none does.
    for (const ScheduleEntry &other : stage.reduce) {
      const auto &users = stage.programs[indexed(other.program)].instructions;
      for (std::size_t u = 0; u < users.size(); ++u)
        if (touches(other, users[u], entry, sum) &&
            (other.program != entry.program || !isSame(sums[u], sum) ||
             (u < i && !mayMove(users[u], sum))))
          return std::nullopt;
    }
    for (std::size_t e = stage.schedule.size(); e-- > 0;)
      if (const std::optional<LastUse> use =
              useOf(stage.schedule[e], entry, sum)) {
        const bool moves =
            use->program >= 0 &&
            stage.schedule[e].microBatch + 1 == plan.microBatches &&
            std::ranges::all_of(all, [&](const Instruction &one) {
              const auto at = static_cast<std::size_t>(&one - all.data());
              return !isSame(sums[at], sum) || !mayMove(one, sum) ||
                     isSame(one.outputs[0], sum) ||
                     isFreeBehind(e, entry, one.outputs[0]);
            });
        return moves ? use : std::nullopt;
      }
    return std::nullopt;
  }

  /// Whether nothing touches the reduced piece of a copy's gradient once the
  /// copy's run in schedule entry e has begun.
  bool isFreeBehind(std::size_t e, const ScheduleEntry &entry,
                    const Tensor &made) const {
    for (std::size_t late = e; late < stage.schedule.size(); ++late) {
      const ScheduleEntry &runs = stage.schedule[late];
      for (const Instruction &user :
           stage.programs[indexed(runs.program)].instructions)
        if (anyMeeting(runs, user, entry, made, [&](int one, int other) {
              return late > e || (one - other) * runs.step >= 0;
            }))
          return false;
    }
    return true;
  }

  /// Returns the last use of the gradient in the runs of `late`, or nothing if
  /// they do not touch it. The program is -1 if a run touches the gradient of
  /// another copy than its own.
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

  // The schedule entries refer to programs by number and are renumbered, too.
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

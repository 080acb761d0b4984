//===- check_streams.cpp - Streams meet nowhere unasked -------------------===//
//
// Whoever touches the same bytes on different streams of a program, one of them
// writing, is in order; so are the calls of a group and the messages of a
// channel, which the other ranks expect in one order.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "runtime/plan/placement.h"
#include "runtime/plan/program_order.h"

namespace mtplan::runtime {

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
    std::set<std::tuple<int, int, int, int>> seen; // runs of the same pieces
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

  // Micro-batches so far apart touch the same pieces.
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

  // Each call follows the one before that the same ranks take part in.
  void checkCalls(const ProgramOrder &order) {
    std::map<int, std::size_t> ofGroup;
    std::map<std::tuple<int, int, bool>, std::size_t> ofChannel;
    for (std::size_t i = 0; i < program().instructions.size(); ++i) {
      const Instruction &one = program().instructions[i];
      auto meet = [&](auto &last, const auto &key, const std::string &name) {
        auto [found, isFirst] = last.try_emplace(key, i);
        if (!isFirst && !order.follows(i, found->second))
          fail(i, found->second, "is the call of " + name + " before this one");
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

  std::int64_t entryOf(const Tensor &tensor) const {
    return tensor.entry + std::int64_t{copy} * tensor.entryStep;
  }

  // Of two that touch the same bytes, one of them writing, the later follows.
  void checkRun(const ProgramOrder &order) {
    struct Users { // the last of each stream; it follows those before
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
      auto forEachPiece = [&](auto act) {
        for (const Tensor &tensor : one.inputs)
          if (entryOf(tensor) >= 0) // else told by checkMemory
            act(placement.pieceOf(tensor.buffer, entryOf(tensor), microBatch),
                false);
        for (const Tensor &tensor : one.outputs)
          if (entryOf(tensor) >= 0)
            act(placement.pieceOf(tensor.buffer, entryOf(tensor), microBatch),
                true);
      };
      forEachPiece([&](std::size_t piece, bool writes) {
        meet(piece, writes);
        for (std::size_t other : placement.overlaps(piece))
          meet(other, writes);
      });
      forEachPiece([&](std::size_t piece, bool writes) {
        Users &own = users[piece];
        (writes ? own.writers : own.readers)[one.stream] = i;
      });
    }
  }

  // Once a pair: what is wrong in one run is wrong in many.
  void fail(std::size_t late, std::size_t early, const std::string &why) {
    if (told.emplace(p, late, early).second)
      faults.add(at("stages", s, "programs", p, "instructions", late, "waits"),
                 "must lead to instruction " + std::to_string(early) + " (\"" +
                     program().instructions[early].label + "\"), which " + why);
  }

  const Plan &plan;
  const Stage &stage;
  std::size_t s, p = 0;
  Faults &faults;
  Faults toldElsewhere; ///< about the placement, by checkMemory
  Placement placement;
  std::string where; ///< the entry that runs
  int microBatch = 0, copy = 0;
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> told;
};

} // namespace

void checkStreams(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    StreamCheck(plan, s, faults).check();
}

} // namespace mtplan::runtime

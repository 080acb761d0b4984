//===- check_batches.cpp - Checks that a batch can be one launch ----------===//

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/plan_checks.h"
#include "runtime/plan/program_runs.h"

namespace mtplan::runtime {

namespace {

/// Returns whether an instruction is an einsum of at least two inputs, alone or
/// with a fused `add` or `accumulate`.
bool isProduct(const Instruction &instruction) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  if (!call || call->kernel != "einsum" || instruction.inputs.size() < 2)
    return false;
  const auto *word = settingValue<std::string>(call->settings, kThen);
  return !findSetting(call->settings, kThen) ||
         (word && (*word == "accumulate" || *word == "add"));
}

bool areAlike(const std::vector<Tensor> &some,
              const std::vector<Tensor> &others) {
  return std::ranges::equal(
      some, others, [](const Tensor &one, const Tensor &other) {
        return one.type == other.type && one.shape == other.shape &&
               one.split == other.split;
      });
}

bool areAlike(const Instruction &one, const Instruction &other) {
  return areAlike(one.inputs, other.inputs) &&
         areAlike(one.outputs, other.outputs) &&
         std::ranges::equal(std::get<KernelCall>(one.what).settings,
                            std::get<KernelCall>(other.what).settings,
                            [](const Setting &a, const Setting &b) {
                              return a.name == b.name && a.value == b.value;
                            });
}

/// Holds a range of bytes that an instruction touches in one run of the
/// program. `run` is a different number for each pair of an instruction and a
/// run.
struct Touched : ArenaBytes {
  std::size_t run = 0;
  bool isWritten = false;
};

/// Holds the furthest end of all ranges so far (`first`), and the furthest end
/// of the ranges whose Touched::run differs from the run of `first` (`second`).
class FurthestEnds {
public:
  void add(const Touched &one) {
    if (one.run == first.run || first.end == 0) {
      first = {one.run, std::max(first.end, one.end)};
    } else if (one.end > first.end) {
      second = std::exchange(first, {one.run, one.end});
    } else if (one.end > second.end) {
      second = {one.run, one.end};
    }
  }
  /// Returns whether a range of another Touched::run extends beyond the start
  /// of `one`.
  bool reach(const Touched &one) const {
    return (first.run == one.run ? second : first).end > one.begin;
  }

private:
  struct End {
    std::size_t run = 0;
    std::int64_t end = 0;
  };
  End first, second;
};

/// Returns whether two ranges with different Touched::run overlap and at least
/// one of the two is written. Takes O(n log n) time.
bool anyConflict(std::vector<Touched> touched) {
  std::ranges::sort(touched, {}, [](const Touched &one) {
    return std::tuple(one.arena, one.begin);
  });
  FurthestEnds all, written;
  for (std::size_t i = 0; i < touched.size(); ++i) {
    const Touched &one = touched[i];
    if (i > 0 && one.arena != touched[i - 1].arena)
      all = written = {};
    if (written.reach(one) || (one.isWritten && all.reach(one)))
      return true;
    all.add(one);
    if (one.isWritten)
      written.add(one);
  }
  return false;
}

class BatchCheck {
public:
  BatchCheck(const Plan &thePlan, std::size_t stageNumber, std::size_t number,
             Faults &theFaults)
      : plan(thePlan), s(stageNumber), p(number), stage(plan.stages[s]),
        program(stage.programs[p]), all(program.instructions),
        faults(theFaults), order(program, plan.streams.size()),
        runs(runsOf(stage, static_cast<int>(p))) {}

  void check() {
    std::set<int> taken;
    for (b = 0; b < program.batches.size(); ++b) {
      const Batch &batch = program.batches[b];
      if (!isInRange(batch))
        continue;
      for (const int i : batch.instructions)
        if (!taken.insert(i).second)
          fail("has instruction " + std::to_string(i) +
               ", which is in another batch, too");
      const Instruction &first = all[indexed(batch.instructions.front())];
      for (const int i : batch.instructions)
        if (all[indexed(i)].stream != first.stream)
          fail("is on several streams: instruction " + std::to_string(i) +
               " is on stream " + std::to_string(all[indexed(i)].stream) +
               ", the first on " + std::to_string(first.stream));
      if (runs.empty())
        continue;
      if (std::holds_alternative<Collective>(first.what))
        checkCollectives(batch);
      else if (runsIn(stage.apply) > 0)
        checkKernels(batch);
      else
        checkProducts(batch);
    }
  }

private:
  void fail(const std::string &what) {
    faults.add(at("stages", s, "programs", p, "batches", b), what);
  }

  bool isInRange(const Batch &batch) {
    const std::size_t least = batch.ofAllCopies ? 1 : 2;
    if (batch.instructions.size() < least) {
      fail("has " + std::to_string(batch.instructions.size()) +
           " instructions, needs at least " + std::to_string(least));
      return false;
    }
    for (std::size_t i = 0; i < batch.instructions.size(); ++i) {
      const int one = batch.instructions[i];
      const int before = i == 0 ? -1 : batch.instructions[i - 1];
      if (one <= before || one >= static_cast<int>(all.size())) {
        fail("needs ascending instructions of the program, which has " +
             std::to_string(all.size()) + ", got " + std::to_string(one) +
             (i == 0 ? "" : " after " + std::to_string(before)));
        return false;
      }
    }
    if (batch.ofAllCopies && batch.instructions.size() != all.size()) {
      fail("is of all copies, but has " +
           std::to_string(batch.instructions.size()) + " of the program's " +
           std::to_string(all.size()) + " instructions");
      return false;
    }
    return true;
  }

  std::ptrdiff_t runsIn(const std::vector<ScheduleEntry> &entries) const {
    return std::ranges::count_if(entries, [&](const ScheduleEntry &entry) {
      return indexed(entry.program) == p;
    });
  }

  /// Checks that all instructions may start when the first does.
  void checkTogether(const Batch &batch, std::size_t copiesAtOnce) {
    if (!isConsecutive(batch))
      return fail("needs consecutive instructions");
    for (std::size_t i = 1; i < batch.instructions.size(); ++i)
      if (!all[indexed(batch.instructions[i])].waits.empty())
        return fail("waits at instruction " +
                    std::to_string(batch.instructions[i]) +
                    "; only the first may wait");
    for (std::size_t r = 0; r < runs.size(); r += copiesAtOnce) {
      std::vector<Touched> touched;
      for (std::size_t k = 0; k < copiesAtOnce && r + k < runs.size(); ++k)
        for (const int i : batch.instructions)
          addTouched(all[indexed(i)], runs[r + k], k * all.size() + indexed(i),
                     touched);
      if (anyConflict(std::move(touched)))
        return fail("has an instruction that writes what another reads or "
                    "writes, in copy " +
                    std::to_string(runs[r].copy));
    }
  }

  void addTouched(const Instruction &instruction, const ProgramRun &run,
                  std::size_t number, std::vector<Touched> &touched) const {
    for (const auto *some : {&instruction.inputs, &instruction.outputs})
      for (const Tensor &tensor : *some)
        touched.push_back({arenaBytesOf(stage, tensor, run), number,
                           some == &instruction.outputs});
  }

  void checkCollectives(const Batch &batch) {
    const Instruction &first = all[indexed(batch.instructions.front())];
    const int group = std::get<Collective>(first.what).group;
    for (const int i : batch.instructions) {
      const Instruction &one = all[indexed(i)];
      const auto *call = std::get_if<Collective>(&one.what);
      if (!call || call->kind == CollectiveKind::allToAll)
        return fail("has instruction " + std::to_string(i) +
                    ", which is not a collective that can be grouped");
      if (call->group != group)
        return fail("has groups \"" + plan.groups[indexed(group)].name +
                    "\" and \"" + plan.groups[indexed(call->group)].name +
                    "\"; it needs one");
      if (one.overlapped != first.overlapped)
        return fail("has overlapped collectives and others");
    }
    if (!isWithin(plan.groups[indexed(group)], stage))
      return fail("is of group \"" + plan.groups[indexed(group)].name +
                  "\", in which other stages have part");
    if (batch.ofAllCopies)
      return fail("is of all copies, which only kernels of /apply may be");
    checkTogether(batch, 1);
  }

  void checkKernels(const Batch &batch) {
    const Instruction &first = all[indexed(batch.instructions.front())];
    for (const int i : batch.instructions) {
      const Instruction &one = all[indexed(i)];
      const auto *call = std::get_if<KernelCall>(&one.what);
      const auto *its = std::get_if<KernelCall>(&first.what);
      if (!call || !its || call->kernel != its->kernel)
        return fail("needs kernels of one name");
      if (sideOf(stage, one) != Side::device)
        return fail("has instruction " + std::to_string(i) +
                    ", which the device does not compute");
    }
    if (runsIn(stage.apply) != 1 || runsIn(stage.schedule) > 0 ||
        runsIn(stage.reduce) > 0)
      return fail("is in \"" + program.name +
                  "\", which does not run by one entry of /apply alone");
    if (batch.instructions.size() == 1 && runs.size() == 1)
      return fail("is of all copies of one kernel, but there is one copy");
    checkTogether(batch, batch.ofAllCopies ? runs.size() : 1);
  }

  void checkProducts(const Batch &batch) {
    const Instruction &first = all[indexed(batch.instructions.front())];
    if (batch.ofAllCopies)
      return fail("is of all copies, which only kernels of /apply may be");
    if (runsIn(stage.reduce) > 0)
      return fail("is in \"" + program.name +
                  "\" of /reduce, where only collectives are grouped");
    for (const int i : batch.instructions) {
      const Instruction &one = all[indexed(i)];
      if (!isProduct(one) || sideOf(stage, one) != Side::device ||
          !areAlike(first, one))
        return fail("has instruction " + std::to_string(i) +
                    ", which is no product like the first");
      if (i != batch.instructions.front() &&
          !mayRunAt(indexed(batch.instructions.front()), indexed(i)))
        return fail("has instruction " + std::to_string(i) +
                    ", which needs what comes after the first");
    }
    checkDistances(batch);
  }

  void checkDistances(const Batch &batch) {
    std::vector<std::int64_t> expected; ///< distances, inputs first
    for (std::size_t k = 1; k < batch.instructions.size(); ++k) {
      const Instruction &from = all[indexed(batch.instructions[k - 1])],
                        &to = all[indexed(batch.instructions[k])];
      for (const ProgramRun &run : runs) {
        const std::vector<std::int64_t> steps = stepsIn(run, from, to);
        if (expected.empty())
          expected = steps;
        if (steps.empty() || steps != expected)
          return fail("has uneven distances before instruction " +
                      std::to_string(batch.instructions[k]) + ", in copy " +
                      std::to_string(run.copy));
      }
    }
    if ((expected[0] == 0) == (expected[1] == 0))
      fail("does not share exactly one of its first two operands");
  }

  /// Returns the distances in bytes from the tensors of one product to the
  /// tensors of the next product. Returns an empty list if a distance is
  /// negative or crosses arenas.
  std::vector<std::int64_t> stepsIn(const ProgramRun &run,
                                    const Instruction &from,
                                    const Instruction &to) const {
    std::vector<std::int64_t> steps;
    const auto add = [&](const Tensor &here, const Tensor &there) {
      const ArenaBytes own = arenaBytesOf(stage, here, run),
                       next = arenaBytesOf(stage, there, run);
      steps.push_back(next.begin - own.begin);
      return own.arena == next.arena && next.begin >= own.begin;
    };
    for (std::size_t i = 0; i < from.inputs.size(); ++i)
      if (!add(from.inputs[i], to.inputs[i]))
        return {};
    for (std::size_t o = 0; o < from.outputs.size(); ++o)
      if (isWritten(from, o) && !add(from.outputs[o], to.outputs[o]))
        return {};
    return steps;
  }

  /// Returns whether product `late` may start when `early` does. This holds
  /// unless `late` needs an instruction that precedes `late`, but not `early`,
  /// in the partial order.
  bool mayRunAt(std::size_t early, std::size_t late) const {
    for (std::size_t i = 0; i < late; ++i)
      if (order.follows(late, i) && !(i < early && order.follows(early, i)) &&
          needs(all[late], all[i]))
        return false;
    return true;
  }

  bool needs(const Instruction &product, const Instruction &other) const {
    const auto overlap = [&](const Tensor &own, const Tensor &its) {
      return std::ranges::any_of(runs, [&](const ProgramRun &run) {
        return arenaBytesOf(stage, own, run)
            .overlaps(arenaBytesOf(stage, its, run));
      });
    };
    for (const Tensor &its : other.outputs)
      for (const Tensor &own : product.inputs)
        if (overlap(own, its))
          return true;
    for (const auto *some : {&other.inputs, &other.outputs})
      for (const Tensor &its : *some)
        for (std::size_t o = 0; o < product.outputs.size(); ++o)
          if (isWritten(product, o) && overlap(product.outputs[o], its))
            return true;
    return false;
  }

  const Plan &plan;
  const std::size_t s, p;
  std::size_t b = 0;
  const Stage &stage;
  const Program &program;
  const std::vector<Instruction> &all;
  Faults &faults;
  const ProgramOrder order;
  const std::vector<ProgramRun> runs;
};

} // namespace

void checkBatches(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (std::size_t p = 0; p < plan.stages[s].programs.size(); ++p)
      if (!plan.stages[s].programs[p].batches.empty())
        BatchCheck(plan, s, p, faults).check();
}

} // namespace mtplan::runtime

//===- check_calls.cpp - Checks the operands of instructions --------------===//

#include <algorithm>

#include "runtime/plan/plan_checks.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

std::string counted(std::size_t count, const char *what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

class CallCheck {
public:
  CallCheck(const Plan &whole, std::size_t stage, std::size_t program,
            std::size_t number, Faults &list)
      : plan(whole), s(stage), p(program), i(number),
        call(plan.stages[s].programs[p].instructions[i]), faults(list) {}

  void check() {
    for (std::size_t t = 0; t < call.inputs.size(); ++t)
      checkFits(call.inputs[t], "inputs", t);
    for (std::size_t t = 0; t < call.outputs.size(); ++t)
      checkFits(call.outputs[t], "outputs", t);
    std::visit(*this, call.what);
  }

  void operator()(const KernelCall &kernel) {
    if (kernel.kernel.empty())
      fail("/kernel", "names none");
    if (call.outputs.empty())
      fail("", "computes nothing: it has no output");
  }

  void operator()(const Collective &collective) {
    if (!has(1, 1))
      return;
    const std::vector<std::int64_t> &in = call.inputs[0].shape;
    const std::vector<std::int64_t> &out = call.outputs[0].shape;
    sameType();
    const Group &group = plan.groups[indexed(collective.group)];
    checkMembers(group);
    if (group.communicators.empty())
      return;
    const auto size = static_cast<std::int64_t>(group.communicators[0].size());
    std::vector<std::int64_t> wanted = in;
    if (gathers(collective.kind))
      wanted[indexed(collective.gathered)] *= size;
    if (scatters(collective.kind)) {
      std::int64_t &length = wanted[indexed(collective.scattered)];
      if (length % size != 0)
        fail("/inputs/0/shape/" + std::to_string(collective.scattered),
             std::to_string(length) +
                 " elements cannot be divided evenly among the " +
                 std::to_string(size) + " ranks of group \"" + group.name +
                 '"');
      length /= size;
    }
    if (collective.kind == CollectiveKind::allToAll &&
        collective.gathered == collective.scattered)
      fail("/scattered", "is dimension " +
                             std::to_string(collective.scattered) +
                             ", the one that is gathered; take two");
    if (out != wanted)
      fail("/outputs/0/shape", "must be " + shapeWords(wanted) + ", as " +
                                   std::string(wordOf(collective.kind)) +
                                   " over " + std::to_string(size) +
                                   " ranks makes of " + shapeWords(in) +
                                   ", got " + shapeWords(out));
  }

  void operator()(const Transfer &transfer) {
    has(transfer.sends ? 1 : 0, transfer.sends ? 0 : 1);
    const char *member = transfer.sends ? "/send_to" : "/receive_from";
    if (transfer.stage == static_cast<int>(s)) {
      fail(member, "is stage " + std::to_string(s) + " itself");
      return;
    }
    std::size_t here = plan.stages[s].ranks.size(),
                there = plan.stages[indexed(transfer.stage)].ranks.size();
    if (here != there)
      fail(member, "stage " + std::to_string(transfer.stage) + " has " +
                       std::to_string(there) + " ranks and this one " +
                       std::to_string(here) +
                       "; a message needs a rank at the same place");
  }

  void operator()(const Input &input) {
    if (!has(0, 1))
      return;
    const Tensor &made = call.outputs[0];
    if (input.dims.size() != made.shape.size())
      fail("/dims", "names " + counted(input.dims.size(), "dimension") +
                        ", but the output has " +
                        std::to_string(made.shape.size()));
    for (std::size_t d = 0; d < input.dims.size(); ++d)
      if (std::ranges::find(kInputDims, input.dims[d]) == kInputDims.end())
        fail("/dims/" + std::to_string(d),
             "must be batch, sequence or other, got \"" + input.dims[d] + '"');
    bool integers = made.type == ElementType::i32;
    if (integers != (input.limit > 0))
      fail("/limit", "is " + std::to_string(input.limit) +
                         (integers ? ", but i32 is drawn below a limit"
                                   : ", but only i32 has one"));
    for (std::size_t d = 0; d < std::min(input.dims.size(), made.shape.size());
         ++d)
      if (input.dims[d] == "batch")
        checkBatch(made, d);
  }

  void operator()(const Report &) {
    if (has(1, 0) && elementsOf(call.inputs[0]) != 1)
      fail("/inputs/0/shape",
           "must be one number, got " + shapeWords(call.inputs[0].shape));
  }

private:
  void fail(const std::string &member, const std::string &what) {
    faults.add(at("stages", s, "programs", p, "instructions", i) + member,
               what);
  }

  void checkFits(const Tensor &tensor, const char *list, std::size_t t) {
    if (const std::string misfit = misfitOf(plan.stages[s], tensor);
        !misfit.empty())
      fail(at(list, t, "shape"), misfit);
  }

  bool has(std::size_t inputs, std::size_t outputs) {
    if (call.inputs.size() == inputs && call.outputs.size() == outputs)
      return true;
    fail("", "has " + counted(call.inputs.size(), "input") + " and " +
                 counted(call.outputs.size(), "output") + "; it takes " +
                 counted(inputs, "input") + " and " +
                 counted(outputs, "output"));
    return false;
  }

  void sameType() {
    if (call.inputs[0].type != call.outputs[0].type)
      fail("/outputs/0/type", "must be " +
                                  std::string(wordOf(call.inputs[0].type)) +
                                  " as the input, got " +
                                  std::string(wordOf(call.outputs[0].type)));
  }

  // Checks that the group has all ranks of the stage, because all of these
  // ranks make the call.
  void checkMembers(const Group &group) {
    std::vector<int> members;
    for (const std::vector<int> &ranks : group.communicators)
      members.insert(members.end(), ranks.begin(), ranks.end());
    std::ranges::sort(members);
    for (int rank : plan.stages[s].ranks)
      if (!std::ranges::binary_search(members, rank))
        return fail("/group", "rank " + std::to_string(rank) +
                                  " calls group \"" + group.name +
                                  "\", but is in none of its communicators");
  }

  // Checks that the micro-batches of all replicas make up the global batch.
  void checkBatch(const Tensor &made, std::size_t d) {
    std::int64_t samples = times(made.shape[d], plan.microBatches);
    if (!made.split.empty())
      for (int axis : made.split[d])
        samples = times(samples, plan.mesh[indexed(axis)].size);
    if (samples != plan.globalBatch)
      fail("/outputs/0/shape/" + std::to_string(d),
           std::to_string(made.shape[d]) + " samples in each of " +
               std::to_string(plan.microBatches) + " micro-batches are " +
               std::to_string(samples) +
               " over the axes that split them, but the global batch is " +
               std::to_string(plan.globalBatch));
  }

  const Plan &plan;
  std::size_t s, p, i;
  const Instruction &call;
  Faults &faults;
};

} // namespace

void checkCalls(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (std::size_t p = 0; p < plan.stages[s].programs.size(); ++p)
      for (std::size_t i = 0;
           i < plan.stages[s].programs[p].instructions.size(); ++i)
        CallCheck(plan, s, p, i, faults).check();
}

namespace {

class StageSides {
public:
  StageSides(const Plan &plan, std::size_t number, Faults &list)
      : stage(plan.stages[number]), s(number), faults(list),
        early(stage.programs.size()) {
    for (const auto *entries : {&stage.schedule, &stage.reduce})
      for (const ScheduleEntry &entry : *entries)
        early[indexed(entry.program)] = true;
  }

  void check() {
    for (p = 0; p < stage.programs.size(); ++p) {
      const std::vector<Instruction> &all = stage.programs[p].instructions;
      for (i = 0; i < all.size(); ++i)
        checkOne(all[i]);
    }
  }

private:
  void checkOne(const Instruction &one) {
    switch (sideOf(stage, one)) {
    case Side::device:
      return;
    case Side::mixed:
      return fail("", "has operands in the host's memory and in the device's; "
                      "only a copy of one tensor leads from one to the other");
    case Side::down:
    case Side::up:
      if (one.inputs[0].type != one.outputs[0].type ||
          one.inputs[0].shape != one.outputs[0].shape)
        fail("/outputs/0", "is " + tensorWords(one.outputs[0]) + ", but " +
                               tensorWords(one.inputs[0]) +
                               " is what is copied between the host's memory "
                               "and the device's");
      return;
    case Side::host:
      if (!std::holds_alternative<KernelCall>(one.what))
        fail("", "has operands in the host's memory, where only kernels run");
      else if (early[p])
        fail("", "works in the host's memory, but \"" + stage.programs[p].name +
                     "\" does not run in /apply alone; before it the host "
                     "only queues");
      return;
    }
  }

  void fail(const std::string &member, const std::string &what) {
    faults.add(at("stages", s, "programs", p, "instructions", i) + member,
               what);
  }

  const Stage &stage;
  std::size_t s, p = 0, i = 0;
  Faults &faults;
  /// Says, by program, whether `schedule` or `reduce` runs it.
  std::vector<bool> early;
};

} // namespace

void checkSides(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    StageSides(plan, s, faults).check();
}

} // namespace mtplan::runtime

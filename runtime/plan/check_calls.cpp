//===- check_calls.cpp - Operands that an instruction can work on ---------===//

#include <algorithm>

#include "runtime/plan/plan_checks.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

std::string counted(std::size_t count, const char *what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

// One instruction of one stage.
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
    // What the output should be, of as many dimensions as the input. A
    // dimension that cannot be divided is told by the shape being unequal.
    std::vector<std::int64_t> wanted = in;
    if (gathers(collective.kind))
      wanted[indexed(collective.gathered)] *= size;
    if (scatters(collective.kind)) {
      std::int64_t &length = wanted[indexed(collective.scattered)];
      if (length % size != 0)
        fail("/inputs/0/shape/" + std::to_string(collective.scattered),
             std::to_string(length) + " elements cannot be dealt to the " +
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
      fail("/outputs/0/shape", "must be " + written(wanted) + ", as " +
                                   std::string(wordOf(collective.kind)) +
                                   " over " + std::to_string(size) +
                                   " ranks makes of " + written(in) + ", got " +
                                   written(out));
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
           "must be one number, got " + written(call.inputs[0].shape));
  }

private:
  void fail(const std::string &member, const std::string &what) {
    faults.add(at("stages", s, "programs", p, "instructions", i) + member,
               what);
  }

  void checkFits(const Tensor &tensor, const char *list, std::size_t t) {
    const Buffer &buffer = plan.stages[s].buffers[indexed(tensor.buffer)];
    std::int64_t bytes = elementsOf(tensor) * bytesOf(tensor.type);
    if (bytes > buffer.size)
      fail(at(list, t, "shape"),
           written(tensor.shape) + " of " + std::string(wordOf(tensor.type)) +
               " takes " + std::to_string(bytes) + " bytes, but buffer " +
               std::to_string(tensor.buffer) + " (\"" + buffer.name +
               "\") has pieces of " + std::to_string(buffer.size));
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

  // All ranks of the stage make the call.
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

  // The micro-batches of all replicas make the batch.
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

} // namespace mtplan::runtime

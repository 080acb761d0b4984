//===- program_lines.cpp - A program of a stage as a function -------------===//

#include "codegen/source/program_lines.h"

#include <algorithm>
#include <utility>

#include "codegen/source/collective_lines.h"
#include "codegen/source/cuda_source.h"
#include "codegen/source/memory_lines.h"
#include "codegen/source/pass_schedule.h"
#include "codegen/source/schedule_lines.h"
#include "codegen/source/stream_lines.h"
#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"
#include "runtime/plan/program_runs.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

class ProgramLines {
public:
  ProgramLines(const StageContext &context, int theProgram, Needs &theNeeds)
      : plan(context.plan), stage(plan.stages[context.stage]),
        names(context.names), shared(context.shared), updates(context.updates),
        which(theProgram), program(stage.programs[indexed(which)]),
        needs(theNeeds) {
    addBatches();
  }

  void write(StageFunction &function, std::set<std::string> &overlapped) {
    writePurpose(function);
    const StreamLines order(program, names, shared.streams, text);
    CollectiveLines collectives(plan, program, names, shared, text);
    order.begin();
    bool isOverlapped = false;
    for (std::size_t i = 0; i < program.instructions.size();) {
      if (const bool is = program.instructions[i].overlapped;
          is != isOverlapped) {
        order.turnOverlap(is, plan.microBatches);
        isOverlapped = is;
      }
      std::size_t end = updates.endOfLaunch(which, i);
      if (end > i + 1) {
        order.before(i);
        updates.writeLaunch(which, i, text, needs.files);
      } else {
        end = endOfGroup(i);
        writeInstructions(i, end, order, collectives);
      }
      for (; i < end; ++i)
        order.after(i);
    }
    if (isOverlapped)
      order.turnOverlap(false, plan.microBatches);
    order.end();
    for (const std::string &stream : order.overlapped())
      overlapped.insert(stream);
    function.body = std::exchange(text, Text(1));
  }

private:
  void addBatches() {
    for (const Batch &one : program.batches) {
      const auto *call = std::get_if<KernelCall>(
          &program.instructions[indexed(one.instructions.front())].what);
      if (!call || call->kernel != "einsum")
        continue;
      const BatchSteps steps = stepsOf(stage, which, one);
      const ProductBatch batch{
          one.instructions,
          {static_cast<std::int64_t>(one.instructions.size()), steps.inputs,
           steps.outputs}};
      if (isOneCall(program, batch))
        batches.push_back(batch);
    }
  }

  /// Returns one past the last collective of the NCCL launch that begins with
  /// instruction i, or i + 1 if no launch of several collectives begins there.
  std::size_t endOfGroup(std::size_t i) const {
    for (const Batch &batch : program.batches)
      if (indexed(batch.instructions.front()) == i &&
          std::holds_alternative<Collective>(program.instructions[i].what))
        return indexed(batch.instructions.back()) + 1;
    return i + 1;
  }

  /// Writes instructions [first, end). If there are several, they are
  /// collectives of one NCCL launch.
  void writeInstructions(std::size_t first, std::size_t end,
                         const StreamLines &order,
                         CollectiveLines &collectives) {
    const bool isGroup = end > first + 1;
    if (isGroup) {
      order.before(first);
      text.comment("These " + std::to_string(end - first) +
                   " collectives are one launch of NCCL.");
      text.line("groupStart(" + order.runOf(first) + ");");
    }
    for (std::size_t i = first; i < end; ++i)
      writeInstruction(i, isGroup, order, collectives);
    if (isGroup)
      text.line("groupEnd(" + order.runOf(first) + ");");
  }

  void writeInstruction(std::size_t i, bool isInGroup, const StreamLines &order,
                        CollectiveLines &collectives) {
    const Instruction &instruction = program.instructions[i];
    const bool isCollective =
        std::holds_alternative<Collective>(instruction.what);
    const ProductBatch *batch = batchOf(i);
    const bool isFirst = batch && i == indexed(batch->instructions.front());
    const bool isWritten = isFirst || !batch;
    // The call at the first product of a batch runs all products of the batch.
    // The waits of the other products are written nevertheless, because later
    // instructions rely on these waits.
    if (!isInGroup)
      order.before(i, isWritten);
    Text call = text.nested();
    if (isFirst)
      writeBatchedProduct(program, *batch, names, call, needs);
    else if (!batch && !isCollective)
      writeCall(instruction, order.runOf(i), call);
    if (isWritten)
      writeTitle(i, call, collectives);
    if (const auto *input = std::get_if<Input>(&instruction.what);
        input && input->label == "count" && program.name.ends_with(".forward"))
      text.comment("The input is the number of targets of all ranks and "
                   "micro-batches. Loss and gradient are divided by it, so "
                   "that their sums are the mean.");
    if (isCollective)
      collectives.write(i);
    text.add(call);
  }

  const ProductBatch *batchOf(std::size_t i) const {
    for (const ProductBatch &batch : batches)
      if (std::ranges::find(batch.instructions, static_cast<int>(i)) !=
          batch.instructions.end())
        return &batch;
    return nullptr;
  }

  bool runs(const std::vector<ScheduleEntry> &entries, int least = 1) const {
    return std::ranges::any_of(entries, [&](const ScheduleEntry &entry) {
      return entry.program == which && entry.count >= least;
    });
  }
  bool isOfSchedule() const { return runs(stage.schedule); }

  std::string purposeOfUpdate() const {
    const bool gathers =
        std::ranges::any_of(program.instructions, [](const Instruction &one) {
          return std::holds_alternative<Collective>(one.what);
        });
    return gathers ? "Updates this rank's shards by AdamW, and gathers the "
                     "weights from the shards of all ranks."
                   : "Updates parameters by AdamW.";
  }

  void writePurpose(StageFunction &function) const {
    if (!program.instructions.empty() &&
        std::holds_alternative<Transfer>(program.instructions.front().what))
      return function.comment.comment(purposeOfMessages(program, names));
    if (!isOfSchedule())
      return function.comment.comment(
          runs(stage.reduce)
              ? "After all micro-batches, " + purposeOfReduction(program) + "."
              : purposeOfUpdate());
    const bool isAgain = isRecomputation(program);
    function.comment.comment(
        (isAgain ? "Computes activations again that the backward of a layer "
                   "reads: "
                 : "") +
        program.name + ", of " +
        (runs(stage.schedule, 2) ? "layer now.layer, " : "") +
        "micro-batch now.microBatch.");
  }

  /// Writes the comment above an instruction: its label, its operation, and the
  /// shapes of its operands and results on one rank.
  /// \param written  the call. The comment lists only results that the call
  ///                 names, because a fused kernel stores no intermediate
  ///                 values.
  void writeTitle(std::size_t i, const Text &written,
                  const CollectiveLines &collectives) {
    const Instruction &instruction = program.instructions[i];
    std::string title = instruction.label, summary;
    std::vector<Tensor> results = instruction.outputs;
    if (const auto *call = std::get_if<KernelCall>(&instruction.what)) {
      const ProductBatch *batch = batchOf(i);
      for (std::size_t k = 1; batch && k < batch->instructions.size(); ++k)
        title +=
            ", " + program.instructions[indexed(batch->instructions[k])].label;
      summary = call->kernel + settingsOf(*call);
      title += " (" + summary + ")" +
               (batch ? ", as one batched product; shapes of each" : "") +
               layoutOf(*call, instruction);
      const std::set<std::string> made = buffersIn(written);
      std::erase_if(results, [&](const Tensor &one) {
        return !made.contains(names.memberOf(one));
      });
    } else if (const auto *collective =
                   std::get_if<Collective>(&instruction.what)) {
      summary = std::string(wordOf(collective->kind)) + " over " +
                plan.groups[indexed(collective->group)].name;
      title += ": " + summary + ", " + collectives.causeOf(i);
    } else if (const auto *transfer =
                   std::get_if<Transfer>(&instruction.what)) {
      return text.comment(
          (transfer->sends ? "to " : "from ") +
          names.peerStage(transfer->sends, transfer->stage,
                          isBackward(program)) +
          ": " +
          names.shape(transfer->sends ? instruction.inputs[0] : results[0]));
    } else if (std::holds_alternative<Input>(instruction.what)) {
      return text.comment(title + ": input, " + names.shape(results[0]) +
                          (isBackward(program)
                               ? "; read again instead of kept from forward"
                               : ""));
    } else {
      return text.comment("adds to what the step reports: " +
                          std::get<Report>(instruction.what).label);
    }
    if (!isOfSchedule())
      return text.comment(instruction.label + ": " + summary, "", summary);
    const std::string in = shapesOf(instruction.inputs),
                      out = shapesOf(results);
    const std::string all =
        title + ": " + in + (in.empty() ? "" : " -> ") + out;
    if (text.fits("// " + all))
      return text.comment(all, "", summary);
    text.comment(title, "", summary);
    if (!in.empty())
      text.comment(in, "  in:  ");
    text.comment(out, "  out: ");
  }

  /// Returns a note on the layout that a kernel produces or requires, or "".
  std::string layoutOf(const KernelCall &call,
                       const Instruction &instruction) const {
    const auto find = [&](const char *name) -> std::int64_t {
      const auto *value = settingValue<std::int64_t>(call.settings, name);
      return value ? *value : 0;
    };
    const auto axis = [&] {
      return plan.mesh[indexed(static_cast<int>(find("axis")))].name;
    };
    if (call.kernel == "mask")
      return "; zero except on rank 0 of " + axis() +
             ", because the ranks of " + axis() + " sum what it is added to";
    if (call.kernel == "slice")
      return "; each rank of " + axis() + " takes a shard of dimension " +
             std::to_string(find("dim"));
    if (call.kernel == "embedding" &&
        names.ranksAlong(instruction.inputs[1], 0) == 1 && plan.ranks > 1)
      return "; every rank of the stage has all rows of the table";
    return "";
  }

  /// Writes the call of an instruction that is not a collective.
  /// \param run  the context of the call: "now", or "now.on(stream)"
  void writeCall(const Instruction &instruction, const std::string &run,
                 Text &to) {
    if (std::holds_alternative<KernelCall>(instruction.what)) {
      if (instruction.stream != 0)
        throw SourceError(instruction.label + ": is a kernel on stream " +
                          plan.streams[indexed(instruction.stream)] +
                          "; emitted programs run all kernels on " +
                          plan.streams.front());
      writeKernel(instruction, program, names, to, needs);
    } else if (const auto *transfer =
                   std::get_if<Transfer>(&instruction.what)) {
      writeTransfer(instruction, *transfer, run, to);
    } else if (const auto *input = std::get_if<Input>(&instruction.what)) {
      const Tensor &fed = instruction.outputs[0];
      to.call("feed", {run, quoted(input->label), names.tensor(fed),
                       names.view(fed), shared.dimensions.limitOf(*input)});
    } else {
      const std::string &label = std::get<Report>(instruction.what).label;
      const auto found = std::ranges::find(shared.reports, label);
      to.call("report", {run, std::to_string(found - shared.reports.begin()),
                         names.tensor(instruction.inputs[0])});
    }
  }

  static std::string settingsOf(const KernelCall &call) {
    std::string words;
    for (const Setting &setting : call.settings)
      if (setting.name == kThen)
        words += " then " + std::get<std::string>(setting.value);
      else if (setting.name == kBiasGradient)
        words += ", with bias gradient";
      else if (setting.name == "equation" || setting.name == "kind")
        words += " " + std::get<std::string>(setting.value);
    return words;
  }

  std::string shapesOf(const std::vector<Tensor> &tensors) const {
    std::string line;
    for (const Tensor &tensor : tensors)
      line += (line.empty() ? "" : ", ") + names.shape(tensor);
    return line;
  }

  void writeTransfer(const Instruction &instruction, const Transfer &transfer,
                     const std::string &run, Text &to) {
    const Tensor &tensor =
        transfer.sends ? instruction.inputs[0] : instruction.outputs[0];
    to.call(transfer.sends ? "send" : "receive",
            {run,
             names.line(transfer.sends, transfer.stage, isBackward(program)),
             names.message(tensor), names.elements(tensor)});
  }

  const Plan &plan;
  const Stage &stage;
  const StageNames &names;
  const SharedNames &shared;
  const UpdateLines &updates;
  const int which;
  const Program &program;
  Needs &needs;
  Text text = Text(1);
  std::vector<ProductBatch> batches;
};

} // namespace

void writeProgram(const StageContext &context, int program,
                  StageFunction &function, Needs &needs,
                  std::set<std::string> &overlapped) {
  ProgramLines(context, program, needs).write(function, overlapped);
}

} // namespace mtplan::codegen

//===- stage_source.cpp - A pipeline stage as functions -------------------===//

#include "codegen/source/stage_source.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/source/collective_lines.h"
#include "codegen/source/cuda_source.h"
#include "codegen/source/kernel_lines.h"
#include "codegen/source/memory_lines.h"
#include "codegen/source/parameter_lines.h"
#include "codegen/source/schedule_lines.h"
#include "codegen/source/shared_functions.h"
#include "codegen/source/stream_lines.h"
#include "codegen/source/update_lines.h"
#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"
#include "runtime/plan/program_runs.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

class StageSource {
public:
  StageSource(const Plan &thePlan, std::size_t theStage,
              const SharedNames &theShared)
      : plan(thePlan), number(static_cast<int>(theStage)),
        stage(plan.stages[theStage]), shared(theShared),
        names(plan, theStage, shared.dimensions, shared.settings) {
    addBatches();
    std::set<std::string> taken = {
        "buf",    "initialise", "gradients", "wideGradients",
        "update", "squares",    "open",      "forwardAndBackward"};
    for (const Program &program : stage.programs)
      identifiers.push_back(identifierFor(functionNameOf(program), taken));
    updates.emplace(plan, stage, names, identifiers, taken);
  }

  /// Writes the functions of the stage's programs.
  std::vector<StageFunction> functions() {
    std::vector<StageFunction> all(stage.programs.size());
    for (std::size_t p = 0; p < all.size(); ++p) {
      all[p].name = identifiers[p];
      writeProgram(static_cast<int>(p), all[p]);
    }
    return all;
  }

  /// Writes the functions of programs that stages do not share, and the stage's
  /// parameters, step, update and memory.
  void write(const std::vector<StageFunction> &functions, StageTexts &texts) {
    const std::string space = "namespace stage" + std::to_string(number);
    for (Text *one : {&texts.step, &texts.memory, &texts.parameters})
      one->line(space + " {");
    texts.parameters.line();
    writeInitialise(plan, stage, names, texts.parameters);
    writeSquares(plan, stage, names, texts.parameters);
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      updates->writeLists(static_cast<int>(p), texts.parameters);
    std::vector<std::string> calls;
    for (const StageFunction &one : functions) {
      calls.push_back(one.call);
      if (!one.isTemplate && !one.isShared)
        add(one, texts.step);
    }
    writeStep(calls, texts.step);
    writeUpdate(calls, texts.step);
    writeMemory(functions, texts);
    for (Text *one : {&texts.step, &texts.memory, &texts.parameters}) {
      one->line();
      one->line("} // " + space);
      one->line();
    }
    texts.needed.merge(needs.files);
  }

  static void add(const StageFunction &function, Text &to) {
    to.line();
    to.add(function.comment);
    if (function.isTemplate)
      to.line("template <typename buf>");
    to.add(function.text);
  }

private:
  void addBatches() {
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      for (const Batch &one : stage.programs[p].batches) {
        const Program &program = stage.programs[p];
        const auto *call = std::get_if<KernelCall>(
            &program.instructions[indexed(one.instructions.front())].what);
        if (!call || call->kernel != "einsum")
          continue;
        const BatchSteps steps = stepsOf(stage, static_cast<int>(p), one);
        const ProductBatch batch{
            one.instructions,
            {static_cast<std::int64_t>(one.instructions.size()), steps.inputs,
             steps.outputs}};
        if (isOneCall(program, batch))
          batches.emplace_back(&program, batch);
      }
  }

  /// Returns one past the last collective of the launch of NCCL that begins
  /// with instruction i, or i + 1 if no launch of several begins there.
  static std::size_t endOfGroup(const Program &program, std::size_t i) {
    for (const Batch &batch : program.batches)
      if (indexed(batch.instructions.front()) == i &&
          std::holds_alternative<Collective>(program.instructions[i].what))
        return indexed(batch.instructions.back()) + 1;
    return i + 1;
  }

  /// Returns the first instruction, from i on, that begins such a launch, or
  /// the number of instructions.
  static std::size_t nextGroup(const Program &program, std::size_t i) {
    while (i < program.instructions.size() && endOfGroup(program, i) == i + 1)
      ++i;
    return i;
  }

  void writeProgram(int which, StageFunction &function) {
    const Program &program = stage.programs[indexed(which)];
    writePurpose(which, function);
    text.open("void " + function.name + "(const Run &now) {");
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
      std::size_t end = updates->endOfLaunch(which, i);
      if (end > i + 1) {
        order.before(i);
        updates->writeLaunch(which, i, text, needs.files);
      } else if (end = endOfGroup(program, i); end > i + 1) {
        writeInstructions(program, i, end, order, collectives);
      } else if (end = collectives.endOfTable(i, nextGroup(program, i), false);
                 end > i) {
        collectives.writeTable(i, end, false);
        i = end;
      } else {
        end = i + 1;
        writeInstructions(program, i, end, order, collectives);
      }
      for (; i < end; ++i)
        order.after(i);
    }
    if (isOverlapped)
      order.turnOverlap(false, plan.microBatches);
    order.end();
    for (const std::string &stream : order.overlapped())
      overlapped.insert(stream);
    text.close();
    function.text = std::exchange(text, {});
  }

  /// Writes instructions [first, end). Several instructions are collectives of
  /// one launch of NCCL.
  void writeInstructions(const Program &program, std::size_t first,
                         std::size_t end, const StreamLines &order,
                         CollectiveLines &collectives) {
    const bool isGroup = end > first + 1;
    if (isGroup) {
      text.comment("These " + std::to_string(end - first) +
                   " collectives are one launch of NCCL.");
      order.before(first);
      text.line("groupStart(" + order.runOf(first) + ");");
    }
    for (std::size_t i = first; i < end;) {
      const std::size_t next =
          isGroup ? collectives.endOfTable(i, end, true) : i;
      if (next > i)
        collectives.writeTable(i, next, true);
      else
        writeInstruction(program, i, isGroup, order, collectives);
      i = std::max(next, i + 1);
    }
    if (isGroup)
      text.line("groupEnd(" + order.runOf(first) + ");");
  }

  void writeInstruction(const Program &program, std::size_t i, bool isInGroup,
                        const StreamLines &order,
                        CollectiveLines &collectives) {
    const Instruction &instruction = program.instructions[i];
    const bool isCollective =
        std::holds_alternative<Collective>(instruction.what);
    const ProductBatch *batch = batchOf(program, i);
    const bool isFirst = batch && i == indexed(batch->instructions.front());
    Text call = text.nested();
    if (isFirst)
      writeBatchedProduct(program, *batch, names, call, needs);
    else if (!batch && !isCollective)
      writeCall(program, instruction, order.runOf(i), call);
    if (isFirst || !batch)
      writeTitle(program, i, call, collectives);
    if (const auto *input = std::get_if<Input>(&instruction.what);
        input && input->label == "count" && program.name.ends_with(".forward"))
      text.comment(
          "It is the number of targets of all ranks and micro-batches. "
          "Loss and gradient are divided by it, so that their sums "
          "are the mean.");
    if (!isInGroup)
      order.before(i);
    if (isCollective)
      collectives.write(i);
    text.add(call);
  }

  /// Returns the batched product that contains instruction i, or null.
  const ProductBatch *batchOf(const Program &program, std::size_t i) const {
    for (const auto &[its, batch] : batches)
      if (its == &program &&
          std::ranges::find(batch.instructions, static_cast<int>(i)) !=
              batch.instructions.end())
        return &batch;
    return nullptr;
  }

  /// Writes the comment above a program's function. The program runs a segment
  /// forward or backward, reduces gradients, or updates parameters.
  void writePurpose(int which, StageFunction &function) const {
    const Program &one = stage.programs[indexed(which)];
    const std::string &program = one.name;
    const auto runs = [&](const std::vector<ScheduleEntry> &entries,
                          int least = 1) {
      return std::ranges::any_of(entries, [&](const ScheduleEntry &entry) {
        return entry.program == which && entry.count >= least;
      });
    };
    function.isOfSchedule = runs(stage.schedule);
    const bool repeats = runs(stage.schedule, 2);
    if (functionNameOf(one) != program)
      return function.comment.comment(purposeOfMessages(one));
    function.comment.comment(
        program +
        (function.isOfSchedule
             ? std::string(", of ") + (repeats ? "layer now.layer, " : "") +
                   "micro-batch now.microBatch."
         : runs(stage.reduce)
             ? ": after all micro-batches, " + purposeOfReduction(one) + "."
             : ": updates parameters."));
  }

  /// Writes the comment above an instruction: what it does, and the shapes of
  /// its operands and results on one rank.
  /// \param written  the call. Only results that the call names are listed,
  ///                 because a fused kernel stores no intermediate values.
  void writeTitle(const Program &program, std::size_t i, const Text &written,
                  const CollectiveLines &collectives) {
    const Instruction &instruction = program.instructions[i];
    std::string title = instruction.label;
    std::vector<Tensor> results = instruction.outputs;
    if (const auto *call = std::get_if<KernelCall>(&instruction.what)) {
      const ProductBatch *batch = batchOf(program, i);
      for (std::size_t k = 1; batch && k < batch->instructions.size(); ++k)
        title +=
            ", " + program.instructions[indexed(batch->instructions[k])].label;
      title += " (" + call->kernel + settingsOf(*call) + ")" +
               (batch ? ", as one batched product; shapes of each" : "") +
               layoutOf(*call, instruction);
      const std::set<std::string> made = buffersIn(written);
      std::erase_if(results, [&](const Tensor &one) {
        return !made.contains(names.buffer(indexed(one.buffer)));
      });
    } else if (const auto *collective =
                   std::get_if<Collective>(&instruction.what)) {
      title += ": " + std::string(wordOf(collective->kind)) + " over " +
               plan.groups[indexed(collective->group)].name + ", " +
               collectives.causeOf(i);
    } else if (const auto *transfer =
                   std::get_if<Transfer>(&instruction.what)) {
      return text.comment(
          (transfer->sends ? "to stage " : "from stage ") +
          std::to_string(transfer->stage) + ": " +
          names.shape(transfer->sends ? instruction.inputs[0] : results[0]));
    } else if (std::holds_alternative<Input>(instruction.what)) {
      return text.comment(title + ": input, " + names.shape(results[0]) +
                          (program.name.ends_with(".backward")
                               ? "; read again instead of kept from forward"
                               : ""));
    } else {
      return text.comment("adds to what the step reports: " +
                          std::get<Report>(instruction.what).label);
    }
    const std::string in = shapesOf(instruction.inputs),
                      out = shapesOf(results);
    const std::string all =
        title + ": " + in + (in.empty() ? "" : " -> ") + out;
    if (text.fits("// " + all))
      return text.comment(all);
    text.comment(title);
    if (!in.empty())
      text.comment(in, "  in:  ");
    text.comment(out, "  out: ");
  }

  /// Returns the reason for a layout, for the comment above a kernel that makes
  /// or needs it, or "".
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

  /// Writes the call of an instruction that is no collective.
  /// \param run  the context of the call: "now", or "now.on(stream)"
  void writeCall(const Program &program, const Instruction &instruction,
                 const std::string &run, Text &to) {
    if (std::holds_alternative<KernelCall>(instruction.what)) {
      if (instruction.stream != 0)
        throw SourceError(
            instruction.label + ": is a kernel on stream " +
            plan.streams[indexed(instruction.stream)] +
            "; in a program that stands alone kernels are all on " +
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
    const std::pair<int, int> ends = transfer.sends
                                         ? std::pair(number, transfer.stage)
                                         : std::pair(transfer.stage, number);
    to.call(transfer.sends ? "send" : "receive",
            {run,
             "kLine" + std::to_string(ends.first) + "To" +
                 std::to_string(ends.second),
             names.tensor(tensor), names.elements(tensor)});
  }

  /// \param calls  how to call the function of each program
  void writeStep(const std::vector<std::string> &calls, Text &to) const {
    to.line();
    to.comment("Runs forward and backward of all micro-batches" +
               std::string(plan.stages.size() > 1
                               ? ", in the order of the pipeline schedule"
                               : "") +
               ", then reduces gradients over ranks.");
    to.open("void forwardAndBackward(Rank &rank) {");
    Text schedule = to.nested();
    const int inFlight = microBatchesInFlight(stage);
    writeSchedule(plan, stage.schedule, calls, schedule, inFlight);
    if (schedule.text().find("inFlight") != std::string::npos)
      to.line("constexpr int inFlight = " + std::to_string(inFlight) +
              "; // micro-batches that run forward before the first backward");
    to.add(schedule);
    if (!overlapped.empty())
      to.line("rank.streams.join(" +
              listText(std::vector(overlapped.begin(), overlapped.end())) +
              ");");
    writeSchedule(plan, stage.reduce, calls, to);
    to.close();
  }

  void writeUpdate(const std::vector<std::string> &calls, Text &to) const {
    to.line();
    to.comment("Updates all parameters, after squares() and the all-gather "
               "of the gradient norm. AdamW multiplies each gradient by "
               "rank.numbers->update.gradientFactor, which clips it.");
    to.open("void update(Rank &rank) {");
    writeSchedule(plan, updates->schedule(), calls, to);
    to.close();
  }

  void writeMemory(const std::vector<StageFunction> &functions,
                   StageTexts &texts) const {
    Text open;
    writeOpen(stage, needs, open);
    std::vector<const Text *> readers = {&texts.parameters, &open};
    for (const StageFunction &one : functions)
      readers.push_back(&one.text);
    texts.memory.line();
    writeBuffers(stage, names, readers, texts.memory);
    for (const StageFunction &one : functions)
      if (!one.buffers.text().empty()) {
        texts.memory.line();
        texts.memory.add(one.buffers);
      }
    texts.memory.add(open);
  }

  const Plan &plan;
  const int number;
  const Stage &stage;
  const SharedNames &shared;
  Text text; ///< the function that is being written
  Needs needs;
  const StageNames names;
  std::vector<std::string> identifiers; ///< of the functions, by program
  std::optional<UpdateLines> updates;   ///< made after `identifiers`
  std::vector<std::pair<const Program *, ProductBatch>> batches;
  std::set<std::string> overlapped; ///< streams joined after the schedule
};

} // namespace

void writeStages(const Plan &plan, const SharedNames &shared,
                 StageTexts &texts) {
  std::vector<std::unique_ptr<StageSource>> stages;
  std::vector<std::vector<StageFunction>> functions;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    stages.push_back(std::make_unique<StageSource>(plan, s, shared));
    functions.push_back(stages.back()->functions());
  }
  shareFunctions(functions);
  Text templates;
  for (const std::vector<StageFunction> &stage : functions)
    for (const StageFunction &one : stage)
      if (one.isTemplate)
        StageSource::add(one, templates);
  if (!templates.text().empty()) {
    texts.step.comment("Functions that several stages share: each stage gives "
                       "the buffers as the argument of the template.");
    texts.step.add(templates);
    texts.step.line();
  }
  for (std::size_t s = 0; s < stages.size(); ++s)
    stages[s]->write(functions[s], texts);
}

} // namespace mtplan::codegen

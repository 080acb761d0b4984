//===- stage_source.cpp - A pipeline stage as functions -------------------===//

#include "codegen/source/stage_source.h"

#include <algorithm>
#include <optional>

#include "codegen/source/collective_causes.h"
#include "codegen/source/cuda_source.h"
#include "codegen/source/kernel_lines.h"
#include "codegen/source/schedule_lines.h"
#include "codegen/source/stream_lines.h"
#include "codegen/source/update_lines.h"
#include "runtime/plan/index.h"
#include "runtime/plan/joint_collectives.h"
#include "runtime/plan/plan_words.h"
#include "runtime/plan/then_setting.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

const char *arenaWord(MemoryClass memoryClass) {
  switch (memoryClass) {
  case MemoryClass::parameters:
    return "kParameters";
  case MemoryClass::optimizer:
    return "kOptimizer";
  case MemoryClass::gradients:
    return "kGradients";
  case MemoryClass::activations:
    return "kActivations";
  case MemoryClass::workspace:
    return "kWorkspace";
  case MemoryClass::host:
    break;
  }
  throw SourceError("an optimizer that is offloaded to the host's memory "
                    "cannot be written into a program that stands alone yet; "
                    "plan with --offload none");
}

std::int64_t extent(const std::vector<std::int64_t> &shape, int first,
                    std::size_t last) {
  std::int64_t all = 1;
  for (std::size_t d = indexed(first); d < last; ++d)
    all *= shape[d];
  return all;
}

class StageSource {
public:
  StageSource(const Plan &thePlan, std::size_t theStage,
              const SharedWords &theShared, Text &theText)
      : plan(thePlan), number(static_cast<int>(theStage)),
        stage(plan.stages[theStage]), shared(theShared), text(theText),
        names(plan, stage), joints(jointCollectives(plan, stage)) {
    std::set<std::string> taken = {
        "buf",    "initialise", "gradients", "wideGradients",
        "update", "squares",    "open",      "forwardAndBackward"};
    for (const Program &program : stage.programs)
      functions.push_back(identifierFor(program.name, taken));
    updates.emplace(stage, names, functions, taken);
  }

  /// \return files of the runtime that it calls
  std::set<std::string> write() {
    text.line("namespace stage" + std::to_string(number) + " {");
    text.line();
    writeBuffers();
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      writeProgram(static_cast<int>(p));
    writeOpen();
    writeInitialise();
    writeStep();
    writeSquares();
    writeUpdate();
    text.line();
    text.line("} // namespace stage" + std::to_string(number));
    return std::move(needs.files);
  }

private:
  // The first tensor of each buffer says what it holds.
  std::vector<const Tensor *> tensorsOfBuffers() const {
    std::vector<const Tensor *> tensors(stage.buffers.size(), nullptr);
    auto see = [&](const Tensor &tensor) {
      const Tensor *&first = tensors[indexed(tensor.buffer)];
      if (!first)
        first = &tensor;
    };
    for (const Parameter &parameter : stage.parameters) {
      for (const Tensor *tensor :
           {&parameter.value, &parameter.gradient, &parameter.firstMoment,
            &parameter.secondMoment})
        see(*tensor);
      if (parameter.master)
        see(*parameter.master);
    }
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        for (const auto *some : {&instruction.inputs, &instruction.outputs})
          for (const Tensor &tensor : *some)
            see(tensor);
    return tensors;
  }

  void writeBuffers() {
    text.comment("Where everything lies: arena, offset and bytes; where there "
                 "are several, entries by layer and their stride, slots by "
                 "micro-batch and theirs. Shapes are of one rank; /tp: cut "
                 "over tp.");
    text.line("namespace buf {");
    const std::vector<const Tensor *> tensors = tensorsOfBuffers();
    for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
      const Buffer &one = stage.buffers[b];
      std::string line =
          "inline constexpr Buffer " + names.buffer(b) + "{" +
          arenaWord(stage.arenas[indexed(one.arena)].memoryClass) + ", " +
          std::to_string(one.offset) + ", " + std::to_string(one.size);
      if (one.entries > 1 || one.slots > 1)
        line += ", " + std::to_string(one.entries) + ", " +
                std::to_string(one.entryStride);
      if (one.slots > 1)
        line += ", " + std::to_string(one.slots) + ", " +
                std::to_string(one.slotStride);
      line += "};";
      if (tensors[b])
        line += " // " + names.shape(*tensors[b]);
      text.line(line);
    }
    text.line("} // namespace buf");
  }

  void writeProgram(int which) {
    const Program &program = stage.programs[indexed(which)];
    updates->writeLists(which, text, [&](const Instruction &instruction) {
      return titleOf(program, instruction);
    });
    text.line();
    text.open("void " + functions[indexed(which)] + "(const Run &now) {");
    const StreamLines order(program, names, shared.streams, text);
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
      } else {
        end = endOfGroup(joints, which, i);
        writeInstructions(program, i, end, order);
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
  }

  void writeInstructions(const Program &program, std::size_t first,
                         std::size_t end, const StreamLines &order) {
    const bool isGroup = end > first + 1;
    if (isGroup) {
      text.comment("NCCL makes one launch of these " +
                   std::to_string(end - first) + ": none waits for another.");
      order.before(first);
      text.line("groupStart(" + order.runOf(first) + ");");
    }
    for (std::size_t i = first; i < end; ++i) {
      const Instruction &instruction = program.instructions[i];
      text.comment(titleOf(program, instruction));
      if (!isGroup)
        order.before(i);
      writeInstruction(program, instruction, order.runOf(i));
    }
    if (isGroup)
      text.line("groupEnd(" + order.runOf(first) + ");");
  }

  // What it is, of which shapes, and for a collective why.
  std::string titleOf(const Program &program,
                      const Instruction &instruction) const {
    const std::string &label = instruction.label;
    if (const auto *call = std::get_if<KernelCall>(&instruction.what))
      return label + " (" + call->kernel + settingsOf(*call) +
             "): " + shapesOf(instruction);
    if (const auto *call = std::get_if<Collective>(&instruction.what))
      return label + ": " + std::string(wordOf(call->kind)) + " over " +
             plan.groups[indexed(call->group)].name + ", " +
             causeOf(*call, program, instruction) + "; " +
             shapesOf(instruction);
    if (const auto *transfer = std::get_if<Transfer>(&instruction.what))
      return label + ": " + (transfer->sends ? "to stage " : "from stage ") +
             std::to_string(transfer->stage) + ", channel " +
             std::to_string(transfer->channel) + "; " +
             names.shape(transfer->sends ? instruction.inputs[0]
                                         : instruction.outputs[0]);
    if (std::holds_alternative<Input>(instruction.what))
      return label + ": input, " + names.shape(instruction.outputs[0]);
    return "told at the end of the step: " +
           std::get<Report>(instruction.what).label;
  }

  /// \param run  "now", or that on a stream
  void writeInstruction(const Program &program, const Instruction &instruction,
                        const std::string &run) {
    if (std::holds_alternative<KernelCall>(instruction.what)) {
      if (instruction.stream != 0)
        throw SourceError(
            instruction.label + ": is a kernel on stream " +
            plan.streams[indexed(instruction.stream)] +
            "; in a program that stands alone kernels are all on " +
            plan.streams.front());
      writeKernel(instruction, program, names, text, needs);
    } else if (const auto *collective =
                   std::get_if<Collective>(&instruction.what)) {
      writeCollective(instruction, *collective, run);
    } else if (const auto *transfer =
                   std::get_if<Transfer>(&instruction.what)) {
      writeTransfer(instruction, *transfer, run);
    } else if (const auto *input = std::get_if<Input>(&instruction.what)) {
      const Tensor &to = instruction.outputs[0];
      text.call("feed", {run, quoted(input->label), names.tensor(to),
                         names.view(to), std::to_string(input->limit)});
    } else {
      const std::string &label = std::get<Report>(instruction.what).label;
      const auto found = std::ranges::find(shared.reports, label);
      text.call("report", {run, std::to_string(found - shared.reports.begin()),
                           names.tensor(instruction.inputs[0])});
    }
  }

  static std::string settingsOf(const KernelCall &call) {
    std::string words;
    for (const Setting &setting : call.settings)
      if (setting.name == kThen)
        words += " then " + std::get<std::string>(setting.value);
      else if (setting.name == kBiasGradient)
        words += ", beside it sum";
      else if (setting.name == "equation" || setting.name == "kind")
        words += " " + std::get<std::string>(setting.value);
    return words;
  }

  std::string shapesOf(const Instruction &instruction) const {
    std::string line;
    for (const Tensor &tensor : instruction.inputs)
      line += (line.empty() ? "" : ", ") + names.shape(tensor);
    std::string results;
    for (const Tensor &tensor : instruction.outputs)
      results += (results.empty() ? "" : ", ") + names.shape(tensor);
    return line + (line.empty() ? "-> " : " -> ") + results;
  }

  void writeCollective(const Instruction &instruction, const Collective &call,
                       const std::string &run) {
    const Tensor &in = instruction.inputs[0], &out = instruction.outputs[0];
    const std::string how = call.reduction == Reduction::sum   ? "ncclSum"
                            : call.reduction == Reduction::max ? "ncclMax"
                                                               : "ncclAvg";
    const auto ranks = static_cast<std::int64_t>(
        plan.groups[indexed(call.group)].communicators.front().size());
    std::vector<std::string> arguments = {run,
                                          shared.groups[indexed(call.group)],
                                          names.tensor(in), names.tensor(out)};
    auto add = [&](std::int64_t size) {
      arguments.push_back(std::to_string(size));
    };
    auto addAround = [&](const Tensor &tensor, int dimension,
                         std::int64_t parts) {
      add(extent(tensor.shape, 0, indexed(dimension)));
      add(extent(tensor.shape, dimension, tensor.shape.size()) / parts);
    };
    switch (call.kind) {
    case CollectiveKind::allReduce:
      add(elementsOf(in));
      arguments.push_back(how);
      return text.call("allReduce", arguments);
    case CollectiveKind::allGather:
      addAround(in, call.gathered, 1);
      return text.call("allGather", arguments);
    case CollectiveKind::reduceScatter:
      addAround(out, call.scattered, 1);
      arguments.push_back(how);
      return text.call("reduceScatter", arguments);
    case CollectiveKind::allToAll:
      addAround(in, call.scattered, ranks);
      addAround(out, call.gathered, ranks);
      return text.call("allToAll", arguments);
    }
  }

  void writeTransfer(const Instruction &instruction, const Transfer &transfer,
                     const std::string &run) {
    const Tensor &tensor =
        transfer.sends ? instruction.inputs[0] : instruction.outputs[0];
    const std::pair<int, int> ends = transfer.sends
                                         ? std::pair(number, transfer.stage)
                                         : std::pair(transfer.stage, number);
    text.call(transfer.sends ? "send" : "receive",
              {run,
               "kLine" + std::to_string(ends.first) + "To" +
                   std::to_string(ends.second),
               names.tensor(tensor), std::to_string(elementsOf(tensor))});
  }

  void writeOpen() {
    text.line();
    text.comment("Its memory, and what cuBLASLt does its products by.");
    text.open("void open(Rank &rank) {");
    for (const Arena &arena : stage.arenas)
      if (arena.size > 0)
        text.line(std::string("reserve(rank, ") + arenaWord(arena.memoryClass) +
                  ", " + std::to_string(arena.size) + ");");
    if (const std::int64_t bytes = bytesOfInputs(); bytes > 0)
      text.line("rank.inputs.open(" + std::to_string(bytes) + ");");
    writeChoices(needs, text);
    text.close();
  }

  // Of all micro-batches of a step.
  std::int64_t bytesOfInputs() const {
    std::int64_t bytes = 0;
    for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *entries)
        for (const Instruction &instruction :
             stage.programs[indexed(entry.program)].instructions)
          if (std::holds_alternative<Input>(instruction.what))
            bytes += entry.count * roomFor(instruction.outputs[0]);
    return bytes;
  }

  // Calls `body` with braces around, once for each copy of a parameter.
  template <typename Body> void forCopies(int copies, Body body) {
    if (copies > 1)
      text.open("for (int layer = 0; layer < " + std::to_string(copies) +
                "; ++layer) {");
    else
      text.open("{");
    text.line(std::string("const Run now{rank, ") +
              (copies > 1 ? "layer" : "0") + ", 0};");
    body();
    text.close();
  }

  // Parameters with as many copies share a loop.
  template <typename Write>
  void forParameters(const std::vector<const Parameter *> &all, Write write) {
    for (std::size_t p = 0; p < all.size();) {
      const int copies = all[p]->copies;
      forCopies(copies, [&] {
        for (; p < all.size() && all[p]->copies == copies; ++p)
          write(*all[p]);
      });
    }
  }

  void writeInitialise() {
    text.line();
    text.comment("Weights, and their masters, before the first step.");
    text.open("void initialise(Rank &rank, const Initialisation &how) {");
    std::vector<const Parameter *> all;
    for (const Parameter &parameter : stage.parameters)
      all.push_back(&parameter);
    forParameters(all, [&](const Parameter &parameter) {
      const std::string copy =
          (parameter.firstCopy > 0 ? std::to_string(parameter.firstCopy) + " + "
                                   : std::string()) +
          "now.layer";
      auto fill = [&](const Tensor &tensor) {
        text.call("initial", {"now", "how", quoted(parameter.label), copy,
                              quoted(parameter.init), names.tensor(tensor),
                              names.view(tensor)});
      };
      fill(parameter.value);
      if (parameter.master)
        fill(*parameter.master);
    });
    text.close();
  }

  void writeStep() {
    text.line();
    text.comment("A step up to where gradients are whole.");
    text.open("void forwardAndBackward(Rank &rank) {");
    writeSchedule(stage.schedule, functions, text);
    if (!overlapped.empty())
      text.line("rank.streams.join(" +
                listText(std::vector<std::string>(overlapped.begin(),
                                                  overlapped.end())) +
                ");");
    writeSchedule(stage.reduce, functions, text);
    text.close();
  }

  // One launch adds up all of a type that it computes in.
  void writeSquares() {
    std::vector<const Parameter *> narrow, wide;
    for (const Parameter &parameter : stage.parameters)
      if (!parameter.countedElsewhere)
        (parameter.gradient.type == ElementType::f64 ? wide : narrow)
            .push_back(&parameter);
    std::vector<std::pair<const char *, const char *>> sums; // list, type
    if (!narrow.empty())
      sums.emplace_back("gradients", "float");
    if (!wide.empty())
      sums.emplace_back("wideGradients", "double");
    for (const auto &[list, type] : sums) {
      text.line();
      text.comment("Gradients, each element on one rank; what an earlier stage "
                   "has, too, is counted there.");
      text.open("void " + std::string(list) +
                "(Rank &rank, std::vector<Squared> &all) {");
      forParameters(
          list == std::string("gradients") ? narrow : wide,
          [&](const Parameter &parameter) { writeSquared(parameter); });
      text.close();
    }
    text.line();
    text.comment("Their squares, of which the norm is made.");
    text.open("void squares([[maybe_unused]] Rank &rank) {");
    for (const auto &[list, type] : sums)
      text.call("addSquares<" + std::string(type) + ">",
                {"rank", quoted(list), list});
    text.close();
  }

  void writeSquared(const Parameter &parameter) {
    std::string counts;
    for (const int axis : parameter.alike)
      if (plan.mesh[indexed(axis)].size > 1)
        counts += (counts.empty() ? "" : " && ") +
                  ("now.at(" + names.axis(axis)) + ") == 0";
    if (!counts.empty())
      text.open("if (" + counts + ")");
    text.call("all.push_back",
              {"{" + names.tensor(parameter.gradient),
               std::to_string(elementsOf(parameter.gradient))},
              "});");
    if (!counts.empty())
      text.leave();
  }

  void writeUpdate() {
    text.line();
    text.open("void update(Rank &rank) {");
    writeSchedule(updates->schedule(), functions, text);
    text.close();
  }

  const Plan &plan;
  const int number;
  const Stage &stage;
  const SharedWords &shared;
  Text &text;
  Needs needs;
  const StageNames names;
  std::vector<std::string> functions; ///< by program
  std::optional<UpdateLines> updates; ///< of the functions
  const std::vector<JointCollectives> joints;
  std::set<std::string> overlapped; ///< streams that the schedule's end joins
};

} // namespace

void writeStage(const Plan &plan, std::size_t stage, const SharedWords &shared,
                Text &text, std::set<std::string> &needed) {
  needed.merge(StageSource(plan, stage, shared, text).write());
}

} // namespace mtplan::codegen

//===- run_trace.cpp - Measured timelines for Perfetto --------------------===//

#include "tools/run/run_trace.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planner/index.h"
#include "runtime/executor/rank_place.h"
#include "runtime/plan/instruction_class.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::tools {

using planner::at;

using namespace runtime;

namespace {

// Returns "rank 3 (dp 1, tp 1)".
std::string nameOf(const Plan &plan, int rank, const RankPlace &place) {
  std::string places;
  for (std::size_t axis = 0; axis < plan.mesh.size(); ++axis)
    if (plan.mesh[axis].size > 1)
      places += fmt::format("{}{} {}", places.empty() ? "" : ", ",
                            plan.mesh[axis].name,
                            place.placeOn(static_cast<int>(axis)));
  return fmt::format("rank {}{}", rank,
                     places.empty() ? "" : " (" + places + ")");
}

// Returns "all_reduce over tp", "einsum" or "send to stage 1".
std::string kindOf(const Plan &plan, const Instruction &instruction) {
  if (const auto *call = std::get_if<KernelCall>(&instruction.what))
    return call->kernel;
  if (const auto *call = std::get_if<Collective>(&instruction.what))
    return fmt::format("{} over {}", wordOf(call->kind),
                       plan.groups[at(call->group)].name);
  if (const auto *transfer = std::get_if<Transfer>(&instruction.what))
    return fmt::format("{} stage {}",
                       transfer->sends ? "send to" : "receive from",
                       transfer->stage);
  return std::holds_alternative<Input>(instruction.what) ? "input" : "report";
}

std::int64_t bytesIn(const Instruction &instruction) {
  std::int64_t bytes = 0;
  for (const Tensor &tensor : instruction.inputs) {
    std::int64_t one = bytesOf(tensor.type);
    for (std::int64_t size : tensor.shape)
      one *= size;
    bytes += one;
  }
  return bytes;
}

// Replaces the star by the layer's number.
std::string labelOf(const Instruction &instruction, std::int64_t copy) {
  std::string label = instruction.label;
  if (const std::size_t star = label.find('*'); star != std::string::npos)
    label.replace(star, 1, std::to_string(copy));
  return label;
}

void addRank(Trace &trace, const Plan &plan, int rank, std::int64_t step,
             const std::vector<InstructionRun> &runs) {
  const RankPlace place(plan, rank);
  const Stage &stage = plan.stages[at(place.stage())];
  trace.labels.push_back(
      {rank, TraceLabel::kWholeProcess, nameOf(plan, rank, place)});
  std::set<int> streams;
  for (const InstructionRun &run : runs) {
    const Program &program = stage.programs[at(run.program)];
    const Instruction &instruction = program.instructions[at(run.instruction)];
    if (streams.insert(instruction.stream).second)
      trace.labels.push_back(
          {rank, instruction.stream, plan.streams[at(instruction.stream)]});
    TraceEvent event;
    event.process = rank;
    event.thread = instruction.stream;
    event.name = labelOf(instruction, program.firstCopy + run.copy);
    event.category = classOf(plan, instruction);
    event.start = run.start;
    event.duration = run.end - run.start;
    event.args = {{"kind", kindOf(plan, instruction)},
                  {"program", program.name},
                  {"micro_batch", std::int64_t{run.microBatch}},
                  {"bytes", bytesIn(instruction)},
                  {"step", step}};
    trace.events.push_back(std::move(event));
  }
}

void addPrediction(Trace &trace, int first, const Prediction &predicted) {
  std::set<int> stages;
  for (const PredictedStream &stream : predicted.streams) {
    if (stages.insert(stream.stage).second)
      trace.labels.push_back(
          {first + stream.stage, TraceLabel::kWholeProcess,
           fmt::format("predicted: stage {}", stream.stage)});
    trace.labels.push_back({first + stream.stage, stream.stream, stream.name});
  }
  for (const PredictedTask &task : predicted.tasks) {
    TraceEvent event;
    event.process = first + task.stage;
    event.thread = task.stream;
    event.name = task.what;
    if (task.microBatch >= 0)
      event.name += fmt::format(" {}", task.microBatch);
    event.category = "predicted";
    event.start = task.start;
    event.duration = task.duration;
    if (task.microBatch >= 0)
      event.args.emplace_back("micro_batch", std::int64_t{task.microBatch});
    if (task.segment >= 0)
      event.args.emplace_back("segment", std::int64_t{task.segment});
    trace.events.push_back(std::move(event));
  }
}

} // namespace

Trace runTraceOf(const Plan &plan, const Traces &traces, std::int64_t step,
                 const Prediction *predicted) {
  Trace trace;
  for (std::size_t rank = 0; rank < traces.size(); ++rank)
    addRank(trace, plan, static_cast<int>(rank), step, traces[rank]);
  if (predicted)
    addPrediction(trace, plan.ranks, *predicted);
  return trace;
}

} // namespace mtplan::tools

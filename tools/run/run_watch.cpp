//===- run_watch.cpp - Times and output of a run --------------------------===//

#include "tools/run/run_watch.h"

#include <algorithm>
#include <chrono>
#include <ostream>
#include <set>
#include <type_traits>

#include <fmt/format.h>

#include "planner/integers.h"
#include "runtime/executor/rank_coordinates.h"
#include "runtime/metrics/step_record.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"
#include "tools/exchange/chrome_trace.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using namespace runtime;
using planner::at;

namespace {

std::string tableOf(const MeanTimes &times, const Prediction *predicted) {
  Table table;
  table.add({fmt::format("a step, mean of {} and all ranks", times.steps),
             "measured", "share", predicted ? "predicted" : "",
             predicted ? "measured / predicted" : ""});
  const auto add = [&](const std::string &name, double measured,
                       double expected) {
    std::vector<std::string> row{
        name, timeText({measured}),
        percentText(times.step > 0.0 ? measured / times.step : 0.0)};
    if (predicted) {
      row.push_back(expected > 0.0 ? timeText({expected}) : "-");
      if (expected > 0.0)
        row.push_back(fmt::format("{:.2f}", measured / expected));
    }
    table.add(std::move(row));
  };
  const auto expectedOf = [&](const std::string &name) {
    double seconds = 0.0;
    if (predicted)
      for (const auto &[known, value] : predicted->classes)
        seconds += known == name ? value : 0.0;
    return seconds;
  };
  for (const auto &[name, measured] : times.classes)
    if (const double expected = expectedOf(name);
        measured > 0.0 || expected > 0.0)
      add("  " + name, measured, expected);
  add("  step", times.step, predicted ? predicted->step : 0.0);
  return table.print("");
}

// Returns "rank 3 (dp 1, tp 1)".
std::string nameOf(const Plan &plan, int rank, const RankCoordinates &place) {
  std::string places;
  for (std::size_t axis = 0; axis < plan.mesh.size(); ++axis)
    if (plan.mesh[axis].size > 1)
      places += fmt::format("{}{} {}", places.empty() ? "" : ", ",
                            plan.mesh[axis].name,
                            place.coordinateOn(static_cast<int>(axis)));
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

std::string labelOf(const Instruction &instruction, std::int64_t copy) {
  std::string label = instruction.label;
  if (const std::size_t star = label.find('*'); star != std::string::npos)
    label.replace(star, 1, std::to_string(copy));
  return label;
}

void addRank(Trace &trace, const Plan &plan, int rank, std::int64_t step,
             const std::vector<InstructionRun> &runs) {
  const RankCoordinates place(plan, rank);
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

// Returns a trace with a process for each rank, followed by a process for each
// stage of the prediction. A process has a thread per stream.
Trace runTraceOf(const Plan &plan, const Traces &traces, std::int64_t step,
                 const Prediction *predicted) {
  Trace trace;
  for (std::size_t rank = 0; rank < traces.size(); ++rank)
    addRank(trace, plan, static_cast<int>(rank), step, traces[rank]);
  if (predicted)
    addPrediction(trace, plan.ranks, *predicted);
  return trace;
}

double wallTime() {
  using Clock = std::chrono::system_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::string ranksText(const Plan &plan, bool processes) {
  std::string text =
      fmt::format("{} {} rank{}", plan.ranks, processes ? "process" : "thread",
                  plan.ranks == 1 ? "" : "s");
  std::string between = " (";
  for (const Axis &axis : plan.mesh)
    if (axis.size > 1) {
      text += between + axis.name + " " + std::to_string(axis.size);
      between = " x ";
    }
  return text + (plan.ranks > 1 ? ")" : "");
}

std::string accountOf(const TimeSpent &spent, bool isOfOneStep) {
  auto share = [&](double seconds) {
    return spent.steps > 0 ? 100.0 * seconds / spent.steps : 0.0;
  };
  double other = spent.steps - spent.kernels - spent.collectives -
                 spent.transfers - spent.data;
  return fmt::format("rank 0: {} in {}: kernels {:.1f} %, collectives "
                     "{:.1f} %, messages {:.1f} %, data {:.1f} %, the rest "
                     "{:.1f} %\n",
                     isOfOneStep ? timeText({spent.steps})
                                 : fmt::format("{:.1f} s", spent.steps),
                     isOfOneStep ? "steps without overlap" : "steps",
                     share(spent.kernels), share(spent.collectives),
                     share(spent.transfers), share(spent.data), share(other));
}

} // namespace

MeanTimes meanTimesOf(World &world, const Plan &plan, const TrainTimes &mine) {
  const std::vector<std::string> names = classesOf(plan);
  std::vector<double> sums(names.size() + 1);
  const auto place = [&](const std::string &name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) -
                                    names.begin());
  };
  const std::size_t rest = place(kRest);
  sums.back() = sums[rest] = mine.seconds;
  for (const InstructionTime &time : mine.instructions)
    if (const std::size_t at =
            place(time.instruction ? classOf(plan, *time.instruction)
                                   : kGradientNorm);
        at != rest) {
      sums[at] += time.seconds;
      sums[rest] -= time.seconds;
    }
  std::vector<double> all(sums.size());
  world.allRanks("times")->allReduce(
      "times of the run", sums.data(), all.data(),
      {ElementType::f64, 1, static_cast<std::int64_t>(sums.size())},
      Reduction::sum);
  const double share =
      1.0 / (static_cast<double>(world.size()) *
             static_cast<double>(std::max<std::int64_t>(1, mine.steps)));
  MeanTimes means;
  means.steps = mine.steps;
  means.step = all.back() * share;
  for (std::size_t i = 0; i < names.size(); ++i)
    means.classes.emplace_back(names[i], all[i] * share);
  return means;
}

Traces gatherTraces(World &world, const std::vector<InstructionRun> &mine) {
  static_assert(std::is_trivially_copyable_v<InstructionRun>);
  constexpr int kChannel =
      0; // unused after a step, because all messages have arrived
  constexpr const char *kLabel = "trace";
  auto count = static_cast<std::int64_t>(mine.size());
  const auto bytesOf = [](std::int64_t number) {
    return number * static_cast<std::int64_t>(sizeof(InstructionRun));
  };
  if (world.rank() != 0) {
    world.send(kLabel, &count, sizeof count, 0, kChannel);
    world.send(kLabel, mine.data(), bytesOf(count), 0, kChannel);
    return {};
  }
  Traces all{mine};
  for (int rank = 1; rank < world.size(); ++rank) {
    world.receive(kLabel, &count, sizeof count, rank, kChannel);
    all.emplace_back(static_cast<std::size_t>(count));
    world.receive(kLabel, all.back().data(), bytesOf(count), rank, kChannel);
  }
  return all;
}

RunWatch::RunWatch(const RunFlags &theFlags, std::ostream &o, std::ostream &e)
    : flags(theFlags), out(o), err(e) {
  try {
    if (!flags.trace.empty())
      trace.emplace(flags.trace, LogFile::Mode::replace);
  } catch (const std::runtime_error &error) {
    throw BadInput(error.what());
  }
  // An unreadable prediction is reported, and does not fail the run.
  try {
    prediction = predictionBeside(flags.folder);
  } catch (const std::runtime_error &error) {
    warn(fmt::format("{}: {}; nothing is compared with it",
                     predictionFileOf(flags.folder).string(), error.what()));
  }
}

void RunWatch::openLogs(std::int64_t step) {
  try {
    log.emplace(RunLogOptions{flags.metrics, flags.tensorboard, step});
  } catch (const std::runtime_error &error) {
    throw BadInput(error.what());
  }
}

void RunWatch::print(const std::string &line) {
  out << line << '\n' << std::flush;
}

// Writes a line in one call, because a launcher merges the output of ranks and
// could split a line.
void RunWatch::warn(const std::string &line) {
  err << fmt::format("warning: {}\n", line) << std::flush;
}

void RunWatch::begin(const Plan &plan, bool processes,
                     const TrainOptions &train) {
  out << fmt::format("{} on {}: {} samples of {} positions a step\n",
                     plan.model, ranksText(plan, processes), plan.globalBatch,
                     plan.sequence);
  if (train.validateEvery > 0)
    out << fmt::format("validation every {} steps and after the last, on {} "
                       "samples of {}\n",
                       train.validateEvery,
                       train.validationSteps * plan.globalBatch, flags.valid);
  out << std::flush;
}

void RunWatch::printRegistered(const Rounded &registered) {
  if (registered.taken > 0)
    print(fmt::format("rank 0: memory registered with NCCL takes {} of the GPU "
                      "for {} of the plan",
                      bytesText({static_cast<double>(registered.taken)}),
                      bytesText({static_cast<double>(registered.asked)})));
}

void RunWatch::logStep(const StepRecord &record) {
  for (const std::string &warning : log->write(record, wallTime()))
    warn(warning);
  if (record.step == 1 || record.step % flags.every == 0 ||
      record.step == record.steps || record.validationLoss)
    out << progressLine(record) << '\n' << std::flush;
}

void RunWatch::end(const Plan &plan, const TrainTimes &rank0,
                   const MeanTimes &means, const Traces &traces) {
  const Prediction *predicted = prediction ? &*prediction : nullptr;
  // Times are missing if no step remained to run, or if the run ended before
  // the timed step.
  if (means.steps > 0 && rank0.spent.steps > 0)
    out << accountOf(rank0.spent, rank0.isOfOneStep)
        << tableOf(means, predicted) << std::flush;
  if (trace) {
    std::vector<std::string> faults;
    trace->write(writeChromeTrace(
        runTraceOf(plan, traces, flags.train.traceStep, predicted), faults));
    for (const std::string &fault : faults)
      warn(fmt::format("{}: {}", flags.trace, fault));
    if (const std::string problem = trace->problem(); !problem.empty())
      warn(problem);
  }
  for (const std::string &problem : log->problems())
    warn(problem);
  if (!out)
    warn("what was to be shown could not all be written");
}

} // namespace mtplan::tools

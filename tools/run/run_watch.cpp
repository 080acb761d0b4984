//===- run_watch.cpp - Output of a run ------------------------------------===//

#include "tools/run/run_watch.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <ostream>

#include <fmt/format.h>

#include "runtime/metrics/progress_line.h"
#include "tools/run/run_trace.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

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

// Returns the times of a rank by class.
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

RunWatch::RunWatch(const RunFlags &theFlags, std::ostream &o, std::ostream &e)
    : flags(theFlags), out(o), err(e) {
  try {
    if (!flags.trace.empty())
      trace.emplace(flags.trace, LogFile::Mode::replace);
  } catch (const std::runtime_error &error) {
    throw BadInput(error.what());
  }
  readPrediction();
}

void RunWatch::openLogs(std::int64_t step) {
  try {
    log.emplace(RunLogOptions{flags.metrics, flags.tensorboard, step});
  } catch (const std::runtime_error &error) {
    throw BadInput(error.what());
  }
}

void RunWatch::say(const std::string &line) {
  out << line << '\n' << std::flush;
}

// Writes a line in one call, because a launcher merges the output of ranks and
// could split a line.
void RunWatch::warn(const std::string &line) {
  err << fmt::format("warning: {}\n", line) << std::flush;
}

// An unreadable prediction is reported, and does not fail the run.
void RunWatch::readPrediction() {
  const std::filesystem::path file = predictionFileOf(flags.folder);
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return;
  try {
    prediction = parsePrediction({std::istreambuf_iterator<char>(stream), {}});
  } catch (const std::runtime_error &error) {
    warn(fmt::format("{}: {}; nothing is compared with it", file.string(),
                     error.what()));
  }
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

void RunWatch::tellOf(const Rounded &registered) {
  if (registered.taken > 0)
    say(fmt::format("rank 0: memory for NCCL to register takes {} of the GPU "
                    "for {} of the plan",
                    bytesText({static_cast<double>(registered.taken)}),
                    bytesText({static_cast<double>(registered.asked)})));
}

void RunWatch::see(const StepRecord &record) {
  for (const std::string &warning : log->write(record, wallTime()))
    warn(warning);
  if (record.step == 1 || record.step % flags.every == 0 ||
      record.step == record.steps || record.validationLoss)
    out << progressLine(record) << '\n' << std::flush;
}

void RunWatch::end(const Plan &plan, const TrainTimes &rank0,
                   const MeanTimes &means, const Traces &traces) {
  const Prediction *predicted = prediction ? &*prediction : nullptr;
  // There are no times if no step was left to do, or if the run ended before
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

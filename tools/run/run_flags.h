//===- run_flags.h - The flags of `mtrun` -----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_FLAGS_H
#define MTPLAN_TOOLS_RUN_RUN_FLAGS_H

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/executor/train.h"

namespace CLI {
class App;
}

namespace mtplan::tools {

struct Prediction;

/// Reports unusable flags or files. Each line of the text is a sentence.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct RunFlags {
  std::string folder;
  std::string data, format, valid;
  runtime::TrainOptions train;
  std::string decay = "cosine", onNan = "stop";
  std::string lossScale = "auto"; ///< a preset, a number, none, or auto
  double rate = 1e-3, minimumRateShare = 0.1;
  std::optional<std::int64_t> warmup;          ///< empty: a tenth of the steps
  std::string checkpoint, load, weights;       ///< folders, or empty
  std::optional<std::int64_t> saveEvery, keep; ///< set by resolve
  std::int64_t every = 10;
  std::optional<std::int64_t> evalEvery, evalSteps; ///< empty: 100 and 10
  std::string metrics, tensorboard, trace;
  std::optional<std::int64_t> traceStep; ///< empty: the last step
  std::string backend = "cpu";
  std::string ranksAs = "auto";   ///< used if no launcher started the ranks
  std::optional<int> threads;     ///< empty: the cores, divided evenly
  std::optional<double> patience; ///< seconds; empty: patienceOf()
};

void describe(CLI::App &app, RunFlags &flags);

/// Checks all flags, and fills in defaults.
/// \throws BadInput with every fault
void resolve(RunFlags &flags);

/// Turns on loss scaling for fp16 plans if --loss-scale is auto.
void suit(RunFlags &flags, const runtime::Plan &plan);

/// Returns the options in which all ranks must agree.
std::string optionsText(const RunFlags &flags);

/// Returns --patience, the time after which a silent rank fails a run. The
/// default is 8 s, so that a message names a hanging rank within 10 s. If ten
/// predicted steps take longer, the default is the time of ten steps, because a
/// rank may compute for most of a step before its next message.
std::chrono::milliseconds patienceOf(const RunFlags &flags);

/// Reads the prediction that mtplan wrote beside the plan. Returns nothing if
/// the file is missing.
/// \throws std::runtime_error if the file is malformed
std::optional<Prediction> predictionBeside(const std::string &folder);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_FLAGS_H

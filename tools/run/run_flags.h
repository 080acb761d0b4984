//===- run_flags.h - The options of `mtrun` ---------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_FLAGS_H
#define MTPLAN_TOOLS_RUN_RUN_FLAGS_H

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/executor/train.h"

namespace CLI {
class App;
}

namespace mtplan::tools {

/// What a person typed, or a file that it names, cannot be trained with: a
/// sentence a line.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct RunFlags {
  std::string folder;
  std::string data, format, valid;
  runtime::TrainOptions train;
  std::string decay = "cosine", onNan = "stop";
  std::string lossScale = "auto"; ///< whose presets, a number, none, or auto
  double rate = 1e-3, floorShare = 0.1;
  std::optional<std::int64_t> warmup;          ///< none: a tenth of the steps
  std::string checkpoint, load, weights;       ///< folders; "": none
  std::optional<std::int64_t> saveEvery, keep; ///< resolve sets both
  std::int64_t every = 10;
  std::optional<std::int64_t> evalEvery, evalSteps; ///< none: 100, 10
  std::string metrics, tensorboard, trace;
  std::optional<std::int64_t> traceStep; ///< none: the last
  std::string backend = "cpu";
  std::string ranksAs = "auto";   ///< where no launcher has started them
  std::optional<int> threads;     ///< none: the cores shared out
  std::optional<double> patience; ///< seconds; none: see patience.h
};

/// Adds the options to `app`; parsing fills `flags`.
void describe(CLI::App &app, RunFlags &flags);

/// Words become what they stand for.
/// \throws BadInput with all that is wrong
void resolve(RunFlags &flags);

/// Of what is left to it, what `plan` needs: a loss scale where it computes in
/// fp16.
void suit(RunFlags &flags, const runtime::Plan &plan);

/// Everything in which ranks must agree beside plan and data.
std::string optionsText(const RunFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_FLAGS_H

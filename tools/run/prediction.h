//===- prediction.h - What a step was to take -------------------*- C++ -*-===//
//
// What `mtplan -o` leaves beside the plan as predicted.json, for mtrun to set
// beside what it measures: the seconds of every class of instructions, and the
// simulated step. Versioned; a reader refuses what it does not know.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUN_PREDICTION_H
#define MTPLAN_TOOLS_RUN_PREDICTION_H

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::tools {

inline constexpr int kPredictionVersion = 1;
inline constexpr char kPredictionFile[] = "predicted.json";

/// A task of the simulated step.
struct PredictedTask {
  int stage = 0, stream = 0;
  double start = 0.0, duration = 0.0; ///< seconds
  std::string what;                   ///< "forward", "sendBackward"
  int microBatch = -1, segment = -1;  ///< -1: of all
};

struct PredictedStream {
  int stage = 0, stream = 0;
  std::string name;
};

struct Prediction {
  double step = 0.0; ///< seconds
  /// By class (runtime/plan/instruction_class.h), seconds of a step on the mean
  /// rank.
  std::vector<std::pair<std::string, double>> classes;
  std::vector<PredictedStream> streams;
  std::vector<PredictedTask> tasks;
};

/// Where it is for a plan: `planned` is the plan's folder, or its plan.json.
std::filesystem::path predictionFileOf(const std::filesystem::path &planned);

std::string textOf(const Prediction &prediction);

/// \throws std::runtime_error that says what is wrong with the text
Prediction parsePrediction(const std::string &text);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_PREDICTION_H

//===- prediction.h - The predicted step, as a file -------------*- C++ -*-===//
//
// `mtplan -o` writes predicted.json beside the plan: the time of each class of
// instructions, and the simulated step. mtrun prints the times beside measured
// ones, and adds the simulated step to its trace. The file has a version, and
// readers reject other versions.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_PREDICTION_H
#define MTPLAN_TOOLS_EXCHANGE_PREDICTION_H

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::tools {

inline constexpr char kPredictionFile[] = "predicted.json";

/// Holds a task of the simulated step.
struct PredictedTask {
  int stage = 0, stream = 0;
  double start = 0.0, duration = 0.0; ///< seconds
  std::string what;                   ///< "forward", "sendBackward"
  int microBatch = -1, segment = -1;  ///< -1: none or several
};

struct PredictedStream {
  int stage = 0, stream = 0;
  std::string name;
};

struct Prediction {
  double step = 0.0; ///< seconds
  /// Holds the seconds per step by class of instructions
  /// (runtime/plan/plan_queries.h), averaged over the ranks.
  std::vector<std::pair<std::string, double>> classes;
  std::vector<PredictedStream> streams;
  std::vector<PredictedTask> tasks;
};

/// Returns the prediction's path for a plan's folder, or for its plan.json.
std::filesystem::path predictionFileOf(const std::filesystem::path &planned);

/// Returns the file's text.
std::string textOf(const Prediction &prediction);

/// Reads the file's text.
/// \throws std::runtime_error with the fault of the text
Prediction parsePrediction(const std::string &text);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_PREDICTION_H

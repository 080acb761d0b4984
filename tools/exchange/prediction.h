//===- prediction.h - The predicted step, as a file -------------*- C++ -*-===//
//
// `mtplan -o` writes predicted.json: the time of each class of instructions,
// and the simulated step. mtrun prints these times beside measured times, and
// adds the simulated step to its trace. Readers reject files of other versions.
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
  /// Maps classes of instructions (runtime/plan/plan_queries.h) to seconds per
  /// step, averaged over the ranks.
  std::vector<std::pair<std::string, double>> classes;
  std::vector<PredictedStream> streams;
  std::vector<PredictedTask> tasks;
};

std::filesystem::path predictionFileOf(const std::filesystem::path &planned);

std::string textOf(const Prediction &prediction);

/// \throws std::runtime_error with the fault of the text
Prediction parsePrediction(const std::string &text);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_PREDICTION_H

//===- patience.cpp - The time after which a silent rank fails a run ------===//

#include "tools/run/patience.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "tools/exchange/prediction.h"

namespace mtplan::tools {

std::chrono::milliseconds patienceOf(const RunFlags &flags) {
  constexpr double kLeast = 8.0, kMost = 1e6, kSteps = 10.0; // seconds
  double seconds = flags.patience.value_or(kLeast);
  if (!flags.patience) {
    std::ifstream file(predictionFileOf(flags.folder), std::ios::binary);
    try {
      if (file)
        seconds = std::clamp(
            kSteps * parsePrediction({std::istreambuf_iterator<char>(file), {}})
                         .step,
            kLeast, kMost);
    } catch (const std::exception &) {
      // The prediction cannot be read; the code that prints it reports that.
    }
  }
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::llround(1000.0 * seconds)));
}

} // namespace mtplan::tools

//===- step_lines.cpp - Steps as JSON lines -------------------------------===//

#include "runtime/metrics/step_lines.h"

#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace mtplan::runtime {
namespace {

/// Members of one object; names need no escapes.
class Members {
public:
  void add(const char *name, double value) {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
    put(name, std::isfinite(value) ? std::string(digits.begin(), end)
                                   : std::string("null"));
  }
  void add(const char *name, std::int64_t value) {
    put(name, std::to_string(value));
  }
  void add(const char *name, bool value) {
    put(name, value ? "true" : "false");
  }

  std::string line() const { return "{" + text + "}\n"; }

private:
  void put(const char *name, const std::string &value) {
    text += (text.empty() ? "\"" : ", \"") + std::string(name) + "\": " + value;
  }

  std::string text;
};

/// Of a line that jsonLine wrote; -1 of any other.
std::int64_t stepOf(std::string_view line) {
  constexpr std::string_view kStart = "{\"step\": ";
  std::int64_t step = -1;
  if (line.starts_with(kStart))
    std::from_chars(line.data() + kStart.size(), line.data() + line.size(),
                    step);
  return step;
}

} // namespace

std::string jsonLine(const StepRecord &record) {
  Members members;
  members.add("step", record.step);
  members.add("loss", record.loss);
  members.add("gradient_norm", record.gradientNorm);
  members.add("learning_rate", record.learningRate);
  if (record.lossScale)
    members.add("loss_scale", *record.lossScale);
  members.add("skipped", record.skipped);
  members.add("tokens", record.tokens);
  members.add("seconds", record.seconds);
  members.add("tokens_per_second", record.tokensPerSecond());
  if (record.modelFlops > 0.0)
    members.add("flops_per_rank", record.flopsPerRank());
  if (record.shareOfPeak() > 0.0)
    members.add("share_of_peak", record.shareOfPeak());
  if (record.memoryBytes > 0)
    members.add("memory_bytes", record.memoryBytes);
  if (record.validationLoss) {
    members.add("validation_loss", *record.validationLoss);
    members.add("perplexity", perplexityOf(*record.validationLoss));
  }
  members.add("version", std::int64_t{kStepLinesVersion});
  return members.line();
}

std::int64_t cutStepsAfter(const std::string &path, std::int64_t step) {
  if (!std::filesystem::exists(path))
    return 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(path + ": cannot be read");
  std::uintmax_t kept = 0;
  std::int64_t cut = 0;
  for (std::string line; std::getline(file, line);)
    // At the end of the file the last line had no line break.
    if (cut > 0 || file.eof() || stepOf(line) > step)
      ++cut;
    else
      kept += line.size() + 1;
  file.close();
  std::error_code error;
  if (cut > 0)
    std::filesystem::resize_file(path, kept, error);
  if (error)
    throw std::runtime_error(path + ": cannot be cut off: " + error.message());
  return cut;
}

} // namespace mtplan::runtime

//===- progress_line.cpp - One step as one line for people ----------------===//

#include "runtime/metrics/progress_line.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace mtplan::runtime {
namespace {

template <typename... Ts> std::string print(const char *format, Ts... values) {
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

/// The sign of what is no number says nothing.
double unsignedNan(double value) {
  return std::isnan(value) ? std::fabs(value) : value;
}

/// Three digits and k, M, G or T.
std::string scaled(double value) {
  constexpr std::array<const char *, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  // 999.5 would print as 1e+03.
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit)
    value /= 1000.0;
  return print(value >= 99.95   ? "%.0f%s"
               : value >= 9.995 ? "%.1f%s"
                                : "%.2f%s",
               value, kUnits[unit]);
}

std::string flops(double value) {
  std::string text = scaled(value);
  const char unit = text.back();
  if (unit < 'A')
    return text + " FLOP/s";
  text.pop_back();
  return text + " " + unit + "FLOP/s";
}

std::string memory(std::int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024.0 ? print("%.0f MiB", mebibytes)
                            : print("%.1f GiB", mebibytes / 1024.0);
}

/// 45 -> "0:45", 3723 -> "1:02:03".
std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? print("%lld:%02lld:%02lld", hours, minutes, whole % 60)
                   : print("%lld:%02lld", minutes, whole % 60);
}

} // namespace

std::string progressLine(const StepRecord &record) {
  const std::string steps = std::to_string(record.steps);
  std::string line = print("step %*lld/%s", static_cast<int>(steps.size()),
                           static_cast<long long>(record.step), steps.c_str());
  line += print("  loss %.4f", unsignedNan(record.loss));
  line += print("  norm %.3f", unsignedNan(record.gradientNorm));
  line += print("  lr %.2e", record.learningRate);
  if (record.lossScale)
    line += print("  scale %.6g", *record.lossScale);
  if (record.skipped)
    line += "  skipped (overflow)";
  if (record.seconds > 0.0)
    line += "  " + scaled(record.tokensPerSecond()) + " tokens/s";
  if (record.seconds > 0.0 && record.modelFlops > 0.0)
    line += "  " + flops(record.flopsPerRank()) +
            (record.ranks > 1 ? " a rank" : "");
  if (record.shareOfPeak() > 0.0)
    line += print(" (%.0f %%)", 100.0 * record.shareOfPeak());
  if (record.memoryBytes > 0)
    line += "  " + memory(record.memoryBytes);
  if (record.steps > record.step && record.seconds > 0.0)
    line += "  " + duration(record.secondsLeft()) + " left";
  if (record.validationLoss)
    line += print("  validation %.4f (perplexity %.4g)", *record.validationLoss,
                  perplexityOf(*record.validationLoss));
  return line;
}

} // namespace mtplan::runtime

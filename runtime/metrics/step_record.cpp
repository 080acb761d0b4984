//===- step_record.cpp - The report of one step ---------------------------===//

#include "runtime/metrics/step_record.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mtplan::runtime {

namespace {

template <typename... Ts> std::string print(const char *format, Ts... values) {
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

/// Clears the sign of a NaN, because this sign has no meaning.
double unsignedNan(double value) {
  return std::isnan(value) ? std::fabs(value) : value;
}

/// Returns the value with three digits and the suffix k, M, G or T.
std::string scaled(double value) {
  constexpr std::array<const char *, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  // 999.5 would print as 1000, which has four digits.
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

/// Returns "0:45" for 45 seconds and "1:02:03" for 3723 seconds.
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

namespace {

/// Calls `add(name, value)` for every known value of a step.
template <typename Add> void forEachMember(const StepRecord &record, Add add) {
  add("loss", record.loss);
  add("gradient_norm", record.gradientNorm);
  add("learning_rate", record.learningRate);
  if (record.lossScale)
    add("loss_scale", *record.lossScale);
  add("skipped", record.skipped);
  add("tokens", record.tokens);
  add("seconds", record.seconds);
  add("tokens_per_second", record.tokensPerSecond());
  if (record.modelFlops > 0.0)
    add("flops_per_rank", record.flopsPerRank());
  if (record.shareOfPeak() > 0.0)
    add("share_of_peak", record.shareOfPeak());
  if (record.memoryBytes > 0)
    add("memory_bytes", record.memoryBytes);
  if (record.validationLoss) {
    add("validation_loss", *record.validationLoss);
    add("perplexity", perplexityOf(*record.validationLoss));
  }
}

/// Builds a JSON object on one line. Member names must not need escapes.
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

/// Returns the step of a line that jsonLine wrote; -1 for any other line.
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
  forEachMember(
      record, [&](const char *name, auto value) { members.add(name, value); });
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
    // eof() means that the line has no line break and is therefore partial.
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

namespace {

constexpr std::array<std::uint32_t, 256> makeTable() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = rest >> 1 ^ (rest & 1 ? 0x82F63B78U : 0U);
    table[byte] = rest;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = makeTable();

/// Masks a checksum as TFRecord requires. Without masking, a CRC over data that
/// contains CRCs would be unreliable.
std::uint32_t masked(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

template <typename T> std::string bytesOf(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string framed(const std::string &data) {
  const std::string length = bytesOf(std::uint64_t{data.size()});
  return length + bytesOf(masked(crc32c(length))) + data +
         bytesOf(masked(crc32c(data)));
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

enum Wire { kVarint = 0, kFixed64 = 1, kLengthed = 2, kFixed32 = 5 };

std::string key(int field, Wire wire) {
  return varint(static_cast<std::uint64_t>(field << 3 | wire));
}

std::string lengthed(int field, std::string_view bytes) {
  return key(field, kLengthed) + varint(bytes.size()) + std::string(bytes);
}

std::string wallTimeField(double wallTime) {
  return key(1, kFixed64) + bytesOf(wallTime);
}

} // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (char byte : bytes)
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string versionRecord(double wallTime) {
  return framed(wallTimeField(wallTime) + lengthed(3, "brain.Event:2"));
}

std::string scalarRecord(double wallTime, std::int64_t step,
                         std::string_view tag, float value) {
  const std::string point =
      lengthed(1, tag) + key(2, kFixed32) + bytesOf(value);
  return framed(wallTimeField(wallTime) + key(2, kVarint) +
                varint(static_cast<std::uint64_t>(step)) +
                lengthed(5, lengthed(1, point)));
}

std::string stepRecords(double wallTime, const StepRecord &record) {
  std::string records;
  forEachMember(record, [&](std::string_view tag, auto value) {
    if (tag != "tokens" && tag != "seconds")
      records += scalarRecord(wallTime, record.step, tag,
                              static_cast<float>(static_cast<double>(value)));
  });
  return records;
}

std::string eventFileName(std::int64_t seconds, std::string_view host,
                          std::int64_t process) {
  return "events.out.tfevents." + std::to_string(seconds) + "." +
         std::string(host) + "." + std::to_string(process);
}

ProcessMemory processMemory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  // A line is like "VmRSS:\t  123456 kB".
  const auto read = [](const std::string &line, std::string_view name,
                       std::int64_t &bytes) {
    if (!line.starts_with(name))
      return;
    const std::size_t digits = line.find_first_of("0123456789");
    if (digits == std::string::npos)
      return;
    std::int64_t kibibytes = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), kibibytes);
    bytes = kibibytes * 1024;
  };
  for (std::string line; std::getline(status, line);) {
    read(line, "VmRSS:", memory.now);
    read(line, "VmHWM:", memory.peak);
  }
  return memory;
}

} // namespace mtplan::runtime

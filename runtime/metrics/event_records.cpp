//===- event_records.cpp - What TensorBoard reads -------------------------===//

#include "runtime/metrics/event_records.h"

#include <array>
#include <cstring>

namespace mtplan::runtime {
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

/// Checksums of data that holds checksums would go wrong; TFRecord masks them.
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

//===----------------------------------------------------------------------===//
// Protocol buffers
//===----------------------------------------------------------------------===//

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
  const auto add = [&](std::string_view tag, double value) {
    records +=
        scalarRecord(wallTime, record.step, tag, static_cast<float>(value));
  };
  add("loss", record.loss);
  add("gradient_norm", record.gradientNorm);
  add("learning_rate", record.learningRate);
  if (record.lossScale)
    add("loss_scale", *record.lossScale);
  add("skipped", record.skipped ? 1.0 : 0.0);
  add("tokens_per_second", record.tokensPerSecond());
  if (record.modelFlops > 0.0)
    add("flops_per_rank", record.flopsPerRank());
  if (record.shareOfPeak() > 0.0)
    add("share_of_peak", record.shareOfPeak());
  if (record.memoryBytes > 0)
    add("memory_bytes", static_cast<double>(record.memoryBytes));
  if (record.validationLoss) {
    add("validation_loss", *record.validationLoss);
    add("perplexity", perplexityOf(*record.validationLoss));
  }
  return records;
}

std::string eventFileName(std::int64_t seconds, std::string_view host,
                          std::int64_t process) {
  return "events.out.tfevents." + std::to_string(seconds) + "." +
         std::string(host) + "." + std::to_string(process);
}

} // namespace mtplan::runtime

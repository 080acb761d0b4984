//===- draws.cpp - Random draws of a step ---------------------------------===//

#include "runtime/random/draws.h"

#include <cmath>
#include <numbers>

#include "runtime/random/philox.h"

namespace mtplan::runtime {
namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

} // namespace

std::uint64_t streamOf(Purpose purpose, std::string_view label,
                       std::int64_t copy, std::int64_t step,
                       std::int64_t microBatch) {
  std::uint64_t hash = streamOfAllSteps(purpose, label, copy);
  for (std::int64_t number : {step, microBatch})
    hash = splitMix(hash ^ static_cast<std::uint64_t>(number));
  return hash;
}

std::uint64_t streamOfAllSteps(Purpose purpose, std::string_view label,
                               std::int64_t copy) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (char c : label) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ULL;
  }
  for (std::int64_t number : {static_cast<std::int64_t>(purpose), copy})
    hash = splitMix(hash ^ static_cast<std::uint64_t>(number));
  return hash;
}

PhiloxCounter Stream::counterAt(std::int64_t index) const {
  const auto element = static_cast<std::uint64_t>(index);
  return {low(element), high(element), low(stream), high(stream)};
}

PhiloxCounter Stream::wordsAt(std::int64_t index) const {
  return philox4x32(counterAt(index), key());
}

PhiloxCounter Stream::maskWordsAt(std::int64_t draw) const {
  return philox4x32<kMaskRounds>(counterAt(draw), key());
}

double Stream::uniformAt(std::int64_t index) const {
  return wordsAt(index)[0] * kWordScale;
}

double Stream::normalAt(std::int64_t index) const {
  const PhiloxCounter words = wordsAt(index);
  // Adding half a unit avoids log(0).
  const double radius =
      std::sqrt(-2.0 * std::log((words[0] + 0.5) * kWordScale));
  return radius * std::cos(2.0 * std::numbers::pi * words[1] * kWordScale);
}

std::int64_t Stream::integerAt(std::int64_t index, std::int64_t limit) const {
  // The result is the high half of word * limit. The product fits 64 bits,
  // because limits, such as vocabularies, fit 32 bits.
  const std::uint64_t word = wordsAt(index)[0];
  return static_cast<std::int64_t>((word * static_cast<std::uint64_t>(limit)) >>
                                   32);
}

Stream Stream::ofParameter(std::uint64_t seed, std::string_view label,
                           std::int64_t copy) {
  return {seed, streamOf(Purpose::parameter, label, copy, 0, 0)};
}

Stream Stream::ofData(const Moment &moment, std::string_view label) {
  return {moment.seed,
          streamOf(Purpose::data, label, 0, moment.step, moment.microBatch)};
}

Stream Stream::ofMask(const Moment &moment, std::string_view mask) {
  return {moment.seed,
          streamOf(Purpose::mask, mask, moment.copy, moment.step, 0)};
}

double initialValue(const Stream &stream, std::string_view init,
                    std::int64_t index) {
  const double normal = stream.normalAt(index);
  if (init == "zeros")
    return 0.1 * normal;
  if (init == "ones")
    return 1.0 + 0.1 * normal;
  return 0.3 * normal;
}

double targetValue(const Stream &stream, std::int64_t index,
                   std::int64_t limit) {
  const bool absent = (stream.wordsAt(index)[1] >> 29) == 0;
  return absent ? -1.0 : static_cast<double>(stream.integerAt(index, limit));
}

double maskValue(const Stream &stream, double rate, std::int64_t index) {
  const std::int64_t i = index % kMaskDraw;
  const std::uint32_t word =
      stream.maskWordsAt(index / kMaskDraw)[static_cast<std::size_t>(i / 2)];
  const std::uint32_t bits = (word >> i % 2 * 16) & kMaskBits;
  return bits < maskLimit(rate) ? 0.0 : maskFactor(rate);
}

} // namespace mtplan::runtime

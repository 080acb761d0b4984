//===- permutation.cpp - A shuffle that is never written down -------------===//

#include "runtime/data/permutation.h"

#include "runtime/random/philox.h"

namespace mtplan::runtime {

Permutation::Permutation(std::int64_t theSize, std::uint64_t theSeed,
                         std::int64_t theEpoch)
    : size(static_cast<std::uint64_t>(theSize)), seed(theSeed),
      epoch(static_cast<std::uint64_t>(theEpoch)) {
  // At most four times n, so a walk takes four steps on average at worst.
  while ((std::uint64_t{1} << (2 * halfBits)) < size)
    ++halfBits;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  constexpr std::uint32_t kRounds = 6;
  const std::uint64_t mask = (std::uint64_t{1} << halfBits) - 1;
  const auto low = [](std::uint64_t x) {
    return static_cast<std::uint32_t>(x);
  };
  std::uint64_t left = value >> halfBits, right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxCounter words =
        philox4x32({low(right), round, low(epoch), low(epoch >> 32)},
                   {low(seed), low(seed >> 32)});
    const std::uint64_t next = left ^ (words[0] & mask);
    left = right;
    right = next;
  }
  return left << halfBits | right;
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  auto value = static_cast<std::uint64_t>(index);
  do
    value = encrypt(value);
  while (value >= size);
  return static_cast<std::int64_t>(value);
}

} // namespace mtplan::runtime

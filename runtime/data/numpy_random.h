//===- numpy_random.h - numpy.random.RandomState, as far as needed -*- C++
//-*-===//
//
// Megatron-LM orders its samples with NumPy's legacy generator, whose numbers
// are frozen for good: MT19937 seeded by init_genrand, bounded numbers by
// masking and rejection, a shuffle from the end down.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_NUMPY_RANDOM_H
#define MTPLAN_RUNTIME_DATA_NUMPY_RANDOM_H

#include <bit>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace mtplan::runtime {

class NumpyRandom {
public:
  explicit NumpyRandom(std::uint32_t seed) : words(seed) {}

  /// Uniform in [0, largest].
  std::uint64_t interval(std::uint64_t largest) {
    if (largest == 0)
      return 0;
    const std::uint64_t mask = std::bit_ceil(largest + 1) - 1;
    const bool narrow = largest <= 0xFFFFFFFFU;
    std::uint64_t drawn = 0;
    do {
      drawn = words();
      if (!narrow)
        drawn = drawn << 32 | words();
      drawn &= mask;
    } while (drawn > largest);
    return drawn;
  }

  template <typename T> void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;)
      std::swap(values[i], values[interval(i)]);
  }

private:
  std::mt19937 words;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_NUMPY_RANDOM_H

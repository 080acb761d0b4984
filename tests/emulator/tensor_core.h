//===- tensor_core.h - Tensor cores emulated in C++ -------------*- C++ -*-===//
//
// Replaces the instructions of runtime/cuda/device/tensor_core.cuh. Lanes hold
// matrix fragments as in the PTX ISA ("Matrix Fragments for mma.m16n8k16 with
// floating point type", "ldmatrix", "movmatrix"). An asynchronous copy fills
// its destination with NaN when it begins and with data when it is waited for,
// so that reads in between yield NaN.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_TENSOR_CORE_H
#define MTPLAN_TESTS_EMULATOR_TENSOR_CORE_H

#define MTPLAN_EMULATED_TENSOR_CORES

namespace mtplan::runtime::cuda {

template <typename T>
void multiplyAdd(float (&sums)[4], const std::uint32_t (&left)[4],
                 std::uint32_t right0, std::uint32_t right1) {
  struct Factors {
    float left[4][2], right[2][2];
  };
  Factors own;
  const auto widen = [](std::uint32_t pair, float(&to)[2]) {
    to[0] =
        static_cast<float>(std::bit_cast<T>(static_cast<std::uint16_t>(pair)));
    to[1] = static_cast<float>(
        std::bit_cast<T>(static_cast<std::uint16_t>(pair >> 16)));
  };
  for (int i = 0; i < 4; ++i)
    widen(left[i], own.left[i]);
  widen(right0, own.right[0]);
  widen(right1, own.right[1]);
  emulator::publish(reinterpret_cast<std::uintptr_t>(&own));
  const auto of = [](unsigned lane) {
    return reinterpret_cast<const Factors *>(emulator::published(lane));
  };
  const unsigned g = emulator::laneHere() / 4, t = emulator::laneHere() % 4;
  if (g + t == 0)
    ++emulator::coreProducts();
  // Four lanes hold each row of the left operand and each column of the right.
  double products[4] = {};
  for (unsigned k = 0; k < 4; ++k) {
    const Factors *const rows = of(g * 4 + k);
    for (unsigned c = 0; c < 2; ++c) {
      const Factors *const column = of((t * 2 + c) * 4 + k);
      for (unsigned r = 0; r < 2; ++r)
        for (unsigned e = 0; e < 2; ++e)
          products[r * 2 + c] +=
              double{rows->left[r][e]} * double{column->right[0][e]} +
              double{rows->left[r + 2][e]} * double{column->right[1][e]};
    }
  }
  for (int i = 0; i < 4; ++i)
    sums[i] = static_cast<float>(sums[i] + products[i]);
  emulator::synchroniseWarp();
}

template <bool Transposed>
void loadMatrices(std::uint32_t (&matrices)[4], const void *row) {
  emulator::publish(reinterpret_cast<std::uintptr_t>(row));
  const unsigned g = emulator::laneHere() / 4, t = emulator::laneHere() % 4;
  for (unsigned m = 0; m < 4; ++m) {
    std::uint16_t pair[2];
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned r = Transposed ? t * 2 + e : g,
                     c = Transposed ? g : t * 2 + e;
      const std::uint64_t from = emulator::published(m * 8 + r);
      if (from % 16 != 0)
        throw std::logic_error("a row of a matrix is not at 16 bytes");
      pair[e] = reinterpret_cast<const std::uint16_t *>(from)[c];
    }
    std::memcpy(&matrices[m], pair, sizeof(pair));
  }
  emulator::synchroniseWarp();
}

inline std::uint32_t transposedPair(std::uint32_t pair) {
  emulator::publish(pair);
  const unsigned g = emulator::laneHere() / 4, t = emulator::laneHere() % 4;
  std::uint32_t made = 0;
  for (unsigned e = 0; e < 2; ++e) {
    const auto row = static_cast<std::uint32_t>(
        emulator::published((t * 2 + e) * 4 + g / 2));
    made |= (row >> g % 2 * 16 & 0xFFFF) << e * 16;
  }
  emulator::synchroniseWarp();
  return made;
}

template <int Bytes> void beginCopy(void *to, const void *from, bool there) {
  static_assert(Bytes == 8 || Bytes == 16);
  emulator::beginCopy(to, from, Bytes, there);
}
inline void endCopies() { emulator::endCopies(); }

inline float powerOfTwo(float x) {
  const float power = std::exp2(x);
  return power < std::numeric_limits<float>::min() ? 0.0F : power;
}

inline void zeroBelow(std::uint32_t word, std::uint32_t limits, float &low,
                      float &high) {
  const auto reaches = [&](int shift) {
    const auto of = [&](std::uint32_t bits) {
      return static_cast<float>(
          std::bit_cast<__half>(static_cast<std::uint16_t>(bits >> shift)));
    };
    return !(std::abs(of(word)) < of(limits));
  };
  low = reaches(0) ? low : 0.0F;
  high = reaches(16) ? high : 0.0F;
}

inline void *launchedMemory() { return emulator::launchedMemory(); }

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_TESTS_EMULATOR_TENSOR_CORE_H

//===- elements_test.cpp - Packs that are loaded together -----------------===//

#include <vector>

#include <gtest/gtest.h>

// device.h must come before the kernels that it emulates.
// clang-format off
#include "tests/emulator/device.h"
#include "runtime/backend/element.h"
#include "runtime/cuda/device/elements.cuh"
// clang-format on

namespace mtplan::runtime::cuda {
namespace {

/// Holds a tensor whose element i is 1.5 i - 7, or i - 7 if it is i32.
class Numbers {
public:
  explicit Numbers(ElementType theType) : type(theType), memory(kElements) {
    for (std::int64_t i = 0; i < kElements; ++i)
      storeOne<double>({memory.data(), type}, i,
                       type == ElementType::i32
                           ? static_cast<double>(i) - 7.0
                           : 1.5 * static_cast<double>(i) - 7.0);
  }
  Operand operand() const { return {memory.data(), type}; }

private:
  static constexpr std::int64_t kElements = 4 * kPack;

  ElementType type;
  std::vector<double> memory; ///< aligned to 16 bytes, the widest type
};

template <typename R>
std::vector<R> loaded(const Operand &from, std::int64_t first, int count) {
  R values[kPack];
  load(from, first, count, values);
  return {values, values + kPack};
}

template <typename R>
void expectHeldPacks(const std::vector<ElementType> &types) {
  for (const ElementType type : types)
    for (const std::int64_t first : {0, 3, 8})
      for (const int count : {0, 5, kPack}) {
        const Numbers numbers(type);
        HeldPack<R> held;
        held.load(numbers.operand(), first, count);
        R values[kPack];
        held.widen(type, values);
        EXPECT_EQ(std::vector<R>(values, values + kPack),
                  loaded<R>(numbers.operand(), first, count))
            << nameOf(type) << " from " << first << ", " << count;
      }
}

constexpr ElementType kF16 = ElementType::f16, kBf16 = ElementType::bf16,
                      kF32 = ElementType::f32, kI32 = ElementType::i32,
                      kF64 = ElementType::f64;

TEST(CudaElements, HeldPacksAreThoseOfLoad) {
  expectHeldPacks<float>({kF16, kBf16, kF32, kI32});
  expectHeldPacks<double>({kF16, kBf16, kF32, kI32, kF64});
}

template <typename R>
void expectTogether(ElementType one, ElementType two, ElementType three) {
  const Numbers first(one), second(two), third(three);
  const Several<Operand, 3> from{
      {first.operand(), second.operand(), third.operand()}};
  for (const std::int64_t at : {0, 5, 16})
    for (const int count : {3, kPack}) {
      R values[3][kPack];
      loadTogether(from, at, count, values);
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(std::vector<R>(values[i], values[i] + kPack),
                  loaded<R>(from[i], at, count))
            << "operand " << i << " from " << at << ", " << count;
    }
}

TEST(CudaElements, OperandsOfDifferentTypesAreLoadedTogether) {
  expectTogether<float>(kBf16, kBf16, kBf16);
  expectTogether<float>(kBf16, kF32, kF16);
  expectTogether<double>(kF64, kF32, kF64);
}

} // namespace
} // namespace mtplan::runtime::cuda

//===- attention_slopes_test.cpp - Stored gradients of scores -------------===//

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

// device.h must come before the kernels that it emulates.
// clang-format off
#include "tests/emulator/device.h"
#include "runtime/cuda/device/attention_grad.cuh"
#include "runtime/cuda/handles.h"
// clang-format on

namespace mtplan::runtime::cuda {
namespace {

using Half = __nv_bfloat16;

/// Holds a copy of numbers in the memory of the device.
template <typename T> class Uploaded {
public:
  explicit Uploaded(const std::vector<T> &values)
      : size(values.size()), memory(size * sizeof(T)) {
    copy(memory.get(), values.data(), cudaMemcpyHostToDevice);
  }
  T *get() const { return reinterpret_cast<T *>(memory.get()); }
  std::vector<T> read() const {
    std::vector<T> values(size);
    copy(values.data(), memory.get(), cudaMemcpyDeviceToHost);
    return values;
  }

private:
  void copy(void *to, const void *from, cudaMemcpyKind kind) const {
    const Stream stream;
    MTPLAN_CUDA(
        cudaMemcpyAsync(to, from, size * sizeof(T), kind, stream.get()));
    stream.synchronise();
  }

  std::size_t size;
  DeviceMemory memory;
};

/// Returns normally distributed numbers.
std::vector<Half> numbers(std::int64_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Half> made;
  for (std::int64_t i = 0; i < elements; ++i)
    made.push_back(__float2bfloat16_rn(normal(random)));
  return made;
}

/// Returns the bits of the gradients of queries, keys and values.
template <int Width>
std::vector<std::uint16_t> gradients(const Heads &all, double rate,
                                     std::int64_t most) {
  const std::int64_t queries = all.batch * all.queries * all.heads * all.width,
                     keys = all.batch * all.keys * all.keyHeads * all.width;
  const Uploaded query(numbers(queries, 1)), key(numbers(keys, 2)),
      value(numbers(keys, 3)), above(numbers(queries, 4));
  const std::vector<Half> noQueries(queries), noKeys(keys);
  const Uploaded toQuery(noQueries), toKey(noKeys), toValue(noKeys);
  const std::vector<RowNumbers<float>> ofQueries(
      all.batch * all.queries * all.heads, {4.0F, 0.5F});
  const std::vector<StepNumbers> ofStep{{11, 3, true, {}, {}}};
  const Uploaded rows(ofQueries);
  const Uploaded step(ofStep);
  const Masks masks(step.get(), "h.*.attn.drop", 5, rate);
  const CoreScratch parts(all, masks.limit > 0, most);
  const DeviceMemory scratch(parts.slopes + parts.kept);
  const Stream stream;
  attentionGradOnCores<Half, Width>(
      stream.get(), {query.get(), key.get(), value.get(), above.get()},
      rows.get(), toQuery.get(), toKey.get(), toValue.get(), all, masks,
      scratch.get(), most);
  stream.synchronise();
  std::vector<std::uint16_t> bits;
  for (const auto *result : {&toQuery, &toKey, &toValue})
    for (const Half one : result->read())
      bits.push_back(std::bit_cast<std::uint16_t>(one));
  return bits;
}

// The scratch memory stores the gradients of the scores of all samples, of some
// samples at a time, or of none. Sums have the same order in all three cases.
template <int Width> void expectSameBits(const Heads &all) {
  Heads one = all;
  one.batch = 1;
  const std::int64_t bytes = StoredSlopes::bytes(one);
  for (const double rate : {0.0, 0.2}) {
    const std::vector<std::uint16_t> whole =
        gradients<Width>(all, rate, kMostSlopes);
    const auto isFinite = [](std::uint16_t bits) {
      return (bits & 0x7F80) != 0x7F80;
    };
    EXPECT_TRUE(std::ranges::all_of(whole, isFinite));
    EXPECT_GT(std::ranges::count_if(
                  whole, [](std::uint16_t bits) { return bits != 0; }),
              static_cast<std::ptrdiff_t>(whole.size()) / 2);
    EXPECT_EQ(CoreScratch(all, true).samples, all.batch);
    EXPECT_EQ(gradients<Width>(all, rate, 2 * bytes), whole);
    EXPECT_EQ(CoreScratch(all, true, 2 * bytes - 1).samples, 1);
    EXPECT_EQ(gradients<Width>(all, rate, 2 * bytes - 1), whole);
    EXPECT_FALSE(CoreScratch(all, true, bytes - 1).storesSlopes);
    EXPECT_EQ(gradients<Width>(all, rate, bytes - 1), whole);
  }
}

TEST(CudaAttentionSlopes, MayBeStoredInPartsOrNotAtAll) {
  expectSameBits<64>(
      {64, 2, 70, 4, 150, 2, true, 0.125, {1, 5}, {80, 150}, 4, 8});
  expectSameBits<96>(
      {72, 3, 41, 1, 41, 1, true, 0.1, {0, 3}, {0, 41}, 0, 1, 2});
  // Two tiles of queries and three of keys.
  expectSameBits<64>(
      {16, 1, 140, 1, 140, 1, true, 0.2, {0, 1}, {0, 140}, 0, 1});
  expectSameBits<128>(
      {128, 2, 33, 2, 47, 1, false, 0.1, {0, 2}, {0, 33}, 0, 2});
}

} // namespace
} // namespace mtplan::runtime::cuda

//===- communicator_bench.cpp - Speed of collectives between threads ------===//
//
// Measures collectives between two ranks that are threads of one process and,
// for comparison, one thread's memcpy of the same size. Rates count the bytes
// of one rank's result.
//
//===----------------------------------------------------------------------===//

#include <cstring>
#include <functional>
#include <vector>

#include <benchmark/benchmark.h>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {
namespace {

void copyOnce(benchmark::State &state) {
  const std::int64_t bytes = state.range(0);
  std::vector<char> from(bytes, 1), to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

/// Adds two arrays, which is the least work of an all-reduce of two ranks.
void addOnce(benchmark::State &state) {
  const std::int64_t count = state.range(0) / 4;
  std::vector<float> one(count, 1.0F), two(count, 2.0F), sum(count);
  for (auto _ : state) {
    for (std::int64_t i = 0; i < count; ++i)
      sum[i] = one[i] + two[i];
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 4 * count);
}

using Call = std::function<void(Communicator &, const std::vector<char> &in,
                                std::vector<char> &out, std::int64_t bytes)>;

/// Measures `call` on two ranks, and reports the time of rank 0. Before each
/// batch of calls, rank 0 broadcasts whether rank 1 must make another batch.
void onTwoRanks(benchmark::State &state, const Call &call) {
  const std::int64_t bytes = state.range(0);
  constexpr int kAtATime = 10;
  runOnThreads(2, {}, [&](World &world) {
    const auto group = world.group("both", {0, 1});
    std::vector<char> in(bytes), out(bytes);
    std::int32_t more = 1;
    const auto agree = [&] {
      group->broadcast("more", &more, {ElementType::i32, 1, 1}, 0);
      return more != 0;
    };
    if (world.rank() == 1) {
      while (agree())
        for (int i = 0; i < kAtATime; ++i)
          call(*group, in, out, bytes);
      return;
    }
    while (state.KeepRunningBatch(kAtATime)) {
      agree();
      for (int i = 0; i < kAtATime; ++i)
        call(*group, in, out, bytes);
    }
    more = 0;
    agree();
  });
  state.SetBytesProcessed(state.iterations() * bytes);
}

void allReduce(benchmark::State &state, ElementType type) {
  onTwoRanks(state, [type](Communicator &group, const std::vector<char> &in,
                           std::vector<char> &out, std::int64_t bytes) {
    group.allReduce("sum", in.data(), out.data(),
                    {type, 1, bytes / bytesOf(type)}, Reduction::sum);
  });
}

void allGather(benchmark::State &state) {
  onTwoRanks(state, [](Communicator &group, const std::vector<char> &in,
                       std::vector<char> &out, std::int64_t bytes) {
    group.allGather("all", in.data(), out.data(),
                    {ElementType::f32, 1, bytes / 8});
  });
}

constexpr std::int64_t kSmall = 1024, kLayer = 1 << 20, kLarge = 64 << 20;

#define MTPLAN_SIZES Arg(kSmall)->Arg(kLayer)->Arg(kLarge)->UseRealTime()
BENCHMARK(copyOnce)->MTPLAN_SIZES;
BENCHMARK(addOnce)->MTPLAN_SIZES;
BENCHMARK_CAPTURE(allReduce, f32, ElementType::f32)->MTPLAN_SIZES;
BENCHMARK_CAPTURE(allReduce, bf16, ElementType::bf16)->MTPLAN_SIZES;
BENCHMARK_CAPTURE(allReduce, f16, ElementType::f16)->MTPLAN_SIZES;
BENCHMARK(allGather)->MTPLAN_SIZES;
#undef MTPLAN_SIZES

} // namespace
} // namespace mtplan::runtime

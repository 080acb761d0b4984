//===- device.h - CUDA's kernels, run on the host ---------------*- C++ -*-===//
//
// The source of a kernel, compiled by the host's compiler after this header
// (CMakeLists.txt has it included before all else): every thread of a
// block is a fiber, blocks run one after another. Threads stop at a barrier or
// a shuffle until the others are there, and go on in an order that can be
// reversed: a kernel that lacks a barrier gives other numbers in the other
// order, and one that could hang throws. Speed, caches, and what a real
// compiler makes of it are not seen here.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_DEVICE_H
#define MTPLAN_TESTS_EMULATOR_DEVICE_H

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "tests/emulator/races.h"
#include "tests/emulator/streams.h"

namespace mtplan::emulator {

/// Where a thread is.
struct Place {
  uint3 thread, block;
  dim3 threads, blocks; ///< of a block, of the grid
};

/// Of the thread that asks.
const Place &here();
/// Until all threads of the block that have not ended are at one.
void synchroniseBlock();
/// Until all threads of the warp that have not ended are at one.
void synchroniseWarp();
/// Gives `bits` to the other lanes of the warp, who may take them until its
/// next barrier.
void give(std::uint64_t bits);
/// \throws std::logic_error if the warp has no such lane
std::uint64_t given(unsigned lane);
/// Spoils what is there; what comes, or zeros, is there after endCopies.
/// \throws std::logic_error if an address is not a multiple of `bytes`
void beginCopy(void *to, const void *from, std::size_t bytes, bool there);
/// Those that this thread began.
void endCopies();
/// Of the block, beside what its kernel declares; nothing is known of it.
void *launchedMemory();

/// How many products of tensor cores this process has made.
std::atomic<std::uint64_t> &coreProducts();

enum class Order { ascending, descending };
/// In which threads go on, from now on, of kernels of this process.
void setOrder(Order order);

/// Runs `thread` for every thread of the grid.
/// \param shared     bytes of launchedMemory
/// \param arguments  if there are any: all else that threads touch is a
///                   device's
/// \throws std::logic_error if threads wait for others that will not come, or
///         what a thread throws
void run(dim3 grid, dim3 block, const std::function<void()> &thread,
         std::size_t shared = 0, Region arguments = {});

/// Whether a device takes a grid of so many blocks of so many threads.
bool isOfDevice(dim3 blocks, dim3 threads);

/// Bytes that kernels of this process may be allowed from now on; at first as
/// many as of compute capability 9.0.
inline constexpr int kMostSharedOfAny = 227 << 10;
void setSharedOfDevice(int bytes);

/// Bytes of launchedMemory that a kernel may be launched with.
std::size_t mostShared(const void *kernel);

/// In place of CUDA's: queues it.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(const cudaLaunchConfig_t *config,
                   void (*kernel)(Parameters...), Arguments... arguments) {
  if (const cudaError_t why = whyElsewhere(config->stream); why != cudaSuccess)
    return why;
  if (!isOfDevice(config->gridDim, config->blockDim))
    return cudaErrorInvalidConfiguration;
  const std::size_t shared = config->dynamicSmemBytes;
  if (shared > mostShared(reinterpret_cast<const void *>(kernel)))
    return cudaErrorInvalidValue;
  return enqueue(config->stream, [blocks = config->gridDim,
                                  threads = config->blockDim, shared,
                                  call = std::tuple(kernel, arguments...)] {
    try {
      // What a thread reads of the host's is the call, and where it is.
      run(
          blocks, threads,
          [&call] {
            std::apply([](auto what, const auto &...with) { what(with...); },
                       call);
          },
          shared, Region::of(call));
    } catch (const std::logic_error &error) {
      // Whoever asked for it may not live to tell.
      std::cerr << "a kernel: " << error.what() << std::endl;
      throw;
    }
  });
}

template <typename T> T shuffled(T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  give(bits);
  bits = given(lane);
  // Nobody gives anew before all have taken.
  synchroniseWarp();
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline unsigned laneHere() {
  const Place &place = here();
  return (place.thread.x + place.threads.x * place.thread.y) % 32;
}

} // namespace mtplan::emulator

// The words of the language.
#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __noinline__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
// One block runs at a time on a thread of the host.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define threadIdx (::mtplan::emulator::here().thread)
#define blockIdx (::mtplan::emulator::here().block)
#define blockDim (::mtplan::emulator::here().threads)
#define gridDim (::mtplan::emulator::here().blocks)

#define cudaLaunchKernelEx ::mtplan::emulator::launch

inline void __syncthreads() { ::mtplan::emulator::synchroniseBlock(); }

inline void __syncwarp() { ::mtplan::emulator::synchroniseWarp(); }

/// Rounded on its own, not with what is added to it.
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fadd_rn(float a, float b) { return a + b; }

/// Four of the eight bytes of low and high, a digit of `which` for each.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  unsigned chosen = 0;
  for (unsigned i = 0; i < 4; ++i)
    chosen |= static_cast<unsigned>(bytes >> (which >> 4 * i & 7) * 8 & 0xFF)
              << 8 * i;
  return chosen;
}

template <typename T> T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  return ::mtplan::emulator::shuffled(value,
                                      ::mtplan::emulator::laneHere() ^ mask);
}
template <typename T> T __shfl_sync(unsigned, T value, unsigned lane) {
  return ::mtplan::emulator::shuffled(value, lane);
}

inline int __any_sync(unsigned, int holds) {
  ::mtplan::emulator::give(holds != 0);
  std::uint64_t any = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    any |= ::mtplan::emulator::given(lane);
  ::mtplan::emulator::synchroniseWarp();
  return any != 0;
}

#include "tests/emulator/tensor_core.h"

using std::cos;
using std::erf;
using std::exp;
using std::fma;
using std::isfinite;
using std::log;
using std::max;
using std::memcpy;
using std::min;
using std::pow;
using std::sin;
using std::sqrt;
using std::tanh;

#endif // MTPLAN_TESTS_EMULATOR_DEVICE_H

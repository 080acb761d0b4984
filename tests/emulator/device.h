//===- device.h - CUDA kernels run on the host ------------------*- C++ -*-===//
//
// The host's compiler includes this header before a kernel's source
// (CMakeLists.txt). Each thread of a block is a fiber, and blocks run one after
// another. Threads stop at a barrier or shuffle until the others arrive, and
// continue in an order that can be reversed: a kernel that lacks a barrier
// gives different results in the two orders, and a kernel that could hang
// throws. Speed, caches and the device compiler are not emulated.
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

/// Holds the indices and dimensions of a thread and its block.
struct Place {
  uint3 thread, block;
  dim3 threads, blocks; ///< blockDim and gridDim
};

/// Returns the indices and dimensions of the calling thread.
const Place &here();
/// Waits until every other thread of the block waits at a barrier of the block
/// or has ended.
void synchroniseBlock();
/// Waits until every other thread of the warp waits at a barrier of the warp or
/// has ended.
void synchroniseWarp();
/// Publishes `bits` to the other lanes of the warp, then waits at a barrier of
/// the warp. Other lanes may read the bits until the warp's next barrier.
void publish(std::uint64_t bits);
/// Returns the bits that lane `lane` of the warp published.
/// \throws std::logic_error if the warp has no such lane
std::uint64_t published(unsigned lane);
/// Begins an asynchronous copy of `bytes` bytes from `from` if `there`, else of
/// zeros. The destination holds NaNs until endCopies().
/// \throws std::logic_error if an address is not a multiple of `bytes`
void beginCopy(void *to, const void *from, std::size_t bytes, bool there);
/// Completes the copies that this thread began.
void endCopies();
/// Returns the block's dynamic shared memory, which initially holds NaNs.
void *launchedMemory();

/// Returns the number of tensor-core products of this process so far.
std::atomic<std::uint64_t> &coreProducts();

enum class Order { ascending, descending };
/// Sets the order in which threads of later kernels of this process resume.
void setOrder(Order order);

/// Runs `thread` for every thread of the grid.
/// \param shared     bytes of launchedMemory
/// \param arguments  the memory of the kernel's arguments; if not empty,
///                   threads may access only this, device and pinned memory
/// \throws std::logic_error if threads wait at a barrier that others do not
///         reach, or the exception of a thread
void run(dim3 grid, dim3 block, const std::function<void()> &thread,
         std::size_t shared = 0, Region arguments = {});

/// Returns whether a device supports a grid of `blocks` blocks of `threads`
/// threads.
bool isOfDevice(dim3 blocks, dim3 threads);

/// Limits the bytes of shared memory per block that a kernel of compute
/// capability 9.0 may opt in to. setSharedOfDevice() replaces this initial
/// limit.
inline constexpr int kMostSharedOfAny = 227 << 10;
void setSharedOfDevice(int bytes);

/// Returns the most bytes of launchedMemory() that a kernel may use.
std::size_t mostShared(const void *kernel);

/// Queues a kernel. Replaces cudaLaunchKernelEx.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(const cudaLaunchConfig_t *config,
                   void (*kernel)(Parameters...), Arguments... arguments) {
  if (const cudaError_t why = checkStreamDevice(config->stream);
      why != cudaSuccess)
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
      // The only pageable memory that threads may read is `call`, which holds
      // the arguments.
      run(
          blocks, threads,
          [&call] {
            std::apply([](auto what, const auto &...with) { what(with...); },
                       call);
          },
          shared, Region::of(call));
    } catch (const std::logic_error &error) {
      // The exception may end the process before anyone prints it.
      std::cerr << "a kernel: " << error.what() << std::endl;
      throw;
    }
  });
}

template <typename T> T shuffled(T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  publish(bits);
  bits = published(lane);
  // No lane may publish again before all lanes have read.
  synchroniseWarp();
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline unsigned laneHere() {
  const Place &place = here();
  return (place.thread.x + place.threads.x * place.thread.y) % 32;
}

} // namespace mtplan::emulator

// Defines the keywords of CUDA C++.
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
// A host thread runs one block at a time, so its variable serves one block.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define threadIdx (::mtplan::emulator::here().thread)
#define blockIdx (::mtplan::emulator::here().block)
#define blockDim (::mtplan::emulator::here().threads)
#define gridDim (::mtplan::emulator::here().blocks)

#define cudaLaunchKernelEx ::mtplan::emulator::launch

inline void __syncthreads() { ::mtplan::emulator::synchroniseBlock(); }

inline void __syncwarp() { ::mtplan::emulator::synchroniseWarp(); }

/// These functions round to nearest and are not contracted to an FMA.
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fadd_rn(float a, float b) { return a + b; }

/// Returns four of the eight bytes of high:low. The low three bits of each
/// hexadecimal digit of `which` are the number of a byte.
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
  ::mtplan::emulator::publish(holds != 0);
  std::uint64_t any = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    any |= ::mtplan::emulator::published(lane);
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

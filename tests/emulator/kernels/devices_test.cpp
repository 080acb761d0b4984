//===- devices_test.cpp - Devices of threads, and their memory ------------===//

#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/races.h"
#include "tests/emulator/streams.h"

namespace mtplan::runtime {
namespace {

/// Emulates two devices; tests use the second from a new thread.
class SecondDevice : public ::testing::Test {
protected:
  SecondDevice() { emulator::setDevices(2); }
  ~SecondDevice() override { emulator::setDevices(1); }

  template <typename Body> static void inNewThread(Body body) {
    std::thread(body).join();
  }
};

// CUDA uses device 0 by default. A thread that forgets to choose would create a
// context on a GPU that belongs to another rank.
TEST_F(SecondDevice, EveryThreadMustChooseItsDevice) {
  inNewThread([] {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
              cudaErrorDeviceUninitialized);
    useCudaDevice(1);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
              cudaSuccess);
    cudaStreamDestroy(stream);
  });
}

TEST_F(SecondDevice, AStreamRejectsThreadsOfOtherDevices) {
  inNewThread([] {
    useCudaDevice(1);
    const std::unique_ptr<Backend> backend = makeCudaBackend();
    const Allocation room(backend->memory(), 64);
    const std::unique_ptr<Kernel> zeros = backend->prepare(
        {"zeros", "x", {}, {}, {{ElementType::f32, {16}, {}}}});
    void *out = room.get();
    zeros->run({nullptr, &out});
    useCudaDevice(0);
    EXPECT_THROW(zeros->run({nullptr, &out}), std::runtime_error);
    useCudaDevice(1);
  });
}

// The checkpoint thread copies device memory to the host, too.
TEST_F(SecondDevice, AnyThreadMayFetch) {
  inNewThread([] {
    useCudaDevice(1);
    const std::unique_ptr<Backend> backend = makeCudaBackend();
    Memory &memory = backend->memory();
    const double given = 2.5;
    const Allocation room(memory, sizeof(given));
    memory.upload(room.get(), &given, sizeof(given));
    double fetched = 0.0;
    inNewThread([&] { memory.fetch(&fetched, room.get(), sizeof(fetched)); });
    EXPECT_EQ(fetched, given);
  });
}

// The emulator protects device memory. Otherwise, code that dereferences a
// device pointer on the host would pass here and fail on a real device.
TEST(CudaDevices, HostAccessToDeviceMemoryFaults) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  const Allocation room(backend->memory(), 64);
  EXPECT_DEATH(room.get()[8] = std::byte{1}, "");
  std::byte fetched{1};
  backend->memory().fetch(&fetched, room.get() + 8, 1);
  EXPECT_EQ(fetched, std::byte{0});
}

TEST(CudaDevices, KernelAccessToUnpinnedMemoryFails) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  const TensorView rows{ElementType::f32, {2, 8}, {}};
  const std::unique_ptr<Kernel> softmax =
      backend->prepare({"softmax", "x", {}, {rows}, {rows}});
  const Allocation room(backend->memory(), 64),
      pinned(backend->memory().staging(), 64);
  const emulator::WatchedAccesses watched;
  const void *in = room.get();
  void *out = pinned.get();
  softmax->run({&in, &out});
  backend->queue().finish();
  std::vector<float> numbers(16);
  out = numbers.data();
  softmax->run({&in, &out});
  EXPECT_THROW(backend->queue().finish(), std::logic_error);
}

// If a device has fewer connections than streams, independent streams may wait
// for each other.
TEST(CudaDevices, HaveAConnectionForEveryStream) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  cudaDevices();
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  useCudaDevice(0);
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "1");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

// Lazy loading may synchronise with a device that waits for another rank.
TEST(CudaDevices, LoadKernelsEagerlyWithSeveralRanks) {
  unsetenv("CUDA_MODULE_LOADING");
  cudaDevices();
  prepareCuda(1); // a single rank waits for no other
  EXPECT_EQ(std::getenv("CUDA_MODULE_LOADING"), nullptr);
  prepareCuda(2);
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  prepareCuda(2);
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "LAZY");
  unsetenv("CUDA_MODULE_LOADING");
}

} // namespace
} // namespace mtplan::runtime

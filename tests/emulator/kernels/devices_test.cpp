//===- devices_test.cpp - Threads and their devices -----------------------===//

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

/// Two devices, of which a thread of its own has the second.
class SecondDevice : public ::testing::Test {
protected:
  SecondDevice() { emulator::setDevices(2); }
  ~SecondDevice() override { emulator::setDevices(1); }

  template <typename Body> static void inNewThread(Body body) {
    std::thread(body).join();
  }
};

// Of several devices CUDA takes the first for who has not said: then what is
// asked would open a context in memory that is another rank's.
TEST_F(SecondDevice, EveryThreadSaysWhichIsIts) {
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

TEST_F(SecondDevice, AStreamComputesForThreadsOfItsDevice) {
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

// A checkpoint's thread is not the rank's.
TEST_F(SecondDevice, IsFetchedFromByAnyThread) {
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

// A host that reads what kernels have made would find it here, and nothing on a
// machine with devices.
TEST(CudaDevices, HaveMemoryThatTheHostDoesNotReach) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  const Allocation room(backend->memory(), 64);
  EXPECT_DEATH(room.get()[8] = std::byte{1}, "");
  std::byte fetched{1};
  backend->memory().fetch(&fetched, room.get() + 8, 1);
  EXPECT_EQ(fetched, std::byte{0});
}

TEST(CudaDevices, DoNotReachWhatTheHostHasNotPinned) {
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

// Else streams wait for each other that have nothing to do with each other.
TEST(CudaDevices, HaveAConnectionForEveryStream) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  cudaDevices();
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  useCudaDevice(0);
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "1");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

// Else ranks that load kernels wait for each other's devices.
TEST(CudaDevices, HaveTheirKernelsBeforeRanksWaitForEachOther) {
  unsetenv("CUDA_MODULE_LOADING");
  cudaDevices();
  prepareCuda(1); // there is nobody to wait for
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

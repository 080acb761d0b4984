//===- product_peak_test.cpp - The peak of known devices ------------------===//

#include <algorithm>
#include <map>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/executor/product_peak.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::Pair;

/// Emulates a device whose products only advance a clock.
struct Device {
  double now = 0.0;
  double launch = 2e-5, flops = 5e14;
  double hiccup = 0.0; ///< additional seconds of the second run
  std::size_t room = std::size_t{80} << 30, taken = 0; ///< bytes
  bool records = true;
  std::map<std::int64_t, int> ran; ///< number of runs, by size
};

/// Counts what is allocated and uploaded, but stores nothing.
class NoMemory final : public Memory {
public:
  explicit NoMemory(Device &d) : device(d) {}
  void *allocate(std::size_t bytes) override {
    if (device.taken + bytes > device.room)
      throw std::runtime_error("out of memory");
    device.taken += bytes;
    return &device;
  }
  void release(void *, std::size_t bytes) noexcept override {
    device.taken -= bytes;
  }
  void upload(void *, const void *from, std::size_t bytes) override {
    const auto *const numbers = static_cast<const float *>(from);
    uploaded += bytes / sizeof(float);
    zeros += std::count(numbers, numbers + bytes / sizeof(float), 0.0F);
  }
  void download(void *, const void *, std::size_t) override {}
  void fetch(void *, const void *, std::size_t) override {}
  Memory &staging() override { return hostMemory(); }
  void queueUpload(void *, const void *, std::size_t) override {}
  void queueDownload(void *, const void *, std::size_t) override {}

  std::size_t uploaded = 0; ///< number of uploaded elements
  std::ptrdiff_t zeros = 0;

private:
  Device &device;
};

class Square final : public Kernel {
public:
  Square(Device &d, std::int64_t s) : device(d), size(s) {}
  void run(const Invocation &) override {
    const auto side = static_cast<double>(size);
    device.now += device.launch + 2.0 * side * side * side / device.flops;
    if (++device.ran[size] == 2 && size == 512)
      device.now += device.hiccup;
  }

private:
  Device &device;
  const std::int64_t size;
};

class Recorder final : public Queue {
public:
  explicit Recorder(Device &d) : device(d) {}
  bool records() const override { return device.records; }

private:
  Device &device;
};

class OneDevice final : public Backend {
public:
  explicit OneDevice(Device &d) : near(d), device(d), order(d) {}
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    return std::make_unique<Square>(device, spec.inputs[1].shape[0]);
  }
  Memory &memory() override { return near; }
  Queue &queue() override { return order; }

  NoMemory near;

private:
  Device &device;
  Recorder order;
};

double peakOf(Device &device) {
  double peak = 0.0;
  runOnThreads(1, {}, [&](World &world) {
    OneDevice backend(device);
    peak = productPeak(Plan{}, world, backend, [&] { return device.now; });
  });
  EXPECT_EQ(device.taken, 0U);
  return peak;
}

// A product of 512 x 512 matrices would reach only a fortieth of the peak.
TEST(ProductPeak, FastDeviceIsMeasuredByALargeProduct) {
  Device device;
  EXPECT_NEAR(peakOf(device), device.flops, 0.02 * device.flops);
  EXPECT_THAT(device.ran,
              ElementsAre(Pair(512, 2), Pair(1024, 2), Pair(2048, 2),
                          Pair(4096, 2), Pair(8192, 23)));
}

TEST(ProductPeak, DelayOfASmallProductIsIgnored) {
  Device device;
  device.hiccup = 0.01;
  EXPECT_NEAR(peakOf(device), device.flops, 0.02 * device.flops);
}

// A slow device, such as an emulated one, runs no product larger than 512.
TEST(ProductPeak, SlowDeviceIsMeasuredByASmallProduct) {
  Device device;
  device.flops = 1e9;
  EXPECT_NEAR(peakOf(device), device.flops, 1e-3 * device.flops);
  EXPECT_THAT(device.ran, ElementsAre(Pair(512, 5)));
}

TEST(ProductPeak, MemoryLimitsTheProduct) {
  Device device;
  // A product of size 4096 needs 192 MiB, and one of size 8192 needs 768 MiB.
  device.room = std::size_t{300} << 20;
  EXPECT_NEAR(peakOf(device), device.flops, 0.08 * device.flops);
  EXPECT_EQ(device.ran.rbegin()->first, 4096);
  device.room = 1 << 20;
  EXPECT_THROW(peakOf(device), std::runtime_error);
}

// CPU cores are timed between barriers, and their first run does not count.
TEST(ProductPeak, CoresAreMeasuredBySixSmallProducts) {
  Device device;
  device.records = false;
  device.flops = 1e11;
  EXPECT_NEAR(peakOf(device), device.flops, 0.01 * device.flops);
  EXPECT_THAT(device.ran, ElementsAre(Pair(512, 7)));
}

TEST(ProductPeak, OperandsAreNoZeros) {
  Device device;
  device.records = false;
  OneDevice backend(device);
  runOnThreads(1, {}, [&](World &world) {
    productPeak(Plan{}, world, backend, [&] { return device.now; });
  });
  EXPECT_EQ(backend.near.uploaded, 2U * 512 * 512);
  EXPECT_EQ(backend.near.zeros, 0);
}

} // namespace
} // namespace mtplan::runtime

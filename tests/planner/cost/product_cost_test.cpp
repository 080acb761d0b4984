//===- product_cost_test.cpp - Tiles, waves and alignment by hand ---------===//

#include <random>

#include <gtest/gtest.h>

#include "planner/cost/kernel_cost.h"
#include "planner/machine/machine_json.h"

using namespace mtplan::planner;

namespace {

// Returns a device of 100 units and 1 Tflop/s in fp16, of which products reach
// half.
Device roundDevice(std::vector<Tile> tiles) {
  Device device;
  device.units = 100;
  device.tiles = std::move(tiles);
  device.gemmEfficiency = 0.5;
  device.fp16 = FlopsPerSec{1e12};
  device.fp32 = FlopsPerSec{1e11};
  return device;
}

double time(const Device &device, double m, double n, double k,
            double batch = 1, Precision precision = Precision::fp16) {
  return productTime({m, n, k, batch}, device, precision).value;
}

TEST(ProductTime, TakesTheFastestTile) {
  Device device = roundDevice({{20, 10, 1.0}, {10, 10, 0.8}});
  // A wave of large tiles has 100 * 200 * 2 * 10000 flops and takes 0.8 ms; a
  // wave of small tiles, at 0.8 of the rate, takes 0.5 ms. The product has one
  // wave of 60 large tiles, or two waves of 110 small tiles in all.
  EXPECT_DOUBLE_EQ(time(device, 110, 100, 10'000), 0.8e-3);
  // The product has one wave of 100 small tiles, or 50 large tiles that two
  // units share each.
  EXPECT_DOUBLE_EQ(time(device, 100, 100, 10'000), 0.4e-3);
  // The product has two waves of 105 large tiles in all, or three of 210 small
  // tiles.
  EXPECT_DOUBLE_EQ(time(device, 420, 50, 10'000), 1.5e-3);
  // The product has 10 tiles of either size, so ten units share each.
  EXPECT_DOUBLE_EQ(time(device, 10, 100, 10'000), 0.05e-3);
}

TEST(ProductTime, AWaveHasAFixedTimeInProportionToItsArea) {
  Device device = roundDevice({{20, 10, 1.0}, {10, 10, 0.8}});
  device.wave = Seconds{40e-6};
  EXPECT_DOUBLE_EQ(time(device, 110, 100, 10'000), 0.84e-3);
  // The small tile has half the area, so each of its waves takes 20 us longer.
  EXPECT_DOUBLE_EQ(time(device, 420, 50, 10'000), 1.56e-3);
  // A wave that uses a share of the units takes that share of the fixed time,
  // even if k is too short to be split between units.
  EXPECT_DOUBLE_EQ(time(device, 100, 100, 10'000), 0.42e-3);
  EXPECT_DOUBLE_EQ(time(device, 10, 100, 500), 25e-6 + 2e-6);
}

TEST(ProductTime, UnalignedExtentsAreSlow) {
  Device device = roundDevice({{1, 1, 1.0}});
  device.products.unaligned64 = 0.5;
  device.products.unaligned8 = 0.25;
  // Tiles have one element, so the time is 2 m n k / 0.5 Tflop/s.
  auto slowdown = [&](double m, double n, double k, Precision precision) {
    double rate = precision == Precision::fp16 ? 0.5e12 : 0.05e12;
    return time(device, m, n, k, 1, precision) * rate / (2 * m * n * k);
  };
  EXPECT_DOUBLE_EQ(slowdown(100, 128, 192, Precision::fp16), 1);
  EXPECT_DOUBLE_EQ(slowdown(100, 120, 192, Precision::fp16), 2);
  EXPECT_DOUBLE_EQ(slowdown(100, 128, 200, Precision::fp16), 2);
  EXPECT_DOUBLE_EQ(slowdown(100, 128, 108, Precision::fp16), 4);
  EXPECT_DOUBLE_EQ(slowdown(100, 121, 128, Precision::fp16), 4);
  // In fp32, 128 bytes are 32 elements, and 16 bytes are 4 elements.
  EXPECT_DOUBLE_EQ(slowdown(100, 96, 160, Precision::fp32), 1);
  EXPECT_DOUBLE_EQ(slowdown(100, 100, 160, Precision::fp32), 2);
  EXPECT_DOUBLE_EQ(slowdown(100, 102, 160, Precision::fp32), 4);
}

struct Row {
  const char *machine;
  double m, n, k, batch, relative;
  double microseconds;
};

// The program of docs/studies/step-time gives these values with the constants
// of its section 4: products of published models, batched score products with
// head sizes 128 and 108, a tensor rank's product with n = 1800, and a product
// with a long contraction. (Program and planner differ for products of few
// tiles with a short contraction, see wavesOf().)
constexpr Row kStudy[] = {
    {"dgx-a100-80g", 16384, 12288, 4096, 1, 1, 6442.0834},
    {"dgx-a100-80g", 2048, 5120, 1280, 1, 1, 110.9053},
    {"dgx-a100-80g", 4096, 1800, 14400, 1, 1, 1300.0762},
    {"dgx-a100-80g", 2048, 2048, 108, 16, 0.85, 481.7265},
    {"dgx-a100-80g", 2048, 2048, 128, 40, 0.85, 309.1279},
    {"dgx-a100-80g", 1024, 768, 65536, 1, 1, 443.0760},
    {"dgx-h100", 8192, 28672, 8192, 1, 1, 6103.2639},
    {"dgx-h100", 8192, 1024, 8192, 1, 1, 221.9369},
    {"dgx-h100", 4096, 4096, 14336, 1, 1, 769.5790},
    {"dgx-2h", 8192, 2304, 3072, 1, 1, 1115.4646},
    {"dgx-2h", 1024, 1024, 96, 32, 0.85, 132.1541},
};

TEST(ProductTime, EqualsTheStudy) {
  for (const Row &row : kStudy) {
    SCOPED_TRACE(testing::Message() << row.machine << ' ' << row.m << " x "
                                    << row.n << " x " << row.k);
    Machine machine = loadMachine(row.machine);
    EXPECT_NEAR(productTime({row.m, row.n, row.k, row.batch}, machine.device,
                            machine.defaultPrecision, row.relative)
                        .value *
                    1e6,
                row.microseconds, 1e-3 * row.microseconds);
  }
}

// The test adds 1 to m or to the batch, or 64 to n or k, which leaves the
// alignment unchanged.
TEST(ProductTime, MoreOfAnyDimensionNeverTakesLess) {
  for (const char *name : {"dgx-2h", "dgx-a100-80g", "dgx-h100", "cpu"}) {
    Machine machine = loadMachine(name);
    const Device &device = machine.device;
    Precision precision = machine.defaultPrecision;
    std::mt19937_64 rng(7);
    auto size = [&] { return static_cast<double>(1 + rng() % 4000); };
    for (int round = 0; round < 2000; ++round) {
      double m = size(), n = size(), k = size();
      double batch = static_cast<double>(1 + rng() % 20);
      double before = time(device, m, n, k, batch, precision) * (1 - 1e-12);
      EXPECT_GE(time(device, m + 1, n, k, batch, precision), before);
      EXPECT_GE(time(device, m, n + 64, k, batch, precision), before);
      EXPECT_GE(time(device, m, n, k + 64, batch, precision), before);
      EXPECT_GE(time(device, m, n, k, batch + 1, precision), before);
    }
  }
}

TEST(ProductLowerBound, NoShapeIsFaster) {
  for (const std::string &name : presetNames()) {
    Machine machine = loadMachine(name);
    std::mt19937_64 rng(11);
    auto size = [&] { return static_cast<double>(1 + rng() % 6000); };
    for (int round = 0; round < 500; ++round) {
      ProductShape shape{size(), size(), size(),
                         static_cast<double>(1 + rng() % 9)};
      for (double relative : {1.0, 0.85})
        EXPECT_LE(productLowerBound(Flops{shape.flops()}, machine.device,
                                    machine.defaultPrecision, relative)
                      .value,
                  productTime(shape, machine.device, machine.defaultPrecision,
                              relative)
                          .value *
                      (1 + 1e-12));
    }
  }
}

} // namespace

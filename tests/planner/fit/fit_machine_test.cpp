//===- fit_machine_test.cpp - The fit recovers known machines -------------===//
//
// The planner's cost model generates measurements of a machine with known
// figures, exactly or with noise; the fit must find those figures.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/fit/fit_machine.h"
#include "planner/fit/least_squares.h"
#include "planner/fit/measurements_json.h"
#include "planner/machine/machine_json.h"

namespace mtplan::planner {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json quantity(json value) {
  return {{"value", std::move(value)}, {"source", "a test"}};
}

// Returns the file of dgx-a100-80g with "fit" in place of the figures of
// kTruth.
json machineToFit() {
  json file;
  file["name"] = "ours";
  file["devices_per_node"] = quantity(8);
  file["device"] = {{"like", "A100-SXM4-80GB"},
                    {"name", "A100 of ours"},
                    {"launch_us", "fit"},
                    {"bandwidth_efficiency", "fit"},
                    {"elementwise_efficiency", "fit"},
                    {"gemm_efficiency", "fit"},
                    {"wave_us", "fit"},
                    {"unaligned_64_rate", "fit"},
                    {"unaligned_8_rate", "fit"},
                    {"batched_rate", "fit"},
                    {"tiles", quantity({{256, 128, 1},
                                        {128, 128, "fit"},
                                        {128, 64, "fit"},
                                        {64, 64, "fit"}})}};
  file["levels"] = {{{"name", "nvswitch"},
                     {"ranks", quantity(8)},
                     {"bandwidth_GBps", "fit"},
                     {"latency_us", "fit"},
                     {"base_us", "fit"}},
                    {{"name", "infiniband"},
                     {"bandwidth_GBps", "fit"},
                     {"latency_us", "fit"},
                     {"base_us", "fit"}}};
  return file;
}

// Holds the figures of the machine that the fit must find.
const std::map<std::string, double> kTruth = {
    {"/machine/device/launch_us", 3.25},
    {"/machine/device/bandwidth_efficiency", 0.8},
    {"/machine/device/elementwise_efficiency", 0.9},
    {"/machine/device/gemm_efficiency", 0.78},
    {"/machine/device/wave_us", 1.75},
    {"/machine/device/unaligned_64_rate", 0.7},
    {"/machine/device/unaligned_8_rate", 0.25},
    {"/machine/device/batched_rate", 0.875},
    {"/machine/device/tiles/value/1/2", 0.96},
    {"/machine/device/tiles/value/2/2", 0.8},
    {"/machine/device/tiles/value/3/2", 0.65},
    {"/machine/levels/0/bandwidth_GBps", 220},
    {"/machine/levels/0/latency_us", 0.5},
    {"/machine/levels/0/base_us", 12},
    {"/machine/levels/1/bandwidth_GBps", 22},
    {"/machine/levels/1/latency_us", 6},
    {"/machine/levels/1/base_us", 4}};

Machine trueMachine() {
  json file = {{"machine", machineToFit()}};
  for (const auto &[pointer, value] : kTruth) {
    json &place = file[json::json_pointer(pointer)];
    place = pointer.find("tiles") == std::string::npos ? quantity(value)
                                                       : json(value);
  }
  return parseMachine(file["machine"].dump());
}

/// Makes a measurement file with times of the true machine and optional noise.
class Bench {
public:
  explicit Bench(double spread = 0.0, unsigned seed = 1)
      : noise(spread), random(seed) {
    file = {{"source", "a bench of ours"}, {"machine", machineToFit()}};
    for (int count : {1000, 2000, 5000})
      add("launches", MeasuredKind::launches, {{"count", count}});
    for (const char *kind : {"stream", "elementwise"})
      for (std::int64_t bytes : {1 << 20, 1 << 24, 1 << 28, 1 << 30})
        add("passes",
            kind == std::string("stream") ? MeasuredKind::stream
                                          : MeasuredKind::elementwise,
            {{"kind", kind}, {"bytes", bytes}});
    addProducts();
    for (int ranks : {2, 4, 8, 16, 32, 64})
      for (std::int64_t bytes = 1 << 12; bytes <= 1 << 30; bytes *= 8) {
        addCollective("all_reduce", MeasuredKind::allReduce, bytes, ranks);
        addCollective("all_gather", MeasuredKind::allGather, bytes, ranks);
        addCollective("reduce_scatter", MeasuredKind::reduceScatter, bytes,
                      ranks);
      }
    addCollective("all_to_all", MeasuredKind::allToAll, 1 << 26, 8);
    json send = {{"kind", "send"}, {"bytes", 1 << 26}, {"stride", 8}};
    add("collectives", MeasuredKind::send, send);
  }

  std::string text() const { return file.dump(); }
  json file;

private:
  void addProducts() {
    for (int size : {512, 768, 1024, 1536, 2048, 3072, 4096, 8192})
      for (int depth : {256, 1024, 4096, 16384})
        addProduct(size, size, depth, 1);
    for (int rows : {64, 128, 256, 384, 512, 640, 1024, 2048})
      for (int columns : {512, 1024, 2048, 4096, 6144})
        addProduct(rows, columns, 2048, 1);
    for (int columns : {1032, 4104, 8200}) // multiples of 8, not of 64
      addProduct(4096, columns, 4096, 1);
    for (int columns : {1030, 4100, 8195}) // not multiples of 8
      addProduct(4096, columns, 4096, 1);
    for (int batch : {16, 64, 256})
      for (int size : {1024, 2048})
        addProduct(size, size, 512, batch);
  }

  void addProduct(int m, int n, int k, int batch) {
    add("products", MeasuredKind::product,
        {{"m", m}, {"n", n}, {"k", k}, {"batch", batch}});
  }

  void addCollective(const char *kind, MeasuredKind measured,
                     std::int64_t bytes, int ranks) {
    add("collectives", measured,
        {{"kind", kind}, {"bytes", bytes}, {"ranks", ranks}});
  }

  void add(const char *list, MeasuredKind kind, json row) {
    Measurement made;
    made.kind = kind;
    made.count = row.value("count", 0);
    made.bytes = row.value("bytes", 0.0);
    made.m = row.value("m", 0);
    made.n = row.value("n", 0);
    made.k = row.value("k", 0);
    made.batch = row.value("batch", 1);
    made.ranks = row.value("ranks", 2);
    made.stride = row.value("stride", 1);
    double seconds = made.predicted(truth);
    // A sum of twelve uniform numbers is nearly normal, and the same on every
    // platform.
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += static_cast<double>(random() >> 11) * 0x1p-53;
    row["us"] = seconds * 1e6 * std::exp(noise * sum);
    file[list].push_back(std::move(row));
  }

  double noise;
  std::mt19937_64 random;
  Machine truth = trueMachine();
};

MachineFit fitted(const std::string &text) {
  std::vector<std::string> errors;
  std::optional<MachineFit> fit = fitMachine(parseMeasurements(text), errors);
  for (const std::string &error : errors)
    ADD_FAILURE() << error;
  return fit ? std::move(*fit) : MachineFit{};
}

TEST(FitMachine, FindsAKnownMachine) {
  MachineFit fit = fitted(Bench().text());
  ASSERT_EQ(fit.figures.size(), kTruth.size());
  for (const FittedFigure &found : fit.figures) {
    double truth = kTruth.at(found.figure.pointer);
    EXPECT_NEAR(found.value, truth, 2e-3 * truth) << found.figure.pointer;
    EXPECT_FALSE(found.atBound) << found.figure.pointer;
  }
  for (const FitResidual &residual : fit.residuals)
    EXPECT_LT(residual.rms, 1e-3) << nameOf(residual.kind);
}

// About 240 measurements have 2 % of noise each. Every figure is within 2 %, or
// within four of the standard deviations that the fit reports.
TEST(FitMachine, FindsItUnderNoise) {
  for (unsigned seed : {1U, 2U, 3U}) {
    MachineFit fit = fitted(Bench(0.02, seed).text());
    for (const FittedFigure &found : fit.figures) {
      SCOPED_TRACE(found.figure.pointer + " seed " + std::to_string(seed));
      double truth = kTruth.at(found.figure.pointer);
      EXPECT_NEAR(found.value, truth,
                  std::max(0.02 * truth, 4 * found.deviation));
      EXPECT_LT(found.deviation, 0.3 * truth);
    }
    for (const FitResidual &residual : fit.residuals) {
      EXPECT_LT(residual.rms, 0.03) << nameOf(residual.kind);
      EXPECT_LT(std::abs(residual.worst), 0.1) << nameOf(residual.kind);
    }
  }
}

TEST(FitMachine, DoesNotDependOnTheOrder) {
  Bench bench(0.02);
  std::string first = fittedMachineText(bench.text(), fitted(bench.text()));
  std::mt19937_64 random(7);
  for (int round = 0; round < 3; ++round) {
    for (const char *list : {"launches", "passes", "products", "collectives"})
      for (std::size_t i = bench.file[list].size(); i-- > 1;)
        std::swap(bench.file[list][i], bench.file[list][random() % (i + 1)]);
    EXPECT_EQ(fittedMachineText(bench.text(), fitted(bench.text())), first);
  }
}

TEST(FitMachine, WritesAMachineFileWithSources) {
  Bench bench;
  MachineFit fit = fitted(bench.text());
  std::string text = fittedMachineText(bench.text(), fit);
  EXPECT_EQ(formatMachine(parseMachine(text), ""),
            formatMachine(fit.machine, ""));
  json file = json::parse(text);
  EXPECT_EQ(file["device"]["like"], "A100-SXM4-80GB");
  EXPECT_EQ(file["device"]["gemm_efficiency"]["value"], 0.78);
  EXPECT_EQ(file["device"]["gemm_efficiency"]["source"],
            "fit of 95 measurements, 0.0 % rms: a bench of ours");
  EXPECT_EQ(file["levels"][1]["base_us"]["source"],
            "fit of 128 measurements, 0.0 % rms: a bench of ours");
  EXPECT_EQ(file["device"]["tiles"]["source"],
            "a test; rates: fit of 95 measurements, 0.0 % rms: a bench of "
            "ours");
}

// An efficiency above 1 is fitted as the bound 1, which the result reports.
TEST(FitMachine, StaysWithinPhysics) {
  Bench bench;
  for (json &row : bench.file["passes"])
    row["us"] = row["us"].get<double>() / 2;
  MachineFit fit = fitted(bench.text());
  for (const FittedFigure &found : fit.figures) {
    if (found.figure.kind == FigureKind::bandwidthEfficiency) {
      EXPECT_EQ(found.value, 1.0);
      EXPECT_TRUE(found.atBound);
    }
    EXPECT_GE(found.value, 0.0);
  }
}

// Returns the errors of a fit that must fail.
std::vector<std::string> refusals(const Bench &bench) {
  std::vector<std::string> errors;
  EXPECT_FALSE(fitMachine(parseMeasurements(bench.text()), errors));
  return errors;
}

TEST(FitMachine, NamesTheMissingMeasurements) {
  Bench bench;
  bench.file.erase("collectives");
  std::vector<std::string> errors = refusals(bench);
  ASSERT_EQ(errors.size(), 6U);
  EXPECT_EQ(errors[0],
            "/machine/levels/0/bandwidth_GBps: no measurement determines "
            "it; measure collectives: of at least 100 MB over 2 or more ranks, "
            "which reach \"nvswitch\"");
  EXPECT_EQ(errors[4],
            "/machine/levels/1/latency_us: no measurement determines "
            "it; measure collectives: of 1 KB to 10 MB over more than 8 ranks, "
            "which reach \"infiniband\", by groups of different size");

  bench = Bench();
  std::erase_if(bench.file["collectives"].get_ref<json::array_t &>(),
                [](const json &row) {
                  return row.value("ranks", 0) > 8 || row["kind"] == "send";
                });
  errors = refusals(bench);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_THAT(errors[0], HasSubstr("/machine/levels/1/bandwidth_GBps: no "
                                   "measurement depends on it; measure "));

  // Keeps only unbatched products whose n is a multiple of 64.
  bench = Bench();
  std::erase_if(bench.file["products"].get_ref<json::array_t &>(),
                [](const json &row) {
                  return row["n"].get<int>() % 64 != 0 || row["batch"] > 1;
                });
  errors = refusals(bench);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0], "/machine/device/unaligned_64_rate: no measurement "
                       "depends on it; measure products: with n or k a "
                       "multiple of 8 and not of 64, n = 4104");
  EXPECT_THAT(errors[1], HasSubstr("unaligned_8_rate"));
  EXPECT_THAT(errors[2], HasSubstr("batched_rate"));

  // Collectives of one size over one group do not distinguish rate and delays.
  bench = Bench();
  std::erase_if(bench.file["collectives"].get_ref<json::array_t &>(),
                [](const json &row) {
                  return row.value("ranks", 0) != 64 || row["bytes"] != 1 << 27;
                });
  errors = refusals(bench);
  EXPECT_GT(errors.size(), 1U);

  // The first tile's rate is the unit of the other rates and cannot be fitted.
  bench = Bench();
  bench.file["machine"]["device"]["tiles"]["value"][0][2] = "fit";
  errors = refusals(bench);
  ASSERT_GT(errors.size(), 1U);
  EXPECT_THAT(errors[0], HasSubstr("the measurements do not distinguish "
                                   "/machine/device/gemm_efficiency and "));
}

std::string messageOf(const json &file) {
  try {
    parseMeasurements(file.dump());
  } catch (const MeasurementsError &error) {
    return error.what();
  }
  return "";
}

TEST(ParseMeasurements, NamesEveryMistakeWithItsPlace) {
  json good = Bench().file;
  auto with = [&](const char *pointer, const json &value) {
    json file = good;
    file[json::json_pointer(pointer)] = value;
    return messageOf(file);
  };
  EXPECT_EQ(messageOf(good), "");
  EXPECT_EQ(with("/products/3/m", 0),
            "/products/3/m: must be a whole number from 1 to 10000000, got 0");
  EXPECT_THAT(with("/products/3/us", -1), HasSubstr("/products/3/us: must be"));
  EXPECT_THAT(with("/products/3/width", 1),
              HasSubstr("/products/3/width: unknown key; the nearest "));
  EXPECT_THAT(with("/collectives/2/kind", "all-reduce"),
              HasSubstr("/collectives/2/kind: "));
  EXPECT_THAT(
      with("/collectives/2/ranks", 1),
      HasSubstr("/collectives/2/ranks: must be a whole number from 2 to "));
  EXPECT_THAT(with("/passes/0/kind", "copy"), HasSubstr("/passes/0/kind: "));
  EXPECT_EQ(with("/source", " "),
            "/source: must say what was measured and on which machine");
  EXPECT_THAT(with("/product", json::array()),
              HasSubstr("/product: unknown key; the nearest valid key is "
                        "\"products\""));
  EXPECT_EQ(with("/machine/device/units", "fit"),
            "/machine/device/units: cannot be fitted; keys that can be fitted: "
            "launch_us, bandwidth_efficiency, elementwise_efficiency, "
            "gemm_efficiency, gemm_efficiency_fp32, gemm_efficiency_fp16, "
            "gemm_efficiency_bf16, wave_us, unaligned_64_rate, "
            "unaligned_8_rate, batched_rate\n"
            "/machine/device/units: needs a source; write {\"value\": ..., "
            "\"source\": \"where it is from\"}");
  EXPECT_THAT(
      with("/machine/levels/0/ranks", "fit"),
      HasSubstr("/machine/levels/0/ranks: cannot be fitted; keys "
                "that can be fitted: bandwidth_GBps, latency_us, base_us, "));
  EXPECT_THAT(with("/machine/device/like", "A100"),
              HasSubstr("/machine/device/like: no preset has a device"));
  json nothing = good;
  nothing["machine"] = {{"name", "given"},
                        {"devices_per_node", quantity(8)},
                        {"device", "A100-SXM4-80GB"},
                        {"link", {{"bandwidth_GBps", quantity(20)}}}};
  EXPECT_THAT(messageOf(nothing),
              HasSubstr("/machine: has nothing to be fitted"));
  EXPECT_THAT(messageOf(json::array()), HasSubstr("must be an object"));
}

// The least-squares line through (0, 1), (1, 2), (2, 3.3), (3, 3.7), worked by
// hand, has slope 0.94 and intercept 1.09.
TEST(LeastSquares, FitsALine) {
  const double kX[] = {0, 1, 2, 3}, kY[] = {1, 2, 3.3, 3.7};
  auto errors = [&](const std::vector<double> &values) {
    std::vector<double> left(4);
    for (std::size_t i = 0; i < left.size(); ++i)
      left[i] = values[0] + values[1] * kX[i] - kY[i];
    return left;
  };
  FitUnknown unknown{-10, 10, {0}, FitScale::linear};
  LeastSquares line = solveLeastSquares({unknown, unknown}, errors);
  EXPECT_NEAR(line.values[0], 1.09, 1e-6);
  EXPECT_NEAR(line.values[1], 0.94, 1e-6);
  // The squares of the residuals 0.09, 0.03, -0.33, 0.21 sum to 0.162, or 0.081
  // per degree of freedom; the slope's variance is 0.081 / 5, where 5 is the
  // sum of the squared deviations of x from its mean.
  EXPECT_NEAR(line.deviations[1], std::sqrt(0.081 / 5), 1e-6);
  // The slope is limited to 0.5 and reaches this bound. The intercept is then
  // the mean of y - 0.5 x.
  unknown.most = 0.5;
  LeastSquares bound =
      solveLeastSquares({{-10, 10, {0}, FitScale::linear}, unknown}, errors);
  EXPECT_EQ(bound.values[1], 0.5);
  EXPECT_TRUE(bound.atBound[1]);
  EXPECT_NEAR(bound.values[0], 1.75, 1e-6);
}

} // namespace
} // namespace mtplan::planner

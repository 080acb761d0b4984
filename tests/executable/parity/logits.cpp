//===- logits.cpp - Captures the logits of a plan -------------------------===//

#include "tests/executable/parity/logits.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <mutex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/backend/element.h"
#include "runtime/data/step_samples.h"
#include "runtime/executor/step_data.h"

namespace mtplan {

using namespace runtime;

namespace {

/// Holds the logits that the ranks have computed so far; all ranks share it.
struct Seen {
  std::mutex mutex;
  Logits logits; ///< NaN where no rank has computed an element
  std::string fault;

  void add(const TensorView &view, std::int64_t microBatch, const void *data) {
    std::scoped_lock lock(mutex);
    logits.positions = view.pieces.at(1).global;
    logits.vocabulary = view.pieces.at(2).global;
    logits.ofOneRank = view.shape.at(2);
    const std::int64_t whole =
        view.pieces[0].global * logits.positions * logits.vocabulary;
    const std::int64_t first = microBatch * whole;
    const auto least = static_cast<std::size_t>(first + whole);
    if (logits.elements.size() < least)
      logits.elements.resize(least, std::numeric_limits<double>::quiet_NaN());
    forEachElement(view, [&](std::int64_t local, std::int64_t global) {
      double &kept = logits.elements[static_cast<std::size_t>(first + global)];
      const double value = readElement(view.type, data, local);
      if (!std::isnan(kept) && kept != value)
        fault = "element " + std::to_string(first + global) + " is " +
                std::to_string(kept) + " on one rank and " +
                std::to_string(value) + " on another";
      kept = value;
    });
  }
};

class SeenKernel : public Kernel {
public:
  SeenKernel(std::unique_ptr<Kernel> theInner, TensorView theView,
             Seen &theSeen)
      : inner(std::move(theInner)), view(std::move(theView)), seen(theSeen) {}
  void run(const Invocation &call) override {
    seen.add(view, call.microBatch, call.inputs[0]);
    inner->run(call);
  }

private:
  std::unique_ptr<Kernel> inner;
  const TensorView view;
  Seen &seen;
};

class SeeingBackend : public Backend {
public:
  SeeingBackend(std::unique_ptr<Backend> theInner, Seen &theSeen)
      : inner(std::move(theInner)), seen(theSeen) {}
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    std::unique_ptr<Kernel> kernel = inner->prepare(spec);
    if (spec.label != "loss.max")
      return kernel;
    return std::make_unique<SeenKernel>(std::move(kernel), spec.inputs.at(0),
                                        seen);
  }

private:
  std::unique_ptr<Backend> inner;
  Seen &seen;
};

} // namespace

LogitsGolden readLogitsGolden(const std::string &file) {
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(file));
  LogitsGolden golden;
  auto samples = std::make_shared<StepSamples>();
  samples->ids = json.at("ids").get<std::vector<std::int32_t>>();
  if (json.contains("types"))
    samples->types = json.at("types").get<std::vector<std::int32_t>>();
  // The targets are arbitrary, because the loss is not used.
  samples->targets = samples->ids;
  samples->count = static_cast<std::int64_t>(samples->targets.size());
  golden.samples = samples;
  golden.logits.positions = json.at("sequence");
  golden.logits.elements = json.at("logits").get<std::vector<double>>();
  golden.logits.vocabulary =
      static_cast<std::int64_t>(golden.logits.elements.size()) / samples->count;
  return golden;
}

Logits logitsOf(const Plan &plan,
                const std::shared_ptr<const StepSamples> &samples,
                MakeBackend makeBackend, const FillWeights &fill) {
  Seen seen;
  // Other tests may occupy all cores for a long time.
  WorldOptions patient;
  patient.patience = std::chrono::minutes(2);
  runOnThreads(plan.ranks, patient, [&](World &world) {
    SeeingBackend backend(makeBackend(), seen);
    RankExecutor rank(plan, world, backend);
    fill(world, rank);
    SampleData data(samples);
    StepInput input;
    input.data = &data;
    rank.evaluate(input);
  });
  EXPECT_EQ(seen.fault, "");
  EXPECT_FALSE(seen.logits.elements.empty());
  EXPECT_TRUE(std::ranges::none_of(seen.logits.elements,
                                   [](double x) { return std::isnan(x); }));
  return seen.logits;
}

double apart(const Logits &made, const Logits &expected) {
  EXPECT_EQ(made.positions, expected.positions);
  EXPECT_GE(made.vocabulary, expected.vocabulary);
  const auto width = static_cast<std::size_t>(expected.vocabulary);
  const auto stride = static_cast<std::size_t>(made.vocabulary);
  const std::size_t rows = expected.elements.size() / width;
  if (made.elements.size() != rows * stride) {
    ADD_FAILURE() << made.elements.size() << " logits, but " << rows
                  << " rows of " << stride << " are expected";
    return std::numeric_limits<double>::infinity();
  }
  double largest = 0.0, worst = 0.0;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < width; ++column) {
      const double right = expected.elements[row * width + column];
      largest = std::max(largest, std::abs(right));
      worst = std::max(worst,
                       std::abs(made.elements[row * stride + column] - right));
    }
  return worst / largest;
}

} // namespace mtplan

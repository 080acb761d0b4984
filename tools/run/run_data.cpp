//===- run_data.cpp - Where a run's samples come from ---------------------===//

#include "tools/run/run_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/executor/sample_data.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

// The first samples, and how many there are.
std::string printOf(const Dataset &dataset, std::int64_t sequence) {
  std::string print = fmt::format("{} samples:", dataset.samplesPerEpoch());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequence + 1));
  const std::int64_t few = std::min<std::int64_t>(4, dataset.samplesPerEpoch());
  for (std::int64_t i = 0; i < few; ++i) {
    dataset.sample(i, tokens);
    print.append(reinterpret_cast<const char *>(tokens.data()),
                 tokens.size() * sizeof(std::int32_t));
  }
  return print;
}

} // namespace

RunData::RunData(const Plan &thePlan, const RunFlags &theFlags, int takers)
    : plan(thePlan), flags(theFlags) {
  if (flags.data == "synthetic") {
    print = "synthetic";
    return;
  }
  const Objective objective = objectiveOf(plan, flags.train.seed);
  auto reader = std::make_shared<StepReader>(
      open(flags.data, objective, flags.train.steps * plan.globalBatch),
      objective, plan.sequence, plan.globalBatch);
  prefetcher = std::make_unique<Prefetcher>(
      [reader](std::int64_t step) { return reader->read(step); }, 0,
      flags.train.steps, takers);
}

std::shared_ptr<const Dataset> RunData::open(const std::string &path,
                                             const Objective &objective,
                                             std::int64_t samples) {
  DataOptions options;
  options.path = path;
  if (!flags.format.empty())
    options.format = tokenFormatNamed(flags.format);
  options.sequence = objective.sampleSequence(plan.sequence);
  options.vocabulary = vocabularyOf(plan);
  options.seed = flags.train.seed;
  options.samples = samples;
  std::shared_ptr<const Dataset> dataset = openDataset(options);
  print += printOf(*dataset, options.sequence);
  return dataset;
}

std::unique_ptr<StepData> RunData::trained(std::int64_t step, World &world) {
  if (!prefetcher)
    return std::make_unique<DrawnData>(
        drawnDataOf(plan, flags.train.seed, step));
  std::shared_ptr<const StepSamples> samples = prefetcher->take(step - 1);
  if (!samples) // another rank has failed, and says so
    world.barrier("the end of the run");
  return std::make_unique<SampleData>(std::move(samples));
}

void RunData::stop() {
  if (prefetcher)
    prefetcher->stop();
}

} // namespace mtplan::tools

//===- run_data.cpp - Where a run's samples come from ---------------------===//

#include "tools/run/run_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/data/megatron_index.h"
#include "runtime/executor/sample_data.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr const char *kSynthetic = "synthetic";

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

std::vector<std::string> filesOf(const std::string &data) {
  if (data.empty() || data == kSynthetic)
    return {};
  const auto [bin, idx] = megatronFiles(data);
  return {data, bin, idx};
}

RunData::RunData(const Plan &thePlan, const RunFlags &theFlags, int itsTakers)
    : plan(thePlan), flags(theFlags), takers(itsTakers),
      validSteps(flags.train.validationSteps) {
  openTrained();
  printOfTrained = print;
  openValidated();
}

void RunData::openTrained() {
  if (flags.data == kSynthetic) {
    print += kSynthetic;
    return;
  }
  const Objective objective = objectiveOf(plan, flags.train.seed);
  reader = std::make_shared<StepReader>(
      open(flags.data, objective, flags.train.steps * plan.globalBatch),
      objective, plan.sequence, plan.globalBatch);
}

void RunData::begin(std::int64_t steps, std::int64_t samples) {
  const std::lock_guard lock(mutex);
  if (!reader || prefetcher)
    return;
  prefetcher = std::make_unique<Prefetcher>(
      [from = reader, steps, samples](std::int64_t step) {
        return from->read(step, samples + (step - steps) * from->globalBatch());
      },
      steps, std::max(steps, flags.train.steps), takers);
}

void RunData::openValidated() {
  if (flags.valid.empty() || flags.valid == kSynthetic) {
    print += flags.valid;
    return;
  }
  const Objective objective = objectiveOf(plan, flags.train.seed);
  std::shared_ptr<const Dataset> dataset =
      open(flags.valid, objective, validSteps * plan.globalBatch);
  validSteps = std::clamp<std::int64_t>(
      dataset->samplesPerEpoch() / plan.globalBatch, 1, validSteps);
  validReader = std::make_unique<StepReader>(dataset, objective, plan.sequence,
                                             plan.globalBatch);
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
  if (!reader)
    return std::make_unique<DrawnData>(
        drawnDataOf(plan, flags.train.seed, step));
  std::shared_ptr<const StepSamples> samples = prefetcher->take(step - 1);
  if (!samples) // another rank has failed, and says so
    world.barrier("the end of the run");
  return std::make_unique<SampleData>(std::move(samples));
}

std::unique_ptr<StepData> RunData::validated(std::int64_t step) {
  if (!validReader) // of another seed than what is trained on
    return std::make_unique<DrawnData>(
        drawnDataOf(plan, ~flags.train.seed, step));
  const std::lock_guard lock(mutex);
  std::shared_ptr<const StepSamples> samples = shared[step].lock();
  if (!samples) {
    samples = std::make_shared<StepSamples>(validReader->read(step - 1));
    shared[step] = samples;
  }
  return std::make_unique<SampleData>(std::move(samples));
}

void RunData::stop() {
  if (prefetcher)
    prefetcher->stop();
}

} // namespace mtplan::tools

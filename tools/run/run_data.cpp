//===- run_data.cpp - The samples of a run --------------------------------===//

#include "tools/run/run_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/data/megatron_index.h"
#include "runtime/executor/sample_data.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr const char *kSynthetic = "synthetic";

DataIdentity identityOf(const std::string &named, const Dataset *dataset) {
  if (!dataset)
    return {named, named};
  const std::string content = dataset->identity();
  return {content, fmt::format("{}: {}", dataset->name(), content)};
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
  openValidated();
}

void RunData::openTrained() {
  if (flags.data == kSynthetic)
    return;
  const Objective objective = objectiveOf(plan, flags.train.seed);
  trainedSet =
      open(flags.data, objective, flags.train.steps * plan.globalBatch);
  reader = std::make_shared<StepReader>(trainedSet, objective, plan.sequence,
                                        plan.globalBatch);
}

void RunData::begin(std::int64_t steps, std::int64_t samples) {
  const std::lock_guard lock(mutex);
  if (begun)
    return;
  begun = true;
  stepsBefore = steps;
  samplesBefore = samples;
  if (!reader)
    return;
  prefetcher = std::make_unique<Prefetcher>(
      [from = reader, steps, samples](std::int64_t step) {
        return from->read(step, samples + (step - steps) * from->globalBatch());
      },
      steps, std::max(steps, flags.train.steps), takers);
}

void RunData::openValidated() {
  if (flags.valid.empty() || flags.valid == kSynthetic)
    return;
  const Objective objective = objectiveOf(plan, flags.train.seed);
  validatedSet = open(flags.valid, objective, validSteps * plan.globalBatch);
  validSteps = std::clamp<std::int64_t>(
      validatedSet->samplesPerEpoch() / plan.globalBatch, 1, validSteps);
  validReader = std::make_unique<StepReader>(validatedSet, objective,
                                             plan.sequence, plan.globalBatch);
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
  return openDataset(options);
}

const DataIdentity &RunData::trainedIdentity() {
  const std::lock_guard lock(mutex);
  if (!trainedIs)
    trainedIs = identityOf(flags.data, trainedSet.get());
  return *trainedIs;
}

const DataIdentity &RunData::validatedIdentity() {
  const std::lock_guard lock(mutex);
  if (!validatedIs)
    validatedIs = identityOf(flags.valid, validatedSet.get());
  return *validatedIs;
}

std::string RunData::firstSamples() const {
  if (!trainedSet)
    return kSynthetic;
  const std::int64_t samples = trainedSet->samplesPerEpoch();
  std::string text = fmt::format("{} samples:", samples);
  std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(trainedSet->options().sequence + 1));
  for (std::int64_t i = 0; i < std::min<std::int64_t>(4, samples); ++i) {
    trainedSet->sample(i, tokens);
    text.append(reinterpret_cast<const char *>(tokens.data()),
                tokens.size() * sizeof(std::int32_t));
  }
  return text;
}

std::unique_ptr<StepData> RunData::trained(std::int64_t step, World &world) {
  if (!reader)
    return std::make_unique<DrawnData>(drawnDataFrom(
        plan, flags.train.seed,
        samplesBefore + (step - 1 - stepsBefore) * plan.globalBatch));
  std::shared_ptr<const StepSamples> samples = prefetcher->take(step - 1);
  if (!samples) // another rank has failed, and reports it
    world.barrier("the end of the run");
  return std::make_unique<SampleData>(std::move(samples));
}

std::unique_ptr<StepData> RunData::validated(std::int64_t step) {
  if (!validReader) // drawn from another seed than the training data
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

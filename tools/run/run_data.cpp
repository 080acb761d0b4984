//===- run_data.cpp - The samples of a run, and `mtrun data` --------------===//

#include "tools/run/run_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/data/data_command.h"
#include "runtime/data/files.h"
#include "runtime/data/megatron_index.h"
#include "runtime/executor/step_data.h"
#include "runtime/plan/plan_json.h"

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

std::shared_ptr<const Dataset>
openFor(const Plan &plan, const Objective &objective, const std::string &path,
        std::optional<TokenFormat> format, std::uint64_t seed,
        std::int64_t samples) {
  DataOptions options;
  options.path = path;
  options.format = format;
  options.sequence = objective.sampleSequence(plan.sequence);
  options.vocabulary = vocabularyOf(plan);
  options.seed = seed;
  options.samples = samples;
  return openDataset(options);
}

// Writes the samples of `mtrun --steps N --seed S` for stand-alone programs
// (docs/stand-alone.md), and describes the output.
// runtime/cuda/standalone/samples.cuh reads the format.
std::string writeSteps(const DataFlags &flags,
                       std::optional<TokenFormat> format) {
  std::filesystem::path path = flags.plan;
  if (std::filesystem::is_directory(path))
    path /= "plan.json";
  const Plan plan = readPlanFile(path);
  NamedFiles files;
  for (const std::string &one : filesOf(flags.file))
    files.read("FILE", one);
  files.read("PLAN", path);
  if (const std::string why = files.write("TO", flags.to); !why.empty())
    throw BadInput(flags.to + ": " + why);
  if (flags.steps < 1)
    throw BadInput(fmt::format("--steps {}: must be 1 or more", flags.steps));
  const Objective objective = objectiveOf(plan, flags.seed);
  const StepReader reader(openFor(plan, objective, flags.file, format,
                                  flags.seed, flags.steps * plan.globalBatch),
                          objective, plan.sequence, plan.globalBatch);
  std::ofstream out(flags.to, std::ios::binary);
  constexpr char kMagic[] = "mtplan steps 1\n";
  out.write(kMagic, sizeof(kMagic));
  const auto number = [&](std::int64_t value) {
    out.write(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  for (std::int64_t step = 0; step < flags.steps; ++step) {
    const StepSamples samples = reader.read(step, step * plan.globalBatch);
    number(samples.count);
    for (const std::vector<std::int32_t> *all :
         {&samples.ids, &samples.targets, &samples.types,
          &samples.decoderIds}) {
      number(static_cast<std::int64_t>(all->size()));
      out.write(
          reinterpret_cast<const char *>(all->data()),
          static_cast<std::streamsize>(all->size() * sizeof(std::int32_t)));
    }
  }
  out.close();
  if (!out)
    throw BadInput(flags.to + ": cannot be written");
  return fmt::format("{}: {} steps of {} samples\n", flags.to, flags.steps,
                     plan.globalBatch);
}

} // namespace

std::vector<std::string> filesOf(const std::string &data) {
  if (data.empty() || data == kSynthetic)
    return {};
  const auto [bin, idx] = megatronFiles(data);
  return {data, bin, idx};
}

RunData::RunData(const Plan &thePlan, const RunFlags &theFlags, int ranksHere)
    : plan(thePlan), flags(theFlags), takers(ranksHere),
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
  return openFor(plan, objective, path,
                 flags.format.empty() ? std::nullopt
                                      : tokenFormatNamed(flags.format),
                 flags.train.seed, samples);
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
  if (!samples) // another rank has failed, and reports the failure
    world.barrier("the end of the run");
  return std::make_unique<SampleData>(std::move(samples));
}

std::unique_ptr<StepData> RunData::validated(std::int64_t step) {
  if (!validReader) // synthetic, with another seed than the training data
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

CLI::App *describeData(CLI::App &app, DataFlags &flags) {
  CLI::App *data =
      app.add_subcommand("data", "inspect and convert token files");
  data->require_subcommand(1);
  auto verb = [&](const char *name, const char *what) {
    CLI::App *one = data->add_subcommand(name, what);
    one->add_option("FILE", flags.file)->required()->type_name("");
    one->add_option("--format", flags.format, tokenFormatNames())
        ->type_name("WORD");
    return one;
  };
  verb("info", "print format, sizes and checksums")
      ->add_option("--sequence", flags.sequence,
                   "tokens per sample: also print the number of samples")
      ->type_name("N");
  verb("check", "read every token")
      ->add_option("--vocabulary", flags.vocabulary,
                   "vocabulary size that every token must be below")
      ->type_name("N");
  verb("convert", "write Megatron-LM's .bin and .idx")
      ->add_option("TO", flags.to)
      ->required()
      ->type_name("");
  CLI::App *steps = verb("steps", "write the samples of a plan, step by step, "
                                  "for a stand-alone program");
  steps->add_option("PLAN", flags.plan)->required()->type_name("");
  steps->add_option("TO", flags.to)->required()->type_name("");
  steps
      ->add_option(
          "--steps", flags.steps,
          fmt::format("number of training steps (default: {})", flags.steps))
      ->type_name("N");
  steps
      ->add_option(
          "--seed", flags.seed,
          fmt::format("seed of the sample order (default: {})", flags.seed))
      ->type_name("N");
  return data;
}

std::string runData(const CLI::App &data, const DataFlags &flags) {
  std::optional<TokenFormat> format;
  if (!flags.format.empty() && !(format = tokenFormatNamed(flags.format)))
    throw BadInput("--format " + flags.format + ": must be one of " +
                   tokenFormatNames());
  const std::string verb = data.get_subcommands().front()->get_name();
  if (verb == "info")
    return dataInfo(flags.file, format, flags.sequence);
  if (verb == "check")
    return dataCheck(flags.file, format, flags.vocabulary);
  if (verb == "steps")
    return writeSteps(flags, format);
  return dataConvert(flags.file, format, flags.to, {});
}

} // namespace mtplan::tools

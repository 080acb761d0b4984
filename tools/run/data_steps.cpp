//===- data_steps.cpp - `mtrun data steps` --------------------------------===//

#include "tools/run/data_steps.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "runtime/data/named_files.h"
#include "runtime/executor/sample_data.h"
#include "runtime/plan/plan_json.h"
#include "tools/run/run_data.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

using namespace runtime;

// The format is the one that runtime/cuda/standalone/samples.cuh reads.
std::string writeSteps(const std::string &file,
                       std::optional<TokenFormat> format, const std::string &to,
                       const DataStepsFlags &flags) {
  std::filesystem::path path = flags.plan;
  if (std::filesystem::is_directory(path))
    path /= "plan.json";
  const Plan plan = readPlanFile(path);
  NamedFiles files;
  for (const std::string &one : filesOf(file))
    files.read("FILE", one);
  files.read("PLAN", path);
  if (const std::string why = files.write("TO", to); !why.empty())
    throw BadInput(to + ": " + why);
  if (flags.steps < 1)
    throw BadInput(fmt::format("--steps {}: must be 1 or more", flags.steps));
  const Objective objective = objectiveOf(plan, flags.seed);
  DataOptions options;
  options.path = file;
  options.format = format;
  options.sequence = objective.sampleSequence(plan.sequence);
  options.vocabulary = vocabularyOf(plan);
  options.seed = flags.seed;
  options.samples = flags.steps * plan.globalBatch;
  const StepReader reader(openDataset(options), objective, plan.sequence,
                          plan.globalBatch);
  std::ofstream out(to, std::ios::binary);
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
    throw BadInput(to + ": cannot be written");
  return fmt::format("{}: {} steps of {} samples\n", to, flags.steps,
                     plan.globalBatch);
}

} // namespace mtplan::tools

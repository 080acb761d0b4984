//===- torch_golden.cpp - A training run of PyTorch -----------------------===//

#include "tests/executable/parity/torch_golden.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <mutex>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/backend/element.h"
#include "runtime/executor/step_data.h"
#include "tests/executable/run_plan.h"
#include "tests/tools/command_testing.h"
#include "tools/command/command.h"
#include "tools/driver/pipeline.h"
#include "tools/driver/read_flags.h"

namespace mtplan {

namespace {

using Json = nlohmann::json;

runtime::TrainOptions trainingOf(const Json &how) {
  runtime::TrainOptions options;
  options.beta1 = how.at("beta1");
  options.beta2 = how.at("beta2");
  options.epsilon = how.at("epsilon");
  options.weightDecay = how.at("weight_decay");
  options.clipNorm = how.at("clip");
  runtime::LearningRate &rate = options.learningRate;
  rate.decay = runtime::decayNamed(how.at("decay").get<std::string>()).value();
  rate.peak = how.at("peak");
  rate.floor = how.at("floor");
  rate.warmup = how.at("warmup");
  rate.end = how.at("end");
  return options;
}

std::shared_ptr<const runtime::StepSamples> samplesOf(const Json &step) {
  auto samples = std::make_shared<runtime::StepSamples>();
  const auto tokens = [&](const char *name) {
    return step.value(name, std::vector<std::int32_t>());
  };
  samples->ids = tokens("ids");
  samples->types = tokens("types");
  samples->decoderIds = tokens("decoder_ids");
  samples->targets = tokens("targets");
  samples->count = std::ranges::count_if(
      samples->targets, [](std::int32_t target) { return target >= 0; });
  return samples;
}

} // namespace

Golden readGolden(const std::string &name) {
  const std::string folder = std::string(MTPLAN_SOURCE_DIR) + "/tests/parity/";
  Golden golden;
  golden.model = folder + name + ".json";
  const Json file =
      Json::parse(std::ifstream(folder + "goldens/" + name + ".json"));
  golden.globalBatch = file.at("global_batch");
  golden.sequence = file.at("sequence");
  golden.how = trainingOf(file.at("training"));
  for (const Json &step : file.at("steps")) {
    golden.samples.push_back(samplesOf(step));
    golden.patches.push_back(step.value("patches", std::vector<double>()));
    for (const char *number : {"rate", "loss", "norm"})
      golden.numbers[number].push_back(step.at(number));
  }
  golden.how.steps = static_cast<std::int64_t>(golden.samples.size());
  for (const auto &[label, columns] : file.at("parameters").items()) {
    golden.initial[label] = columns.at("initial").get<std::vector<double>>();
    for (const char *column : {"gradient", "final"})
      golden.numbers[std::string(column) + " " + label] =
          columns.at(column).get<std::vector<double>>();
  }
  return golden;
}

TransformersGolden readTransformersGolden(const std::string &name) {
  const std::string folder = std::string(MTPLAN_SOURCE_DIR) + "/tests/parity/";
  TransformersGolden read;
  Golden &golden = read.golden;
  golden.model = folder + name + ".json";
  const Json file = Json::parse(
      std::ifstream(folder + "goldens/transformers-" + name + ".json"));
  golden.globalBatch = file.at("global_batch");
  golden.sequence = file.at("sequence");
  const Json &step = file.at("steps").at(0);
  golden.samples.push_back(samplesOf(step));
  for (const char *number : {"loss", "norm"})
    golden.numbers[number].push_back(step.at(number));
  golden.how.steps = 1;
  for (const auto &[tensor, what] : file.at("tensors").items())
    read.tensors[tensor] = {what.at("shape").get<std::vector<std::int64_t>>(),
                            what.at("elements").get<std::vector<double>>()};
  return read;
}

namespace {

std::string nameOf(const runtime::Parameter &parameter, int copy) {
  return ir::TensorKey{parameter.label, parameter.firstCopy + copy}.name();
}

/// Gives a rank the samples and image patches of one step as its input.
class GoldenData : public runtime::SampleData {
public:
  GoldenData(const Golden &golden, std::size_t step)
      : SampleData(golden.samples[step]),
        patches(step < golden.patches.size() ? golden.patches[step]
                                             : kNoPatches) {}

  void fill(const runtime::Input &input, int microBatch,
            const runtime::TensorView &view, void *out) override {
    if (input.label != "patches")
      return SampleData::fill(input, microBatch, view, out);
    std::int64_t elements = 1; // number in a micro-batch, over all ranks
    for (const runtime::Span &piece : view.pieces)
      elements *= piece.global;
    runtime::forEachElement(view, [&](std::int64_t local, std::int64_t global) {
      runtime::writeElement(
          view.type, out, local,
          patches.at(static_cast<std::size_t>(microBatch * elements + global)));
    });
  }

private:
  inline static const std::vector<double> kNoPatches;
  const std::vector<double> &patches;
};

/// Holds the results of all ranks, combined under a mutex.
struct Shared {
  const Golden &golden;
  double tolerance;
  std::mutex mutex;
  std::map<std::string, Gathered::Whole> wholes;
  TorchRun run;
};

void keep(const runtime::RankExecutor &rank, const std::string &what,
          runtime::Tensor runtime::Parameter::*tensor, Shared &shared) {
  std::scoped_lock lock(shared.mutex);
  for (const runtime::Parameter &parameter : rank.stage().parameters)
    for (int copy = 0; copy < parameter.copies; ++copy) {
      std::string name = what + nameOf(parameter, copy);
      collect(rank, parameter.*tensor, copy, name, shared.tolerance,
              shared.wholes[name], shared.run.faults);
    }
}

void trainRank(runtime::RankExecutor &rank, bool reports, Shared &shared) {
  const Golden &golden = shared.golden;
  rank.initialise([&](const runtime::Parameter &parameter, int copy,
                      const runtime::TensorView &piece, double *values) {
    const std::vector<double> &all = golden.initial.at(nameOf(parameter, copy));
    runtime::forEachElement(
        piece, [&](std::int64_t local, std::int64_t global) {
          values[local] = all.at(static_cast<std::size_t>(global));
        });
  });
  const runtime::TrainOptions &how = golden.how;
  runtime::UpdateRuleSettings settings;
  settings.clip = how.clipNorm;
  runtime::UpdateRule rule(settings);
  for (std::int64_t step = 1; step <= how.steps; ++step) {
    GoldenData data(golden, static_cast<std::size_t>(step - 1));
    const double rate = learningRateAt(how.learningRate, step);
    runtime::StepInput input;
    input.data = &data;
    input.step = step;
    input.rule = &rule;
    input.update = {rate, how.beta1, how.beta2, how.epsilon, how.weightDecay,
                    step, 1.0};
    runtime::StepOutput output = rank.step(input);
    if (step == 1)
      keep(rank, "gradient ", &runtime::Parameter::gradient, shared);
    if (!reports)
      continue;
    Numbers &numbers = shared.run.numbers;
    numbers["rate"].push_back(rate);
    numbers["loss"].push_back(output.reports.at("loss"));
    numbers["norm"].push_back(output.gradientNorm);
  }
  keep(rank, "final ", &runtime::Parameter::value, shared);
}

} // namespace

TorchRun train(const runtime::Plan &plan, const Golden &golden,
               MakeBackend makeBackend, double tolerance) {
  Shared shared{golden, tolerance, {}, {}, {}};
  runtime::WorldOptions options;
  options.patience = std::chrono::minutes(2);
  runtime::runOnThreads(plan.ranks, options, [&](runtime::World &world) {
    std::unique_ptr<runtime::Backend> backend = makeBackend();
    runtime::RankExecutor rank(plan, world, *backend);
    trainRank(rank, world.rank() == 0, shared);
  });
  for (const auto &[name, whole] : shared.wholes)
    for (std::size_t i = 0; i < whole.elements.size(); ++i)
      shared.run.numbers[name].push_back(whole.known[i] ? whole.elements[i]
                                                        : NAN);
  return shared.run;
}

std::optional<runtime::Plan> planned(const Golden &golden,
                                     const std::vector<std::string> &flags,
                                     runtime::ElementType precision) {
  std::vector<std::string> arguments{golden.model,
                                     "--hardware",
                                     "cpu",
                                     "--seq",
                                     std::to_string(golden.sequence),
                                     "--global-batch",
                                     std::to_string(golden.globalBatch)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::ostringstream out;
  int code = 0;
  auto parsed = tools::parseArguments(tools::plain(arguments), out, out, code);
  std::vector<std::string> errors;
  if (!parsed) {
    ADD_FAILURE() << out.str();
    return std::nullopt;
  }
  tools::PlanRequest request = tools::readFlags(*parsed, errors);
  tools::PlanOutcome outcome = tools::plan(request, errors);
  EXPECT_EQ(outcome.errors, std::vector<std::string>());
  if (!outcome.best())
    return std::nullopt;
  const tools::Problem &problem = *outcome.problem;
  const planner::Parallelism &how = outcome.best()->config;
  auto module = tools::moduleOf(problem, tools::Stage::partitioned,
                                outcome.best(), errors);
  EXPECT_EQ(errors, std::vector<std::string>());
  if (!module)
    return std::nullopt;
  mlir::Builder builder(problem.context.get());
  setElementType(*module, precision == runtime::ElementType::f64
                              ? mlir::FloatType(builder.getF64Type())
                              : mlir::FloatType(builder.getF32Type()));
  return compiled(*module, how.schedule, static_cast<int>(how.microBatches()));
}

} // namespace mtplan

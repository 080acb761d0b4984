//===- train.cpp - Many steps of a plan -----------------------------------===//

#include "runtime/executor/train.h"

#include <chrono>
#include <string>

#include "runtime/metrics/process_memory.h"
#include "runtime/training/initial_values.h"

namespace mtplan::runtime {

TimeSpent train(const Plan &plan, World &world, Backend &backend,
                const TrainOptions &options, const DataOfStep &data,
                const std::function<void(const StepRecord &)> &seen) {
  RankExecutor rank(plan, world, backend);
  Initialisation how{options.seed, options.deviation, plan.layers};
  rank.initialise([&](const Parameter &parameter, int copy,
                      const TensorView &piece, double *values) {
    fillInitial(how, parameter.label, parameter.firstCopy + copy,
                parameter.init, piece, values);
  });
  UpdateRuleSettings settings;
  settings.clip = options.clipNorm;
  settings.skipNonFinite = options.skipNonFinite;
  UpdateRule rule(settings);
  const double modelFlops = rank.flops() * plan.ranks;
  using Clock = std::chrono::steady_clock;
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    auto start = Clock::now();
    std::unique_ptr<StepData> inputs = data(step);
    StepInput input;
    input.data = inputs.get();
    input.seed = options.seed;
    input.step = step;
    input.rule = &rule;
    input.update = {learningRateAt(options.learningRate, step),
                    options.beta1,
                    options.beta2,
                    options.epsilon,
                    options.weightDecay,
                    step,
                    1.0};
    StepOutput output = rank.step(input);
    if (world.rank() != 0)
      continue;
    StepRecord record;
    record.step = step;
    record.steps = options.steps;
    record.loss = output.reports["loss"];
    record.gradientNorm = output.gradientNorm;
    record.learningRate = input.update.learningRate;
    record.skipped = output.skipped;
    record.tokens = plan.globalBatch * plan.sequence;
    record.seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    record.modelFlops = modelFlops;
    record.ranks = plan.ranks;
    record.memoryBytes = processMemory().peak;
    seen(record);
  }
  return rank.timeSpent();
}

} // namespace mtplan::runtime

//===- train.cpp - Trains many steps of a plan ----------------------------===//

#include "runtime/executor/train.h"

#include <algorithm>
#include <string>

#include "runtime/communicator/launch.h"
#include "runtime/executor/step_times.h"
#include "runtime/metrics/step_record.h"
#include "runtime/training/initial_values.h"

namespace mtplan::runtime {

namespace {

class Training {
public:
  Training(const Plan &thePlan, World &theWorld, Backend &backend,
           const TrainOptions &theOptions, const TrainData &theData,
           const TrainHooks &hooks)
      : plan(thePlan), world(theWorld), options(theOptions), data(theData),
        beforeUpdate(hooks.beforeUpdate), rank(plan, world, backend),
        isQueued(backend.queue().records()), rule(settingsOf(options)),
        flops(sumOfAll(rank.flops())) {
    Initialisation how{options.seed, options.deviation, plan.layers};
    rank.initialise(
        [&](const Parameter &parameter, int copy, const TensorView &piece,
            double *values) {
          fillInitial(how, parameter.label, parameter.firstCopy + copy,
                      parameter.init, piece, values);
        },
        coresOfRank(world));
    if (!hooks.resume)
      return;
    if (const std::optional<TrainState> other = hooks.resume(rank)) {
      done = started = other->step;
      updates = other->updates;
      rule = UpdateRule(settingsOf(options), other->rule);
    }
  }

  // `beforeUpdate` must run before `rank` is destroyed with the parameters and
  // moments, also when a step throws.
  ~Training() {
    if (beforeUpdate)
      beforeUpdate();
  }
  Training(const Training &) = delete;
  Training &operator=(const Training &) = delete;

  std::int64_t stepsDone() const { return done; }
  TrainState state() const { return {done, updates, rule.state()}; }

  StepRecord step() {
    const std::int64_t number = done + 1;
    const bool isFirst = done == started;
    const bool traced = number == options.traceStep;
    const bool isTimed = traced || number == timedStep();
    if (isQueued && isTimed)
      settle();
    if (traced)
      world.barrier("the traced step");
    const double start = monotonicSeconds();
    std::unique_ptr<StepData> inputs = data.trained(number);
    StepInput input = inputOf(*inputs, number);
    input.rule = &rule;
    input.beforeUpdate = beforeUpdate;
    input.lossScale = rule.lossScale();
    // A skipped step advances neither the bias correction of the moments nor
    // the schedule of the learning rate, as in Megatron-LM.
    input.update = {learningRateAt(options.learningRate, updates + 1),
                    options.beta1,
                    options.beta2,
                    options.epsilon,
                    options.weightDecay,
                    updates + 1,
                    1.0};
    if (traced)
      input.trace = &times.trace;
    input.isTimed = isTimed;
    if (isQueued && isTimed)
      first = rank.instructionTimes();
    StepOutput output = rank.step(input);
    if (isQueued && isTimed)
      timed = since(first);
    done = number;
    updates += output.skipped ? 0 : 1;
    StepRecord record;
    record.seconds = monotonicSeconds() - start;
    if (traced)
      endTrace(start, record.seconds);
    if (isFirst) {
      first = rank.instructionTimes();
      firstSeconds = record.seconds;
    } else if (counts(number, isTimed)) {
      times.seconds += record.seconds;
      ++times.steps;
    }
    if (isQueued && isTimed)
      timedSeconds = record.seconds;
    if (options.validateEvery > 0 &&
        (number % options.validateEvery == 0 || number == options.steps))
      record.validationLoss = validate();
    record.step = number;
    record.steps = options.steps;
    record.loss = output.reports["loss"];
    record.gradientNorm = output.gradientNorm;
    record.learningRate = input.update.learningRate;
    if (options.scaler)
      record.lossScale = input.lossScale;
    record.skipped = output.skipped;
    record.tokens = plan.globalBatch * plan.sequence;
    record.modelFlops = flops;
    record.ranks = plan.ranks;
    record.peakFlops = options.peakFlops;
    record.memoryBytes = processMemory().peak;
    return record;
  }

  TrainTimes end() {
    settle();
    times.isOfOneStep = isQueued;
    times.spent = rank.timeSpent();
    times.instructions = rank.instructionTimes();
    if (times.steps > 0) {
      times.instructions = since(first);
    } else {
      times.seconds = timedSeconds > 0.0 ? timedSeconds : firstSeconds;
      times.steps = done > started ? 1 : 0;
    }
    if (isQueued) {
      times.instructions = timed;
      for (InstructionTime &time : times.instructions)
        time.seconds *= static_cast<double>(times.steps);
    }
    return std::move(times);
  }

private:
  // Waits for the device. The duration of the wait is added to the duration of
  // the counted steps, because some counted steps may still be queued.
  void settle() {
    const double start = monotonicSeconds();
    rank.settle();
    if (times.steps > 0)
      times.seconds += monotonicSeconds() - start;
  }

  // Returns whether the step's duration counts. The duration counts if all
  // later steps run in the same way. A device records its second step, and
  // replays the recording in later steps. If the second step is traced, the
  // first step after the timed step is recorded instead.
  bool counts(std::int64_t number, bool isTimed) const {
    const std::int64_t cold = options.traceStep == started + 2 ? 1 : 0;
    return !isQueued || (number > timedStep() + cold && !isTimed);
  }

  // Returns the number of the step that is timed on a device. The timed step is
  // the third step of this run, which usually follows the recorded step, or the
  // last step if the run has fewer. Returns 0 if kernels run when they are
  // called, because then all steps are timed.
  std::int64_t timedStep() const {
    constexpr std::int64_t kAfter = 3;
    return isQueued ? std::min(started + kAfter, options.steps) : 0;
  }

  std::vector<InstructionTime>
  since(const std::vector<InstructionTime> &before) const {
    std::vector<InstructionTime> spent = rank.instructionTimes();
    for (std::size_t i = 0; i < before.size(); ++i)
      spent[i].seconds -= before[i].seconds;
    return spent;
  }

  static UpdateRuleSettings settingsOf(const TrainOptions &options) {
    UpdateRuleSettings settings;
    settings.scaler = options.scaler;
    settings.clip = options.clipNorm;
    settings.skipNonFinite = options.skipNonFinite;
    return settings;
  }

  double sumOfAll(double mine) {
    double sum = 0.0;
    world.allRanks("flops")->allReduce("flops of a step", &mine, &sum,
                                       {ElementType::f64, 1, 1},
                                       Reduction::sum);
    return sum;
  }

  StepInput inputOf(StepData &inputs, std::int64_t number) const {
    StepInput input;
    input.data = &inputs;
    input.seed = options.seed;
    input.step = number;
    return input;
  }

  void endTrace(double start, double seconds) {
    times.traceSeconds = seconds;
    for (InstructionRun &run : times.trace) {
      run.start -= start;
      run.end -= start;
    }
  }

  double validate() {
    double sum = 0.0, targets = 0.0;
    for (std::int64_t step = 1; step <= options.validationSteps; ++step) {
      std::unique_ptr<StepData> inputs = data.validated(step);
      sum += rank.evaluate(inputOf(*inputs, step))["loss"] * inputs->count();
      targets += inputs->count();
    }
    return sum / targets;
  }

  const Plan &plan;
  World &world;
  const TrainOptions &options;
  const TrainData &data;
  const std::function<void()> beforeUpdate;
  RankExecutor rank;
  const bool isQueued; ///< whole steps are queued on a device
  UpdateRule rule;
  const double flops;
  /// `started` counts the steps before this run, and `done` counts all
  /// completed steps.
  std::int64_t started = 0, done = 0;
  std::int64_t updates = 0; ///< completed steps that were not skipped
  /// Holds the instruction times after the first step of this run or, on a
  /// device, before the latest timed step.
  std::vector<InstructionTime> first;
  /// Holds the instruction times of a device's latest timed step.
  std::vector<InstructionTime> timed;
  double firstSeconds = 0.0, timedSeconds = 0.0;
  TrainTimes times;
};

} // namespace

TrainTimes train(const Plan &plan, World &world, Backend &backend,
                 const TrainOptions &options, const TrainData &data,
                 const std::function<void(const StepRecord &)> &seen,
                 const TrainHooks &hooks) {
  Training training(plan, world, backend, options, data, hooks);
  while (training.stepsDone() < options.steps) {
    const StepRecord record = training.step();
    if (world.rank() == 0)
      seen(record);
    if (hooks.after && !hooks.after(training.state()))
      break;
  }
  return training.end();
}

} // namespace mtplan::runtime

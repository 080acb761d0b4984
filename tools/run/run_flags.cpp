//===- run_flags.cpp - The options of `mtrun` -----------------------------===//

#include "tools/run/run_flags.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/data/named_files.h"
#include "runtime/data/token_file.h"
#include "runtime/plan/nearest_word.h"
#include "tools/run/backends.h"
#include "tools/run/prediction.h"
#include "tools/run/run_data.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr std::int64_t kEvalEvery = 100, kEvalSteps = 10;
constexpr std::int64_t kSaveEvery = 500, kKeep = 2;
/// Low enough that the samples of as many steps can be counted.
constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::array<std::string_view, 5> kDecays = {
    "constant", "linear", "cosine", "inverse-square-root", "wsd"};
constexpr std::array<std::string_view, 7> kLossScales = {
    "auto", "none", "megatron", "deepspeed", "torch", "bmtrain", "nvidia"};
constexpr std::array<std::string_view, 3> kRanksAs = {"auto", "threads",
                                                      "processes"};
constexpr std::array<std::string_view, 2> kOnNan = {"stop", "skip"};

/// Collects what is wrong.
class Judge {
public:
  void number(bool good, const char *option, double value,
              const std::string &must) {
    if (!good)
      say(fmt::format("{} {}: must be {}", option, value, must));
  }
  void steps(std::int64_t least, const char *option, std::int64_t value) {
    number(value >= least && value <= kMostSteps, option,
           static_cast<double>(value),
           fmt::format("{} to {}", least, kMostSteps));
  }
  void word(const char *option, const std::string &word,
            std::span<const std::string_view> words) {
    if (std::ranges::find(words, word) != words.end())
      return;
    say(fmt::format("{} {}: must be {}; nearest is {}", option, word,
                    listed(words), nearestTo(word, words)));
  }
  void say(const std::string &what) {
    text += (text.empty() ? "" : "\n") + what;
  }

  std::string text;
};

bool above(double value, double least) {
  return std::isfinite(value) && value > least;
}
bool atLeast(double value, double least) {
  return std::isfinite(value) && value >= least;
}

// What is wrong with the text of a number; "" if nothing.
template <typename T> std::string misread(const std::string &typed, const T &) {
  if constexpr (std::is_same_v<T, std::string>) {
    return "";
  } else {
    using Number = decltype([] {
      if constexpr (std::is_arithmetic_v<T>)
        return T();
      else
        return typename T::value_type();
    }());
    Number number;
    return CLI::detail::lexical_cast(typed, number) &&
                   !(std::is_unsigned_v<Number> && typed.starts_with('-'))
               ? ""
               : typed +
                     std::string(std::is_integral_v<Number>
                                     ? " is not a whole number"
                                     : " is not a number") +
                     (std::is_unsigned_v<Number> ? ", 0 or more" : "");
  }
}

void judgeFormat(Judge &judge, const std::string &format) {
  if (format.empty() || tokenFormatNamed(format))
    return;
  const std::string names = tokenFormatNames();
  std::vector<std::string_view> words;
  for (std::size_t from = 0; from < names.size();) {
    const std::size_t end = std::min(names.find(", ", from), names.size());
    words.push_back(std::string_view(names).substr(from, end - from));
    from = end + 2;
  }
  judge.word("--format", format, words);
}

void judgeOutputs(Judge &judge, const RunFlags &flags) {
  NamedFiles files;
  for (const auto &[option, data] :
       {std::pair("--data", flags.data), std::pair("--valid", flags.valid)})
    for (const std::string &file : filesOf(data))
      files.read(option, file);
  // It may be the plan's file, whose prediction is beside it.
  files.read("FOLDER", flags.folder);
  files.read("FOLDER", flags.folder + "/plan.json");
  files.read("FOLDER", predictionFileOf(flags.folder));
  for (const auto &[option, file] : {std::pair("--metrics", flags.metrics),
                                     std::pair("--trace", flags.trace)})
    if (const std::string why = files.write(option, file); !why.empty())
      judge.say(fmt::format("{} {}: {}", option, file, why));
}

void readLossScale(Judge &judge, RunFlags &flags) {
  std::optional<LossScalerSettings> &scaler = flags.train.scaler;
  scaler = lossScalerNamed(flags.lossScale);
  double number = 0.0;
  if (scaler || flags.lossScale == "auto" || flags.lossScale == "none")
    return;
  if (!CLI::detail::lexical_cast(flags.lossScale, number))
    return judge.word("--loss-scale", flags.lossScale, kLossScales);
  constexpr double kMost = 0x1p127;
  judge.number(above(number, 0.0) && number <= kMost, "--loss-scale", number,
               "above 0 and at most 2^127");
  scaler = fixedLossScale(number);
}

} // namespace

void describe(CLI::App &app, RunFlags &flags) {
  const TrainOptions &train = flags.train;
  auto add = [&](const char *group, const char *name, auto &to,
                 const std::string &what, const char *type) {
    app.add_option(name, to, what)
        ->type_name(type)
        ->group(group)
        ->check([&to](const std::string &typed) { return misread(typed, to); });
  };
  app.add_option("FOLDER", flags.folder,
                 "what `mtplan -o` wrote: a folder, or its plan.json")
      ->type_name("");
  const char *data = "What is trained on";
  add(data, "--data", flags.data,
      "text, Megatron-LM .bin/.idx, llm.c .bin, raw tokens; or synthetic",
      "FILE");
  add(data, "--format", flags.format,
      "of it, where name and content do not tell: " + tokenFormatNames(),
      "WORD");
  add(data, "--steps", flags.train.steps,
      fmt::format("to train (default {})", train.steps), "N");
  add(data, "--valid", flags.valid,
      "not trained on: its loss and perplexity, with nothing dropped", "FILE");
  add(data, "--eval-every", flags.evalEvery,
      fmt::format("steps from one validation to the next; also after the last "
                  "(default {})",
                  kEvalEvery),
      "N");
  add(data, "--eval-steps", flags.evalSteps,
      fmt::format("global batches of a validation (default {})", kEvalSteps),
      "N");
  const char *how = "How";
  add(how, "--lr", flags.rate,
      fmt::format("peak learning rate (default {})", flags.rate), "RATE");
  add(how, "--lr-decay", flags.decay,
      "constant, linear, cosine (default), inverse-square-root or wsd", "WORD");
  add(how, "--lr-floor", flags.floorShare,
      fmt::format("where it ends, as a share of the peak (default {})",
                  flags.floorShare),
      "SHARE");
  add(how, "--warmup", flags.warmup, "steps until the peak (default: a tenth)",
      "N");
  add(how, "--weight-decay", flags.train.weightDecay,
      fmt::format("of matrices (default {})", train.weightDecay), "X");
  add(how, "--clip", flags.train.clipNorm,
      fmt::format("norm that all gradients are cut to; 0: none (default {})",
                  train.clipNorm),
      "NORM");
  add(how, "--loss-scale", flags.lossScale,
      "for fp16: as megatron, deepspeed, torch, bmtrain or nvidia grow and "
      "shrink it, a number that stays, none, or auto: torch where the plan "
      "computes in fp16 (default)",
      "WORD");
  add(how, "--on-nan", flags.onNan,
      "gradients that are no numbers: stop (default), or skip the step",
      "WORD");
  add(how, "--seed", flags.train.seed,
      fmt::format("of weights, order and masks (default {})", train.seed), "N");
  const char *kept = "What is kept";
  add(kept, "--checkpoint", flags.checkpoint,
      "where checkpoints go, also after the last step, and on SIGTERM, SIGINT "
      "or SIGUSR1; a run that finds some there goes on from the newest",
      "FOLDER");
  add(kept, "--save-every", flags.saveEvery,
      fmt::format("steps between them (default {})", kSaveEvery), "N");
  add(kept, "--keep", flags.keep,
      fmt::format("newest ones that stay, 2 or more (default {})", kKeep), "N");
  add(kept, "--load", flags.load,
      "checkpoint to go on from, of any layout, where --checkpoint has none "
      "yet: one, or a folder's newest",
      "FOLDER");
  add(kept, "--weights", flags.weights,
      "checkpoint whose weights the run begins with, at step 1", "FOLDER");
  const char *watch = "What is shown";
  add(watch, "--every", flags.every,
      fmt::format("steps between lines (default {})", flags.every), "N");
  add(watch, "--metrics", flags.metrics, "every step as a line of JSON",
      "FILE");
  add(watch, "--tensorboard", flags.tensorboard,
      "the same as events for TensorBoard", "FOLDER");
  add(watch, "--trace", flags.trace,
      "what ran when on every rank in one step, beside what was predicted, for "
      "Perfetto",
      "FILE");
  add(watch, "--trace-step", flags.traceStep, "which (default: the last)", "N");
  const char *ranks = "Ranks";
  add(ranks, "--backend", flags.backend,
      "what ranks compute on: cpu (default) or cuda, a GPU each", "NAME");
  add(ranks, "--ranks-as", flags.ranksAs,
      "what they are where no launcher has started them: threads, processes, "
      "or auto: processes if each has a GPU, else threads (default)",
      "WORD");
  add(ranks, "--threads", flags.threads,
      "of each rank (default: the cores shared out)", "N");
  add(ranks, "--patience", flags.patience,
      "seconds that a rank may keep others waiting before the run ends "
      "(default 8, or ten of the steps that were predicted)",
      "SECONDS");
}

void resolve(RunFlags &flags) {
  Judge judge;
  TrainOptions &train = flags.train;
  judge.steps(1, "--steps", train.steps);
  judge.number(above(flags.rate, 0.0), "--lr", flags.rate, "above 0");
  judge.number(atLeast(flags.floorShare, 0.0) && flags.floorShare <= 1.0,
               "--lr-floor", flags.floorShare, "a share, 0 to 1");
  if (flags.warmup)
    judge.steps(0, "--warmup", *flags.warmup);
  judge.number(atLeast(train.weightDecay, 0.0), "--weight-decay",
               train.weightDecay, "0 or more");
  judge.number(atLeast(train.clipNorm, 0.0), "--clip", train.clipNorm,
               "0 (none) or more");
  judge.number(flags.every >= 1, "--every", static_cast<double>(flags.every),
               "1 or more");
  for (const auto &[option, value] :
       {std::pair("--eval-every", flags.evalEvery),
        std::pair("--eval-steps", flags.evalSteps)}) {
    if (!value)
      continue;
    judge.steps(1, option, *value);
    if (flags.valid.empty())
      judge.say(fmt::format("{} {}: needs --valid FILE", option, *value));
  }
  if (flags.traceStep) {
    judge.number(*flags.traceStep >= 1 && *flags.traceStep <= train.steps,
                 "--trace-step", static_cast<double>(*flags.traceStep),
                 fmt::format("1 to {}, the last step", train.steps));
    if (flags.trace.empty())
      judge.say(
          fmt::format("--trace-step {}: needs --trace FILE", *flags.traceStep));
  }
  judgeOutputs(judge, flags);
  judge.word("--ranks-as", flags.ranksAs, kRanksAs);
  if (flags.threads)
    judge.number(*flags.threads >= 1 && *flags.threads <= 1024, "--threads",
                 *flags.threads, "1 to 1024");
  if (flags.patience)
    judge.number(*flags.patience >= 0.1 && *flags.patience <= 1e6, "--patience",
                 *flags.patience, "0.1 to 1000000 seconds");
  if (flags.saveEvery)
    judge.steps(1, "--save-every", *flags.saveEvery);
  if (flags.keep)
    judge.number(*flags.keep >= 2 && *flags.keep <= kMostSteps, "--keep",
                 static_cast<double>(*flags.keep),
                 "2 or more: the newest may be damaged");
  for (const auto &[option, value] :
       {std::pair("--save-every", flags.saveEvery),
        std::pair("--keep", flags.keep)})
    if (value && flags.checkpoint.empty())
      judge.say(fmt::format("{} {}: needs --checkpoint FOLDER, without which "
                            "nothing is saved",
                            option, *value));
  if (!flags.load.empty() && !flags.weights.empty())
    judge.say(fmt::format("--load {} and --weights {}: a run goes on or begins "
                          "anew; one of the two",
                          flags.load, flags.weights));
  judge.word("--lr-decay", flags.decay, kDecays);
  judge.word("--on-nan", flags.onNan, kOnNan);
  judge.word("--backend", flags.backend, kBackends);
  readLossScale(judge, flags);
  judgeFormat(judge, flags.format);
  if (!judge.text.empty())
    throw BadInput(judge.text);

  flags.saveEvery = flags.saveEvery.value_or(kSaveEvery);
  flags.keep = flags.keep.value_or(kKeep);
  if (!flags.valid.empty()) {
    train.validateEvery = flags.evalEvery.value_or(kEvalEvery);
    train.validationSteps = flags.evalSteps.value_or(kEvalSteps);
  }
  if (!flags.trace.empty())
    train.traceStep = flags.traceStep.value_or(train.steps);
  train.skipNonFinite = flags.onNan == "skip";
  LearningRate &rate = train.learningRate;
  rate.decay = *decayNamed(flags.decay);
  rate.peak = flags.rate;
  rate.floor = flags.rate * flags.floorShare;
  rate.warmup = flags.warmup.value_or(train.steps / 10);
  rate.end = std::max(train.steps, rate.warmup + 1);
  rate.annealing = std::max<std::int64_t>(1, (rate.end - rate.warmup) / 5);
  if (std::string fault = faultOf(rate); !fault.empty())
    throw BadInput(fault);
}

void suit(RunFlags &flags, const Plan &plan) {
  const bool half = std::ranges::any_of(plan.stages, [](const Stage &stage) {
    return std::ranges::any_of(stage.parameters, [](const Parameter &one) {
      return one.value.type == ElementType::f16;
    });
  });
  if (half && flags.lossScale == "auto")
    flags.train.scaler = lossScalerNamed("torch");
}

std::string optionsText(const RunFlags &flags) {
  const TrainOptions &train = flags.train;
  const LearningRate &rate = train.learningRate;
  return fmt::format(
      "steps {} seed {} lr {} {} {} {} {} {} adam {} {} {} {} clip {} skip {} "
      "deviation {} validation {} {} trace {} scale {} checkpoint {} every {} "
      "keep {} load {} weights {} backend {}",
      train.steps, train.seed, static_cast<int>(rate.decay), rate.peak,
      rate.floor, rate.warmup, rate.end, rate.annealing, train.beta1,
      train.beta2, train.epsilon, train.weightDecay, train.clipNorm,
      train.skipNonFinite, train.deviation, train.validateEvery,
      train.validationSteps, train.traceStep,
      train.scaler ? flags.lossScale : "none", flags.checkpoint,
      *flags.saveEvery, *flags.keep, flags.load, flags.weights, flags.backend);
}

} // namespace mtplan::tools

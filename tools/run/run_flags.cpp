//===- run_flags.cpp - The flags of `mtrun` -------------------------------===//

#include "tools/run/run_flags.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest_word.h"
#include "runtime/data/files.h"
#include "runtime/data/token_file.h"
#include "tools/exchange/prediction.h"
#include "tools/run/ranks.h"
#include "tools/run/run_data.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr std::int64_t kEvalEvery = 100, kEvalSteps = 10;
constexpr std::int64_t kSaveEvery = 500, kKeep = 2;
/// With this limit, the number of samples fits in 64 bits.
constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr double kLeastPositive = std::numeric_limits<double>::denorm_min();
constexpr double kMostReal = std::numeric_limits<double>::max();
constexpr std::array<std::string_view, 5> kDecays = {
    "constant", "linear", "cosine", "inverse-square-root", "wsd"};
constexpr std::array<std::string_view, 7> kLossScales = {
    "auto", "none", "megatron", "deepspeed", "torch", "bmtrain", "nvidia"};
constexpr std::array<std::string_view, 3> kRanksAs = {"auto", "threads",
                                                      "processes"};
constexpr std::array<std::string_view, 2> kOnNan = {"stop", "skip"};

class Faults {
public:
  void add(const std::string &fault) {
    if (!fault.empty())
      text += (text.empty() ? "" : "\n") + fault;
  }

  std::string text;
};

// Returns an error if the text does not represent a T, else "".
template <typename T> std::string misread(const std::string &typed) {
  if constexpr (std::is_same_v<T, std::string>) {
    return "";
  } else {
    T number;
    return CLI::detail::lexical_cast(typed, number) &&
                   !(std::is_unsigned_v<T> && typed.starts_with('-'))
               ? ""
               : typed +
                     std::string(std::is_integral_v<T>
                                     ? " is not a whole number"
                                     : " is not a number") +
                     (std::is_unsigned_v<T> ? ", 0 or more" : "");
  }
}

/// Returns the fault of a flag's value, without the flag's name, or "".
template <typename T> using Allowed = std::function<std::string(const T &)>;

template <typename T = std::int64_t>
Allowed<T> between(T least, T most, const std::string &must = "") {
  return [=](const T &value) {
    return value >= least && value <= most ? ""
           : !must.empty()                 ? "must be " + must
                           : fmt::format("must be {} to {}", least, most);
  };
}

template <typename Words> Allowed<std::string> oneOf(const Words &words) {
  return [all = std::vector<std::string_view>(words.begin(), words.end())](
             const std::string &word) -> std::string {
    if (std::ranges::find(all, word) != all.end())
      return "";
    return fmt::format("must be {}; nearest is {}", base::listed(all),
                       base::nearestTo(word, all));
  };
}

/// Describes a flag. `fault` is called once all flags are parsed.
struct Row {
  std::function<void(CLI::App &)> add;
  std::function<std::string()> fault;
};

template <typename T> const T *valueOf(const T &value) { return &value; }
template <typename T> const T *valueOf(const std::optional<T> &value) {
  return value ? &*value : nullptr;
}

template <typename T>
using ValueOf = std::decay_t<decltype(*valueOf(std::declval<T>()))>;

template <typename Member>
Row row(const char *group, const char *name, const char *type, Member &member,
        const std::string &help, const Allowed<ValueOf<Member>> &allowed = {}) {
  const auto add = [=, &member](CLI::App &app) {
    app.add_option(name, member, help)
        ->type_name(type)
        ->group(group)
        ->check([](const std::string &typed) {
          return misread<ValueOf<Member>>(typed);
        });
  };
  const auto fault = [=, &member]() -> std::string {
    const auto *value = valueOf(member);
    if (!allowed || !value)
      return "";
    const std::string why = allowed(*value);
    return why.empty() ? "" : fmt::format("{} {}: {}", name, *value, why);
  };
  return {add, fault};
}

std::vector<std::string_view> tokenFormats() {
  // The names are static, because the string views point into this text.
  static const std::string names = tokenFormatNames();
  std::vector<std::string_view> words;
  for (std::size_t from = 0; from < names.size();) {
    const std::size_t end = std::min(names.find(", ", from), names.size());
    words.push_back(std::string_view(names).substr(from, end - from));
    from = end + 2;
  }
  return words;
}

std::vector<Row> rowsOf(RunFlags &flags) {
  constexpr const char *kData = "Data", *kTraining = "Training",
                       *kCheckpoints = "Checkpoints", *kOutput = "Output",
                       *kRanks = "Ranks";
  const RunFlags preset;
  const TrainOptions &train = preset.train;
  const auto anyFormat = [](const std::string &format) {
    return format.empty() ? std::string() : oneOf(tokenFormats())(format);
  };
  const auto steps = between<std::int64_t>(1, kMostSteps);
  return {
      row(kData, "--data", "FILE", flags.data,
          "training data: text, Megatron-LM .bin/.idx, llm.c .bin, raw tokens, "
          "or the word synthetic"),
      row(kData, "--format", "WORD", flags.format,
          "format of the data, if its name and content do not determine it: " +
              tokenFormatNames(),
          anyFormat),
      row(kData, "--valid", "FILE", flags.valid,
          "validation data, for its loss and perplexity without dropout"),
      row(kData, "--eval-every", "N", flags.evalEvery,
          fmt::format("steps between validations, besides one after the last "
                      "step (default: {})",
                      kEvalEvery),
          steps),
      row(kData, "--eval-steps", "N", flags.evalSteps,
          fmt::format("global batches per validation (default: {})",
                      kEvalSteps),
          steps),
      row(kTraining, "--steps", "N", flags.train.steps,
          fmt::format("number of training steps (default: {})", train.steps),
          steps),
      row(kTraining, "--lr", "RATE", flags.rate,
          fmt::format("peak learning rate (default: {})", preset.rate),
          between(kLeastPositive, kMostReal, "above 0")),
      row(kTraining, "--lr-decay", "WORD", flags.decay,
          "decay of the learning rate: constant, linear, cosine (default), "
          "inverse-square-root or wsd",
          oneOf(kDecays)),
      row(kTraining, "--lr-floor", "SHARE", flags.minimumRateShare,
          fmt::format("final learning rate, as a share of the peak (default: "
                      "{})",
                      preset.minimumRateShare),
          between<double>(0.0, 1.0, "a share, 0 to 1")),
      row(kTraining, "--warmup", "N", flags.warmup,
          "steps of warm-up to the peak (default: a tenth of all)",
          between<std::int64_t>(0, kMostSteps)),
      row(kTraining, "--weight-decay", "X", flags.train.weightDecay,
          fmt::format("weight decay of matrices (default: {})",
                      train.weightDecay),
          between(0.0, kMostReal, "0 or more")),
      row(kTraining, "--clip", "NORM", flags.train.clipNorm,
          fmt::format("largest norm of all gradients; 0 does not clip "
                      "(default: {})",
                      train.clipNorm),
          between(0.0, kMostReal, "0 (none) or more")),
      row(kTraining, "--loss-scale", "WORD", flags.lossScale,
          "loss scaling of fp16: a fixed number, none, the schedule of "
          "megatron, deepspeed, torch, bmtrain or nvidia, or auto (default): "
          "torch's where the plan computes in fp16"),
      row(kTraining, "--on-nan", "WORD", flags.onNan,
          "on gradients with NaN or infinity: stop (default), or skip the step",
          oneOf(kOnNan)),
      row(kTraining, "--seed", "N", flags.train.seed,
          fmt::format("seed of weights, sample order and dropout (default: {})",
                      train.seed)),
      row(kCheckpoints, "--checkpoint", "FOLDER", flags.checkpoint,
          "folder of checkpoints, written also after the last step and on "
          "SIGTERM, SIGINT or SIGUSR1; a run resumes from the newest there"),
      row(kCheckpoints, "--save-every", "N", flags.saveEvery,
          fmt::format("steps between checkpoints (default: {})", kSaveEvery),
          steps),
      row(kCheckpoints, "--keep", "N", flags.keep,
          fmt::format("number of newest checkpoints to keep, 2 or more "
                      "(default: {})",
                      kKeep),
          between<std::int64_t>(2, kMostSteps,
                                "2 or more: the newest may be damaged")),
      row(kCheckpoints, "--load", "FOLDER", flags.load,
          "checkpoint of any layout to resume from while --checkpoint has "
          "none, or a folder whose newest checkpoint is used"),
      row(kCheckpoints, "--weights", "FOLDER", flags.weights,
          "checkpoint whose weights a new run starts with"),
      row(kOutput, "--every", "N", flags.every,
          fmt::format("steps between printed lines (default: {})",
                      preset.every),
          between<std::int64_t>(1, std::numeric_limits<std::int64_t>::max(),
                                "1 or more")),
      row(kOutput, "--metrics", "FILE", flags.metrics,
          "write every step as a line of JSON"),
      row(kOutput, "--tensorboard", "FOLDER", flags.tensorboard,
          "write the same as TensorBoard events"),
      row(kOutput, "--trace", "FILE", flags.trace,
          "write the timeline of one step of every rank, beside the predicted "
          "one, for Perfetto"),
      row(kOutput, "--trace-step", "N", flags.traceStep,
          "step of --trace (default: the last)"),
      row(kRanks, "--backend", "NAME", flags.backend,
          "cpu (default), or cuda with a GPU per rank", oneOf(kBackends)),
      row(kRanks, "--ranks-as", "WORD", flags.ranksAs,
          "ranks without a launcher: threads, processes, or auto (default): "
          "processes if each rank has a GPU, else threads",
          oneOf(kRanksAs)),
      row(kRanks, "--threads", "N", flags.threads,
          "threads per rank (default: the cores, divided evenly)",
          between(1, 1024)),
      row(kRanks, "--patience", "SECONDS", flags.patience,
          "time after which a rank that does not answer ends the run (default: "
          "8, or ten predicted steps)",
          between<double>(0.1, 1e6, "0.1 to 1000000 seconds"))};
}

// Rejects outputs that overwrite a file that the run reads, or another output.
void checkOutputs(const RunFlags &flags, Faults &faults) {
  NamedFiles files;
  for (const auto &[option, data] :
       {std::pair("--data", flags.data), std::pair("--valid", flags.valid)})
    for (const std::string &file : filesOf(data))
      files.read(option, file);
  // FOLDER may also name plan.json; the prediction is beside the plan.
  files.read("FOLDER", flags.folder);
  files.read("FOLDER", flags.folder + "/plan.json");
  files.read("FOLDER", predictionFileOf(flags.folder));
  for (const auto &[option, file] : {std::pair("--metrics", flags.metrics),
                                     std::pair("--trace", flags.trace)})
    if (const std::string why = files.write(option, file); !why.empty())
      faults.add(fmt::format("{} {}: {}", option, file, why));
}

void readLossScale(RunFlags &flags, Faults &faults) {
  std::optional<LossScalerSettings> &scaler = flags.train.scaler;
  scaler = lossScalerNamed(flags.lossScale);
  double number = 0.0;
  if (scaler || flags.lossScale == "auto" || flags.lossScale == "none")
    return;
  if (!CLI::detail::lexical_cast(flags.lossScale, number))
    return faults.add(fmt::format("--loss-scale {}: {}", flags.lossScale,
                                  oneOf(kLossScales)(flags.lossScale)));
  constexpr double kMost = 0x1p127;
  if (!(std::isfinite(number) && number > 0.0 && number <= kMost))
    faults.add(fmt::format("--loss-scale {}: must be above 0 and at most 2^127",
                           number));
  scaler = fixedLossScale(number);
}

void checkTogether(const RunFlags &flags, Faults &faults) {
  const auto needs = [&](const char *option,
                         const std::optional<std::int64_t> &value, bool has,
                         const char *needed) {
    if (value && !has)
      faults.add(fmt::format("{} {}: needs {}", option, *value, needed));
  };
  needs("--eval-every", flags.evalEvery, !flags.valid.empty(), "--valid FILE");
  needs("--eval-steps", flags.evalSteps, !flags.valid.empty(), "--valid FILE");
  if (flags.traceStep &&
      (*flags.traceStep < 1 || *flags.traceStep > flags.train.steps))
    faults.add(fmt::format("--trace-step {}: must be 1 to {}, the last step",
                           *flags.traceStep, flags.train.steps));
  needs("--trace-step", flags.traceStep, !flags.trace.empty(), "--trace FILE");
  const char *kCheckpoint =
      "--checkpoint FOLDER, without which nothing is saved";
  needs("--save-every", flags.saveEvery, !flags.checkpoint.empty(),
        kCheckpoint);
  needs("--keep", flags.keep, !flags.checkpoint.empty(), kCheckpoint);
  if (!flags.load.empty() && !flags.weights.empty())
    faults.add(fmt::format("--load {} and --weights {}: a run resumes, or "
                           "starts anew; give one of the two",
                           flags.load, flags.weights));
}

} // namespace

void describe(CLI::App &app, RunFlags &flags) {
  app.add_option("FOLDER", flags.folder,
                 "folder that `mtplan -o` wrote, or its plan.json")
      ->type_name("");
  for (const Row &row : rowsOf(flags))
    row.add(app);
}

void resolve(RunFlags &flags) {
  Faults faults;
  for (const Row &row : rowsOf(flags))
    faults.add(row.fault());
  checkTogether(flags, faults);
  checkOutputs(flags, faults);
  readLossScale(flags, faults);
  if (!faults.text.empty())
    throw BadInput(faults.text);

  TrainOptions &train = flags.train;
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
  rate.floor = flags.rate * flags.minimumRateShare;
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

std::optional<Prediction> predictionBeside(const std::string &folder) {
  std::ifstream file(predictionFileOf(folder), std::ios::binary);
  if (!file)
    return std::nullopt;
  return parsePrediction({std::istreambuf_iterator<char>(file), {}});
}

std::chrono::milliseconds patienceOf(const RunFlags &flags) {
  // kLeast and kMost are seconds, kSteps is a number of predicted steps.
  constexpr double kLeast = 8.0, kMost = 1e6, kSteps = 10.0;
  double seconds = flags.patience.value_or(kLeast);
  if (!flags.patience) {
    try {
      if (const auto prediction = predictionBeside(flags.folder))
        seconds = std::clamp(kSteps * prediction->step, kLeast, kMost);
    } catch (const std::exception &) {
      // An unreadable prediction is ignored here; RunWatch reports it.
    }
  }
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::llround(1000.0 * seconds)));
}

} // namespace mtplan::tools

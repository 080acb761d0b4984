//===- checkpoints.cpp - Saving and resuming a run ------------------------===//

#include "tools/run/checkpoints.h"

#include <filesystem>

#include <fmt/format.h>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/loader.h"
#include "runtime/data/digest.h"
#include "runtime/plan/plan_json.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

// These options may differ from those of the checkpoint's run.
std::map<std::string, std::string> optionsOf(const RunFlags &flags) {
  const TrainOptions &train = flags.train;
  const LearningRate &rate = train.learningRate;
  return {{"--clip", fmt::format("{}", train.clipNorm)},
          {"--loss-scale", train.scaler ? flags.lossScale : "none"},
          {"--lr", fmt::format("{}", rate.peak)},
          {"--lr-decay", flags.decay},
          {"--lr-floor", fmt::format("{}", flags.minimumRateShare)},
          {"--on-nan", flags.onNan},
          {"--steps", fmt::format("{}", train.steps)},
          {"--warmup", fmt::format("{}", rate.warmup)},
          {"--weight-decay", fmt::format("{}", train.weightDecay)}};
}

// Returns whether `data` is a bare checksum of the first samples. Checkpoints
// of earlier versions identify their data by such a checksum, and newer
// checkpoints identify it by a text with digests of files.
bool isBareDigest(const std::string &data) {
  return data.size() == 32 &&
         data.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string sizeText(std::int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024.0 ? fmt::format("{:.1f} MiB", mib)
                      : fmt::format("{:.1f} GiB", mib / 1024.0);
}

} // namespace

Checkpoints::Checkpoints(const Plan &thePlan, World &theWorld, RunData &theData,
                         const RunFlags &theFlags, CheckpointNotes theNotes)
    : plan(thePlan), world(theWorld), data(theData), flags(theFlags),
      notes(std::move(theNotes)), planPrint(textOf(digestOf(planText(plan)))) {
  // The digest reads all data, so it is computed before the first step.
  if (!flags.checkpoint.empty() || !flags.load.empty())
    trained = data.trainedIdentity();
}

TrainHooks Checkpoints::hooks() {
  return {[this](RankExecutor &executor) { return resume(executor); },
          [this](const TrainState &state) { return after(state); },
          [this] {
            if (saver)
              saver->awaitSnapshot();
          }};
}

void Checkpoints::notify(const std::function<void(const std::string &)> &sink,
                         const std::string &line) const {
  if (world.rank() == 0)
    sink(line);
}

std::optional<RunState> Checkpoints::find(RankExecutor &executor) {
  auto passedOver = [&](const std::string &fault) {
    notify(notes.warn, "skipped a checkpoint: " + fault);
  };
  auto load = [&](const std::string &folder, LoadWhat what) {
    return loadNewest(plan, world, executor, folder, what, passedOver);
  };
  if (!flags.checkpoint.empty())
    if (std::optional<RunState> found =
            load(flags.checkpoint, LoadWhat::everything))
      return found;
  for (const auto &[folder, what] :
       {std::pair(flags.load, LoadWhat::everything),
        std::pair(flags.weights, LoadWhat::weights)}) {
    if (folder.empty())
      continue;
    if (std::optional<RunState> found = load(folder, what))
      return found;
    throw BadInput(folder + ": there is no checkpoint there: neither a "
                            "manifest.json nor a folder step-...; `mtrun ckpt "
                            "convert` makes one of other tools' weights");
  }
  return std::nullopt;
}

std::optional<TrainState> Checkpoints::resume(RankExecutor &executor) try {
  // If --checkpoint names a checkpoint, the run would write new checkpoints
  // into this checkpoint, and the next start would not find them.
  if (!flags.checkpoint.empty() &&
      std::filesystem::exists(flags.checkpoint + "/" + kManifestName))
    throw BadInput(flags.checkpoint +
                   ": is a checkpoint itself; --checkpoint names the folder "
                   "that contains checkpoints, --load resumes from this one");
  if (!flags.checkpoint.empty())
    saver = std::make_unique<Saver>(
        plan, world, executor,
        SaverOptions{flags.checkpoint, static_cast<int>(*flags.keep)});
  const std::optional<RunState> found = find(executor);
  std::vector<std::string> differences;
  if (found && found->step > 0) {
    differences = compare(*found);
    begun.step = found->step;
    begun.updates = found->updates;
    begun.rule.skipped = found->skipped;
    if (found->scaler && flags.train.scaler)
      begun.rule.scaler = *found->scaler;
    else if (flags.train.scaler)
      begun.rule = UpdateRule({flags.train.scaler}).state();
    samplesBefore = found->samples;
  }
  data.begin(begun.step, samplesBefore);
  if (world.rank() == 0)
    notes.begins(begun.step);
  for (const std::string &line : differences)
    notify(notes.print, line);
  return begun.step > 0 ? std::optional(begun) : std::nullopt;
} catch (const CheckpointError &error) { // before any step: bad input
  throw BadInput(error.what());
}

std::vector<std::string> Checkpoints::compare(const RunState &found) const {
  std::string faults;
  auto same = [&](const std::string &what, const std::string &was,
                  const std::string &is, const std::string &remedy) {
    if (was != is)
      faults += fmt::format("{}the checkpoint's run has {} {}, this one {}: {}",
                            faults.empty() ? "" : "\n", what, was, is, remedy);
  };
  same("seed", std::to_string(found.seed), std::to_string(flags.train.seed),
       fmt::format("--seed {} goes on with it, --weights begins anew",
                   found.seed));
  same("sequences of", std::to_string(found.sequence),
       std::to_string(plan.sequence),
       "its place in the data is one in sequences of that length; --weights "
       "begins anew");
  const bool isOld = isBareDigest(found.data);
  if (faults.empty() && isOld)
    same("data with checksum", found.data,
         textOf(digestOf(data.firstSamples())),
         "another file, or for Megatron-LM's order another number of samples; "
         "--weights begins anew");
  else if (faults.empty() && found.data != trained.content)
    faults = fmt::format(
        "the checkpoint's run has data {}; this one {}: --data with a file of "
        "these bytes{} goes on with it (`xxh128sum FILE` prints the digest), "
        "--weights begins anew",
        found.data, trained.shown,
        found.data.starts_with("megatron") ? " and --steps for as many samples"
                                           : "");
  if (!faults.empty())
    throw BadInput(faults);
  std::string line = fmt::format("goes on from step {}", found.step);
  if (planPrint != found.plan)
    line += ", with another plan";
  if (found.globalBatch != plan.globalBatch)
    line += fmt::format(", global batch {} in place of {}", plan.globalBatch,
                        found.globalBatch);
  const std::map<std::string, std::string> is = optionsOf(flags);
  for (const auto &[name, value] : found.options)
    if (const auto now = is.find(name); now != is.end() && now->second != value)
      line += fmt::format(", {} {} in place of {}", name, now->second, value);
  std::vector<std::string> lines{line};
  if (isOld)
    lines.push_back("the checkpoint has no digest of its data: an earlier "
                    "mtrun wrote it, and only the number of samples and the "
                    "first four of them could be compared");
  if (found.step >= flags.train.steps)
    lines.push_back(
        fmt::format("all {} steps are done: --steps says how many in all",
                    flags.train.steps));
  return lines;
}

RunState Checkpoints::runState(const TrainState &state) const {
  RunState run;
  run.step = state.step;
  run.samples = samplesBefore + (state.step - begun.step) * plan.globalBatch;
  run.updates = state.updates;
  run.seed = flags.train.seed;
  if (flags.train.scaler)
    run.scaler = state.rule.scaler;
  run.skipped = state.rule.skipped;
  run.model = plan.model;
  run.globalBatch = plan.globalBatch;
  run.sequence = plan.sequence;
  run.plan = planPrint;
  run.data = trained.content;
  run.options = optionsOf(flags);
  return run;
}

void Checkpoints::report(const Saved &saved, bool isLast) const {
  if (saved.fault.empty()) {
    notify(notes.print,
           fmt::format("checkpoint of step {}: {} in {:.2f} s, training waited "
                       "{:.3f} s of them",
                       saved.step, sizeText(saved.bytes), saved.seconds,
                       isLast ? saved.seconds : saved.stallSeconds));
    if (!saved.untidy.empty())
      notify(notes.warn,
             fmt::format("the checkpoint of step {} is whole, but {}",
                         saved.step, saved.untidy));
    return;
  }
  const std::string what =
      fmt::format("no checkpoint of step {}: {}", saved.step, saved.fault);
  if (isLast)
    throw CheckpointError(what);
  notify(notes.warn,
         what + "; training goes on, and those before are untouched");
}

bool Checkpoints::after(const TrainState &state) {
  if (!saver)
    return true;
  bool told = false;
  if (const std::optional<Saved> saved = saver->ask(terminationAsked(), told))
    report(*saved, false);
  const bool isLast = told || state.step == flags.train.steps;
  if (!isLast && state.step % *flags.saveEvery != 0)
    return true;
  if (saver->busy())
    report(saver->finish(), false);
  saver->begin(runState(state));
  if (isLast)
    report(saver->finish(), true);
  if (told && state.step < flags.train.steps)
    notify(notes.print, fmt::format("told to end after step {} of {}: the same "
                                    "command goes on from there",
                                    state.step, flags.train.steps));
  return !told;
}

} // namespace mtplan::tools

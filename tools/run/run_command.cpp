//===- run_command.cpp - The command `mtrun` ------------------------------===//

#include "tools/run/run_command.h"

#include <exception>
#include <filesystem>
#include <ostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest_word.h"
#include "runtime/communicator/call.h"
#include "runtime/data/files.h"
#include "runtime/executor/product_peak.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "runtime/weights/weight_rules.h"
#include "tools/run/calibrate.h"
#include "tools/run/checkpoints.h"
#include "tools/run/ckpt_verbs.h"
#include "tools/run/ranks.h"
#include "tools/run/run_data.h"
#include "tools/run/run_watch.h"
#include "tools/text/command_line.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr int kFailed = 1; ///< exit status, beside kDone and kBadInput

constexpr const char *kFooter = R"(
Examples:
  mtplan examples/tiny-gpt2.json --gpus 4 --hardware cpu -o run
  mtrun run --data text.txt --steps 200                  # ranks are threads
  mpirun -np 4 mtrun run --data text.txt --steps 200     # ranks are processes
  mtrun calibrate --ranks 2 -o machine.json              # for --hardware
  mtrun data info text.txt
  mtrun ckpt convert gpt2/ kept                          # from Hugging Face
  mtrun ckpt convert kept gpt2-trained                   # to Hugging Face

Exit status: 0 done; 1 the run failed, a checkpoint is damaged, or two differ;
2 bad input.
)";

// Writes each line in one call, because a launcher merges the output of ranks
// and could split a line.
void reportError(std::ostream &err, const std::string &lines) {
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);)
    err << fmt::format("error: {}\n", line);
}

void show(std::ostream &out, const std::string &answer) {
  if (!(out << answer << std::flush))
    throw std::runtime_error("standard output cannot be written");
}

const CLI::App &lastCommand(const CLI::App &app) {
  const std::vector<CLI::App *> typed = app.get_subcommands();
  return typed.empty() ? app : lastCommand(*typed.front());
}

std::string nameOf(const CLI::App &command) {
  const CLI::App *parent = command.get_parent();
  return (parent ? nameOf(*parent) + ' ' : std::string()) + command.get_name();
}

void reportUnknown(const CLI::App &app, std::ostream &err) {
  const CLI::App &command = lastCommand(app);
  for (const std::string &typed : app.remaining(true))
    reportError(
        err,
        typed + (typed.starts_with("-") ? ": no such option; nearest is " +
                                              nearestOption(command, typed)
                 : &command == &app
                     ? ": is not expected; mtrun takes one folder, and every "
                       "option takes one value"
                     : ": is not expected; `" + nameOf(command) +
                           " --help` lists the arguments"));
}

void reportMissingVerb(const CLI::App &command, std::ostream &err) {
  std::vector<std::string> names;
  for (const CLI::App *verb :
       command.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(verb->get_name());
  const std::vector<std::string_view> words(names.begin(), names.end());
  std::string all;
  for (const std::string &name : names)
    all += (all.empty() ? "" : ", ") + name;
  const std::vector<std::string> typed = command.remaining();
  reportError(
      err, typed.empty()
               ? nameOf(command) + ": needs one of " + all
               : typed.front() + ": must be one of " + all + "; nearest is " +
                     std::string(base::nearestTo(typed.front(), words)));
}

template <typename... Types> bool isOneOf(const std::exception &error) {
  return (dynamic_cast<const Types *>(&error) || ...);
}

// Returns the beginning of a launcher's command line, up to the number of
// ranks.
const char *startsRanks(Launcher by) {
  return by == Launcher::torchrun ? "torchrun --no-python --nproc-per-node"
         : by == Launcher::slurm  ? "srun -n"
                                  : "mpirun -np";
}

/// Trains a plan on threads, on processes that this process starts, or as one
/// of a launcher's processes. In the last case, the process exits if the run
/// fails.
class Training {
public:
  Training(RunFlags theFlags, std::ostream &o, std::ostream &e)
      : flags(std::move(theFlags)), out(o), err(e) {}

  // Returns 0, or the exit status of the first process that failed. A fault of
  // the plan is reported after the processes have connected, because otherwise
  // the other processes would wait for the process that exits. The number of
  // ranks is checked before the processes connect, because all processes would
  // wait for a missing rank.
  int run() {
    WorldOptions options;
    options.patience = patienceOf(flags);
    if (!flags.checkpoint.empty()) {
      handleSignals();
      options.outlivesTermination = true;
    }
    launch = readLaunch(ownEnvironment(), builtMpi());
    if (launch.transport != Transport::threads) {
      processes = true;
      const std::exception_ptr fault = readPlanOfAll();
      prepareBackend(flags, launch.ranks);
      runAsRank(launch, options, [&](World &world) {
        if (fault)
          std::rethrow_exception(fault);
        prepare(1, world.rank() == 0);
        train(world);
      });
    } else {
      readPlan();
      prepareBackend(flags, plan.ranks);
      checkBackend(flags);
      if (wantsProcesses(flags, plan.ranks)) {
        // Checking the data once here prevents a report from every rank.
        const RunData checked(plan, flags, plan.ranks);
        return runOwnProcesses(plan.ranks, err);
      }
      prepare(plan.ranks, true);
      runOnThreads(plan.ranks, options, [&](World &world) { train(world); });
    }
    return 0;
  }

private:
  static StartPart partOf(const std::string &what, const DataIdentity &data) {
    return {what, data.content, data.shown};
  }

  // Replicated computation gives the same bits on all ranks only with equal
  // devices and libraries.
  void compareDevices(World &world, const DeviceFacts &facts) {
    const auto [most, others] =
        sidesOf(world, {"device", facts.name + '\n' + facts.libraries, ""});
    if (world.rank() == 0 && !others.empty())
      watch->warn(fmt::format(
          "{} {} another device or other libraries than {} (rank 0: {}; {}): "
          "what several ranks compute alike may differ in its last bits",
          wordsOf(others), others.size() == 1 ? "has" : "have", wordsOf(most),
          facts.name, facts.libraries));
  }

  void readPlan() {
    std::filesystem::path file = flags.folder;
    if (std::filesystem::is_directory(file))
      file /= "plan.json";
    plan = readPlanFile(file);
    std::string text;
    for (const std::string &fault : checkPlan(plan))
      text += (text.empty() ? "" : "\n") + file.string() + ": " + fault;
    if (!text.empty())
      throw BadInput(text);
    suit(flags, plan);
  }

  // Returns the fault of the plan, which is reported once all ranks are
  // connected.
  std::exception_ptr readPlanOfAll() {
    try {
      readPlan();
    } catch (...) {
      return std::current_exception();
    }
    if (launch.ranks != plan.ranks)
      throw BadInput(fmt::format(
          "rank {}: the plan is for {} ranks, but {} were started: {} {} mtrun "
          "{}",
          launch.rank, plan.ranks, launch.ranks, startsRanks(launch.by),
          plan.ranks, flags.folder));
    return nullptr;
  }

  void prepare(int ranksHere, bool leads) {
    data.emplace(plan, flags, ranksHere);
    flags.train.validationSteps = data->validationSteps();
    if (leads)
      watch.emplace(flags, out, err);
  }

  void train(World &world) {
    if (processes)
      agreeOnStart(world,
                   {{"plan", planText(plan), ""},
                    {"options", optionsText(flags), ""},
                    partOf("data", data->trainedIdentity()),
                    partOf("validation data", data->validatedIdentity())});
    const bool leads = world.rank() == 0;
    const std::unique_ptr<Backend> backend =
        makeBackend(flags, launch, plan.ranks, world.rank());
    // CPU ranks that are threads share one host and its libraries.
    if (world.size() > 1 && (processes || flags.backend == "cuda"))
      compareDevices(world, backend->facts());
    try {
      TrainOptions options = flags.train;
      options.peakFlops = productPeak(plan, world, *backend);
      Checkpoints checkpoints(
          plan, world, *data, flags,
          {[&](const std::string &line) { watch->print(line); },
           [&](const std::string &line) { watch->warn(line); },
           [&](std::int64_t step) {
             watch->openLogs(step); // first, because opening may fail
             watch->begin(plan, processes, flags.train);
             watch->printRegistered(backend->memory().roundedForCollectives());
           }});
      TrainTimes times = runtime::train(
          plan, world, *backend, options,
          {[&](std::int64_t step) { return data->trained(step, world); },
           [&](std::int64_t step) { return data->validated(step); }},
          [&](const StepRecord &record) { watch->logStep(record); },
          checkpoints.hooks());
      const MeanTimes means = meanTimesOf(world, plan, times);
      Traces traces;
      if (flags.train.traceStep > 0)
        traces = gatherTraces(world, times.trace);
      if (leads)
        watch->end(plan, times, means, traces);
    } catch (...) {
      data->stop();
      throw;
    }
  }

  RunFlags flags;
  std::ostream &out, &err;
  Launch launch;
  bool processes = false;
  Plan plan;
  std::optional<RunData> data;
  std::optional<RunWatch> watch; ///< on rank 0
};

} // namespace

int runTraining(const std::vector<std::string> &arguments, std::ostream &out,
                std::ostream &err) {
  CLI::App app{"Trains a plan that `mtplan -o FOLDER` compiled.", "mtrun"};
  app.footer(kFooter);
  RunFlags flags;
  describe(app, flags);
  DataFlags dataFlags;
  CLI::App *data = describeData(app, dataFlags);
  CkptFlags ckptFlags;
  CLI::App *ckpt = describeCkpt(app, ckptFlags);
  CalibrateFlags calibrateFlags;
  CLI::App *calibrate = describeCalibrate(app, calibrateFlags);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ExtrasError &) {
    reportUnknown(app, err);
    return kBadInput;
  } catch (const CLI::RequiredError &error) {
    const CLI::App &command = lastCommand(app);
    if (command.get_require_subcommand_min() > 0)
      reportMissingVerb(command, err);
    else
      reportError(err, error.what());
    return kBadInput;
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help
      return app.exit(error, out, err);
    reportError(err, error.what());
    return kBadInput;
  }
  try {
    if (data->parsed()) {
      show(out, runData(*data, dataFlags));
      return kDone;
    }
    if (ckpt->parsed()) {
      const CkptAnswer answer = runCkpt(*ckpt, ckptFlags);
      show(out, answer.text);
      return answer.yes ? kDone : kFailed;
    }
    if (calibrate->parsed())
      return runCalibrate(calibrateFlags, out, err);
    if (flags.folder.empty() || flags.data.empty())
      throw BadInput("a folder and --data are needed: "
                     "mtrun run --data text.txt");
    resolve(flags);
    return Training(std::move(flags), out, err).run();
  } catch (const std::exception &error) {
    reportError(err, error.what());
    return isOneOf<BadInput, PlanError, DataError, WeightError,
                   std::invalid_argument>(error)
               ? kBadInput
               : kFailed;
  }
}

} // namespace mtplan::tools

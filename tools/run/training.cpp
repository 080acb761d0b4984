//===- training.cpp - `mtrun FOLDER` --------------------------------------===//

#include "tools/run/training.h"

#include <cmath>
#include <exception>
#include <filesystem>

#include <fmt/format.h>

#include "runtime/communicator/call.h"
#include "runtime/communicator/cores.h"
#include "runtime/communicator/launch.h"
#include "runtime/executor/product_peak.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tools/run/backends.h"
#include "tools/run/checkpoints.h"
#include "tools/run/own_processes.h"
#include "tools/run/patience.h"
#include "tools/run/run_data.h"
#include "tools/run/run_watch.h"
#include "tools/run/same_start.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

// Returns the option that sets a launcher's number of ranks.
const char *startsRanks(Launcher by) {
  return by == Launcher::torchrun ? "torchrun --no-python --nproc-per-node"
         : by == Launcher::slurm  ? "srun -n"
                                  : "mpirun -np";
}

class Training {
public:
  Training(RunFlags theFlags, std::ostream &o, std::ostream &e)
      : flags(std::move(theFlags)), out(o), err(e) {}

  // Faults are checked after the processes have connected, because a process
  // that leaves earlier would let the others wait. The number of ranks is
  // checked before, because with too few each would wait.
  int run() {
    WorldOptions options;
    options.patience = patienceOf(flags);
    if (!flags.checkpoint.empty()) {
      keepTermination();
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
        // One check here prevents one report per rank.
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

  // Replicated computation should give the same bits on all ranks.
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

  // Returns the fault of the plan, to report it once all ranks are connected.
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
          {[&](const std::string &line) { watch->say(line); },
           [&](const std::string &line) { watch->warn(line); },
           [&](std::int64_t step) {
             watch->openLogs(step); // printed first, because opening may fail
             watch->begin(plan, processes, flags.train);
             watch->tellOf(backend->memory().roundedForCollectives());
           }});
      TrainTimes times = runtime::train(
          plan, world, *backend, options,
          {[&](std::int64_t step) { return data->trained(step, world); },
           [&](std::int64_t step) { return data->validated(step); }},
          [&](const StepRecord &record) { watch->see(record); },
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

int trainPlan(RunFlags flags, std::ostream &out, std::ostream &err) {
  return Training(std::move(flags), out, err).run();
}

} // namespace mtplan::tools

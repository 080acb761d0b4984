//===- calibrate.cpp - `mtrun calibrate` ----------------------------------===//

#include "tools/run/calibrate.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <sstream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest_word.h"
#include "planner/fit/fit_machine.h"
#include "planner/fit/measurements_json.h"
#include "planner/machine/preset_files_json.h"
#include "runtime/calibration/calibration.h"
#include "runtime/communicator/launch.h"
#include "runtime/data/files.h"
#include "tools/run/ranks.h"
#include "tools/run/run_flags.h"
#include "tools/text/text_file.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr const char *kFooter = R"(
Examples:
  mtrun calibrate -o machine.json                    # one rank, every core
  mtrun calibrate --ranks 2 -o two.json              # as two ranks share them
  mpirun -np 4 mtrun calibrate -o four.json          # ranks are processes
  mtplan examples/tiny-gpt2.json --hardware two.json --gpus 2 -o run

What is in the file: docs/calibration.md
)";

/// This preset device gives the figures of the CPU that are not measured.
constexpr const char *kCpuCore = "cpu core";

std::vector<ElementType> typesOf(const std::string &list) {
  std::vector<ElementType> types;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    constexpr std::array<std::string_view, 3> kWords = {"fp32", "bf16", "fp16"};
    if (word == "fp32")
      types.push_back(ElementType::f32);
    else if (word == "bf16")
      types.push_back(ElementType::bf16);
    else if (word == "fp16")
      types.push_back(ElementType::f16);
    else
      throw BadInput(fmt::format(
          "--precisions {}: must be of fp32, bf16 and fp16; nearest is {}",
          word, base::nearestTo(word, kWords)));
  }
  // fp32, the machine's default precision, must be measured.
  if (std::ranges::find(types, ElementType::f32) == types.end())
    throw BadInput(fmt::format("--precisions {}: fp32 is missing; the other "
                               "types are compared with it",
                               list));
  return types;
}

std::string today() {
  const std::chrono::year_month_day date{
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

RunFlags runFlagsOf(const CalibrateFlags &flags) {
  RunFlags run;
  run.backend = flags.backend;
  run.threads = flags.threads;
  run.ranksAs = flags.ranksAs;
  return run;
}

std::string deviceLike(const CalibrateFlags &flags) {
  if (!flags.like.empty())
    return flags.like;
  if (flags.backend == "cpu")
    return kCpuCore;
  std::string all;
  for (const std::string &name : planner::knownDevices())
    all += (all.empty() ? "" : ", ") + name;
  throw BadInput(fmt::format("--backend {}: needs --like DEVICE, whose peaks "
                             "and tiles it has: {}",
                             flags.backend, all));
}

void check(const CalibrateFlags &flags) {
  if (flags.output.empty())
    throw BadInput("-o FILE is needed: mtrun calibrate -o machine.json");
  if (std::ranges::find(kBackends, flags.backend) == kBackends.end())
    throw BadInput(fmt::format("--backend {}: must be cpu or cuda; nearest is "
                               "{}",
                               flags.backend,
                               base::nearestTo(flags.backend, kBackends)));
  if (flags.ranks && (*flags.ranks < 1 || *flags.ranks > 1024))
    throw BadInput(fmt::format("--ranks {}: must be 1 to 1024", *flags.ranks));
  if (flags.threads && (*flags.threads < 1 || *flags.threads > 1024))
    throw BadInput(
        fmt::format("--threads {}: must be 1 to 1024", *flags.threads));
  if (!(flags.seconds > 0.0 && flags.seconds <= 86'400.0))
    throw BadInput(fmt::format("--seconds {}: must be above 0 and at most a "
                               "day, 86400",
                               flags.seconds));
  for (const std::string &file : {flags.output, flags.measurements})
    if (!file.empty() && !flags.replaces && std::filesystem::exists(file))
      throw BadInput(
          fmt::format("{}: is there already; --replace writes over it", file));
    else if (const auto folder = std::filesystem::path(file).parent_path();
             !folder.empty() && !std::filesystem::is_directory(folder))
      throw BadInput(
          fmt::format("{}: there is no folder {}", file, folder.string()));
  NamedFiles files;
  for (const auto &[option, file] :
       {std::pair("-o", flags.output),
        std::pair("--measurements", flags.measurements)})
    if (const std::string why = files.write(option, file); !why.empty())
      throw BadInput(fmt::format("{} {}: {}", option, file, why));
  machineLike(deviceLike(flags)); // throws if there is no such device
}

class Calibration {
public:
  Calibration(const CalibrateFlags &f, std::ostream &o, std::ostream &e)
      : flags(f), out(o), err(e), types(typesOf(f.precisions)) {}

  int run() {
    WorldOptions options;
    options.patience = std::chrono::minutes(2); // a large product may take long
    launch = readLaunch(ownEnvironment(), builtMpi());
    if (launch.transport != Transport::threads) {
      // The number is checked before the ranks connect, because the other ranks
      // would wait for a missing one.
      if (flags.ranks && *flags.ranks != launch.ranks)
        throw BadInput(fmt::format("--ranks {}: but {} processes were started",
                                   *flags.ranks, launch.ranks));
      prepareBackend(runFlagsOf(flags), launch.ranks);
      runAsRank(launch, options, [&](World &world) { measure(world); });
      return 0;
    }
    const int ranks = flags.ranks.value_or(1);
    prepareBackend(runFlagsOf(flags), ranks);
    checkBackend(runFlagsOf(flags));
    if (wantsProcesses(runFlagsOf(flags), ranks))
      return runOwnProcesses(ranks, err);
    runOnThreads(ranks, options, [&](World &world) { measure(world); });
    return 0;
  }

private:
  void measure(World &world) {
    const int ranks = world.size();
    const int threads = flags.threads.value_or(coresOfRank(launch, ranks));
    const int onHost = ranksOfHost(launch, ranks);
    const int here = ranks % onHost == 0 ? onHost : 1;
    const std::unique_ptr<Backend> backend =
        makeBackend(runFlagsOf(flags), launch, ranks, world.rank());
    const DeviceFacts facts = backend->facts();
    CalibrationOptions options;
    options.shapes = facts.sharesHost ? shapesOfCpu() : shapesOfGpu();
    options.types = types;
    options.seconds = flags.seconds;
    options.ranksOfHost = here;
    const bool leads = world.rank() == 0;
    const SecondsClock clock = steadySeconds();
    const double start = clock();
    const std::vector<MeasuredRun> runs = calibrate(
        world, *backend, clock, options, [&](const CalibrationPart &part) {
          if (leads)
            err << partText(part, flags.seconds) << std::flush;
        });
    if (!leads)
      return;
    err << lateText(clock() - start, flags.seconds) << std::flush;
    write(runs, placeOf(facts, ranks, here, threads));
  }

  CalibratedOn placeOf(const DeviceFacts &facts, int ranks, int here,
                       int threads) const {
    CalibratedOn on;
    on.name = flags.name.empty()
                  ? std::filesystem::path(flags.output).stem().string()
                  : flags.name;
    const std::string each =
        facts.sharesHost
            ? fmt::format("{} thread{}", threads, threads == 1 ? "" : "s")
            : "a GPU";
    on.device =
        facts.sharesHost ? fmt::format("{}, {}", facts.name, each) : facts.name;
    on.source = fmt::format(
        "mtrun calibrate " MTPLAN_VERSION ", {}: {}, {}, {} rank{} of {}{}",
        flags.date.empty() ? today() : flags.date, facts.name, facts.libraries,
        ranks, ranks == 1 ? "" : "s", each,
        here == ranks ? "" : fmt::format(", {} a host", here));
    on.like = deviceLike(flags);
    on.hasKnownPeaks = !facts.sharesHost;
    on.memory =
        static_cast<double>(facts.memory) / (facts.sharesHost ? here : 1);
    on.ranks = ranks;
    on.ranksOfHost = here;
    return on;
  }

  void write(const std::vector<MeasuredRun> &runs, const CalibratedOn &on) {
    const Calibrated made = calibratedMachine(on, runs);
    out << on.source << '\n' << tableOf(runs, made);
    out << "Fitted figures\n";
    for (const planner::FittedFigure &found : made.fit.figures)
      out << fmt::format(
          "  {}  {:.4g} {}{}\n",
          found.figure.pointer.substr(std::string("/machine").size()),
          found.value, planner::unitOf(found.figure.kind),
          found.atBound ? "  at its bound" : "");
    for (const std::string &line : made.undetermined)
      err << fmt::format("note: {}\n", line);
    for (const planner::FitResidual &left : made.fit.residuals)
      out << fmt::format("  {}: {} rows, rms {}, worst {:+.1f} % ({})\n",
                         planner::nameOf(left.kind), left.rows,
                         percentText(left.rms), 100 * left.worst,
                         left.worstRow);
    save(flags.output, made.machineText);
    if (!flags.measurements.empty())
      save(flags.measurements, made.measurementsText);
  }

  void save(const std::string &file, const std::string &text) {
    const bool wasThere = std::filesystem::exists(file);
    std::vector<std::string> errors;
    if (!writeTextFile(file, text, errors))
      throw BadInput(errors.front());
    out << file << (wasThere ? " is overwritten\n" : " is written\n");
  }

  const CalibrateFlags &flags;
  std::ostream &out, &err;
  Launch launch;
  const std::vector<ElementType> types;
};

} // namespace

CLI::App *describeCalibrate(CLI::App &app, CalibrateFlags &flags) {
  CLI::App *one = app.add_subcommand(
      "calibrate", "measure this machine, and write a machine file for "
                   "mtplan --hardware");
  one->footer(kFooter);
  one->add_option("-o,--output", flags.output, "write the machine file there")
      ->type_name("FILE");
  one->add_option("--measurements", flags.measurements,
                  "also write the measurements, for mtplan fit-hardware")
      ->type_name("FILE");
  one->add_flag("--replace", flags.replaces, "overwrite existing files");
  one->add_option("--backend", flags.backend, "cpu (default) or cuda")
      ->type_name("WORD");
  one->add_option(
         "--ranks", flags.ranks,
         "ranks on this machine (default: 1; under mpirun, its processes)")
      ->type_name("N");
  one->add_option("--ranks-as", flags.ranksAs,
                  "threads, processes, or auto (default): processes if each "
                  "rank has a GPU, else threads")
      ->type_name("WORD")
      ->check(CLI::IsMember({"auto", "threads", "processes"}));
  one->add_option("--threads", flags.threads,
                  "threads per rank (default: the cores, divided evenly)")
      ->type_name("N");
  one->add_option(
         "--seconds", flags.seconds,
         fmt::format("approximate time to spend; every run is timed at "
                     "least five times (default: {})",
                     flags.seconds))
      ->type_name("S");
  one->add_option("--precisions", flags.precisions,
                  "some of fp32, bf16 and fp16 (default: all)")
      ->type_name("LIST");
  one->add_option(
         "--like", flags.like,
         "preset device, for figures that cannot be measured (default: " +
             std::string(kCpuCore) + ")")
      ->type_name("DEVICE");
  one->add_option("--name", flags.name,
                  "name of the machine (default: the file's)")
      ->type_name("TEXT");
  one->add_option("--date", flags.date,
                  "date of the measurements (default: today, UTC)")
      ->type_name("TEXT");
  return one;
}

int runCalibrate(const CalibrateFlags &flags, std::ostream &out,
                 std::ostream &err) {
  try {
    check(flags);
    return Calibration(flags, out, err).run();
  } catch (const planner::MachineError &error) {
    throw BadInput(error.what());
  }
}

} // namespace mtplan::tools

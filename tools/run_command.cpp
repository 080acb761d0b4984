//===- run_command.cpp - The command `mtrun` ------------------------------===//

#include "tools/run_command.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/communicator/communicator.h"
#include "runtime/data/data_command.h"
#include "runtime/data/data_error.h"
#include "runtime/data/prefetcher.h"
#include "runtime/executor/sample_data.h"
#include "runtime/executor/train.h"
#include "runtime/metrics/log_file.h"
#include "runtime/metrics/progress_line.h"
#include "runtime/metrics/step_lines.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr int kDone = 0, kFailed = 1, kBadInput = 2;

struct RunFlags {
  std::string folder, data, format, metrics, decay = "cosine";
  TrainOptions train;
  std::int64_t every = 10;
  int threads = 0;
  double rate = 1e-3, least = 0.1;
  std::int64_t warmup = -1;
};

/// `mtrun data ...`.
struct DataFlags {
  std::string file, format, to;
  std::optional<std::int64_t> sequence, vocabulary;
};

// Seconds of rank 0, by what it did.
std::string accountOf(const TimeSpent &spent) {
  auto share = [&](double seconds) {
    return spent.steps > 0 ? 100.0 * seconds / spent.steps : 0.0;
  };
  double other = spent.steps - spent.kernels - spent.collectives -
                 spent.transfers - spent.data;
  return fmt::format("rank 0: {:.1f} s in steps: kernels {:.1f} %, collectives "
                     "{:.1f} %, messages {:.1f} %, data {:.1f} %, the rest "
                     "{:.1f} %\n",
                     spent.steps, share(spent.kernels),
                     share(spent.collectives), share(spent.transfers),
                     share(spent.data), share(other));
}

class Training {
public:
  Training(RunFlags theFlags, std::ostream &o, std::ostream &e)
      : flags(std::move(theFlags)), out(o), err(e) {}

  int run() {
    std::filesystem::path file = flags.folder;
    if (std::filesystem::is_directory(file))
      file /= "plan.json";
    plan = readPlanFile(file);
    if (std::vector<std::string> faults = checkPlan(plan); !faults.empty()) {
      for (const std::string &fault : faults)
        err << "error: " << file.string() << ": " << fault << '\n';
      return kBadInput;
    }
    readLearningRate();
    openData();
    auto greeting =
        fmt::format("{} on {}: {} samples of {} positions a step\n", plan.model,
                    ranksText(), plan.globalBatch, plan.sequence);
    auto body = [&](World &world) {
      if (world.rank() == 0) {
        if (!flags.metrics.empty())
          metrics.emplace(flags.metrics, LogFile::Mode::replace);
        out << greeting << std::flush;
      }
      auto backend = backendOf();
      TimeSpent spent = train(
          plan, world, *backend, flags.train,
          [&](std::int64_t step) { return dataOf(step); },
          [&](const StepRecord &record) { show(record); });
      if (world.rank() == 0)
        out << accountOf(spent);
    };
    if (isUnderMpi())
      runUnderMpi({}, body);
    else
      runOnThreads(plan.ranks, {}, body);
    if (metrics && !metrics->problem().empty())
      err << "warning: " << metrics->problem() << '\n';
    return kDone;
  }

private:
  std::string ranksText() const {
    std::string text = fmt::format("{} {} rank{}", plan.ranks,
                                   isUnderMpi() ? "process" : "thread",
                                   plan.ranks == 1 ? "" : "s");
    std::string between = " (";
    for (const Axis &axis : plan.mesh)
      if (axis.size > 1) {
        text += between + axis.name + " " + std::to_string(axis.size);
        between = " x ";
      }
    return text + (plan.ranks > 1 ? ")" : "");
  }

  void readLearningRate() {
    LearningRate &rate = flags.train.learningRate;
    std::optional<Decay> decay = decayNamed(flags.decay);
    if (!decay)
      throw std::invalid_argument("--lr-decay " + flags.decay +
                                  ": must be constant, linear, cosine, "
                                  "inverse-sqrt or wsd");
    rate.decay = *decay;
    rate.peak = flags.rate;
    rate.floor = flags.rate * flags.least;
    rate.warmup = flags.warmup >= 0 ? flags.warmup : flags.train.steps / 10;
    rate.end = std::max(flags.train.steps, rate.warmup + 1);
    rate.annealing = (rate.end - rate.warmup) / 5;
    if (std::string fault = faultOf(rate); !fault.empty())
      throw std::invalid_argument(fault);
  }

  void openData() {
    if (flags.data == "synthetic")
      return;
    Objective objective = objectiveOf(plan, flags.train.seed);
    DataOptions options;
    options.path = flags.data;
    if (!flags.format.empty())
      options.format = tokenFormatNamed(flags.format);
    if (!flags.format.empty() && !options.format)
      throw std::invalid_argument("--format " + flags.format +
                                  ": no such format");
    options.sequence = objective.sampleSequence(plan.sequence);
    options.vocabulary = vocabularyOf(plan);
    options.seed = flags.train.seed;
    options.samples = flags.train.steps * plan.globalBatch;
    auto reader = std::make_shared<StepReader>(openDataset(options), objective,
                                               plan.sequence, plan.globalBatch);
    prefetcher = std::make_unique<Prefetcher>(
        [reader](std::int64_t step) { return reader->read(step); }, 0,
        flags.train.steps, isUnderMpi() ? 1 : plan.ranks);
  }

  // Steps count from 1, samples from 0.
  std::unique_ptr<StepData> dataOf(std::int64_t step) {
    if (!prefetcher)
      return std::make_unique<DrawnData>(
          drawnDataOf(plan, flags.train.seed, step));
    return std::make_unique<SampleData>(prefetcher->take(step - 1));
  }

  std::unique_ptr<Backend> backendOf() const {
    int cores = static_cast<int>(std::thread::hardware_concurrency());
    int threads =
        flags.threads > 0 ? flags.threads : std::max(1, cores / plan.ranks);
    return makeCpuBackend(threads);
  }

  void show(const StepRecord &record) {
    if (metrics)
      metrics->write(jsonLine(record));
    if (record.step == 1 || record.step % flags.every == 0 ||
        record.step == record.steps)
      out << progressLine(record) << '\n' << std::flush;
  }

  RunFlags flags;
  std::ostream &out, &err;
  Plan plan;
  std::unique_ptr<Prefetcher> prefetcher;
  std::optional<LogFile> metrics;
};

void describeTraining(CLI::App &app, RunFlags &flags) {
  app.add_option("folder", flags.folder,
                 "what `mtplan -o` wrote: a folder, or its plan.json");
  app.add_option("--data", flags.data,
                 "text, Megatron .bin/.idx, llm.c .bin or raw tokens; or "
                 "synthetic");
  app.add_option("--format", flags.format,
                 "of the data, where its name and content do not tell");
  app.add_option("--steps", flags.train.steps, "to train (default 100)")
      ->check(CLI::PositiveNumber);
  app.add_option("--lr", flags.rate, "peak learning rate (default 0.001)")
      ->check(CLI::PositiveNumber);
  app.add_option("--lr-decay", flags.decay,
                 "constant, linear, cosine (default), inverse-sqrt or wsd");
  app.add_option("--lr-floor", flags.least,
                 "where it ends, as a share of the peak (default 0.1)")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--warmup", flags.warmup,
                 "steps until the peak (default: a tenth)");
  app.add_option("--weight-decay", flags.train.weightDecay,
                 "of matrices (default 0.1)");
  app.add_option("--clip", flags.train.clipNorm,
                 "norm that gradients are cut to; 0: none (default 1)");
  app.add_option("--seed", flags.train.seed, "of weights, order and masks");
  app.add_option("--metrics", flags.metrics,
                 "also write every step as a line of JSON");
  app.add_option("--every", flags.every, "steps between lines (default 10)")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", flags.threads,
                 "of each rank (default: the cores shared out)");
}

int runData(const std::string &verb, const DataFlags &flags,
            std::ostream &out) {
  std::optional<TokenFormat> format;
  if (!flags.format.empty() && !(format = tokenFormatNamed(flags.format)))
    throw std::invalid_argument("--format " + flags.format +
                                ": no such format");
  if (verb == "info")
    out << dataInfo(flags.file, format, flags.sequence);
  else if (verb == "check")
    out << dataCheck(flags.file, format, flags.vocabulary);
  else
    out << dataConvert(flags.file, format, flags.to, {});
  return kDone;
}

} // namespace

int runTraining(const std::vector<std::string> &arguments, std::ostream &out,
                std::ostream &err) {
  CLI::App app{"Trains what `mtplan -o FOLDER` compiled.", "mtrun"};
  RunFlags flags;
  describeTraining(app, flags);
  DataFlags dataFlags;
  CLI::App *data = app.add_subcommand("data", "looks at files of tokens");
  data->require_subcommand(1);
  for (const char *verb : {"info", "check", "convert"}) {
    CLI::App *one = data->add_subcommand(verb);
    one->add_option("file", dataFlags.file)->required();
    one->add_option("--format", dataFlags.format);
    if (std::string_view(verb) == "info")
      one->add_option("--sequence", dataFlags.sequence);
    else if (std::string_view(verb) == "check")
      one->add_option("--vocabulary", dataFlags.vocabulary);
    else
      one->add_option("to", dataFlags.to)->required();
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError &error) {
    return app.exit(error, out, err) == 0 ? kDone : kBadInput;
  }
  try {
    if (data->parsed())
      return runData(data->get_subcommands().front()->get_name(), dataFlags,
                     out);
    if (flags.folder.empty() || flags.data.empty())
      throw std::invalid_argument(
          "a folder and --data are needed: mtrun run/ --data text.txt");
    return Training(std::move(flags), out, err).run();
  } catch (const PlanError &error) {
    err << "error: " << error.what() << '\n';
  } catch (const DataError &error) {
    err << "error: " << error.what() << '\n';
  } catch (const std::invalid_argument &error) {
    err << "error: " << error.what() << '\n';
  } catch (const std::exception &error) {
    err << "error: " << error.what() << '\n';
    return kFailed;
  }
  return kBadInput;
}

} // namespace mtplan::tools

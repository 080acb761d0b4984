//===- run_command.cpp - The command `mtrun` ------------------------------===//

#include "tools/run/run_command.h"

#include <ostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest_word.h"
#include "runtime/data/data_error.h"
#include "runtime/plan/plan_json.h"
#include "runtime/weights/weight_rules.h"
#include "tools/run/calibrate.h"
#include "tools/run/ckpt_verbs.h"
#include "tools/run/data_verbs.h"
#include "tools/run/run_flags.h"
#include "tools/run/training.h"
#include "tools/text/nearest_option.h"

namespace mtplan::tools {

namespace {

constexpr int kDone = 0, kFailed = 1, kBadInput = 2;

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

// Writes each line in one call, for the same reason as RunWatch::warn.
void say(std::ostream &err, const std::string &lines) {
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);)
    err << fmt::format("error: {}\n", line);
}

// Prints an answer. Output that cannot be written is an error.
void show(std::ostream &out, const std::string &answer) {
  if (!(out << answer << std::flush))
    throw std::runtime_error("standard output cannot be written");
}

// Returns the innermost subcommand that was typed: "info" of "ckpt info".
const CLI::App &lastCommand(const CLI::App &app) {
  const std::vector<CLI::App *> typed = app.get_subcommands();
  return typed.empty() ? app : lastCommand(*typed.front());
}

// Returns "mtrun ckpt info".
std::string nameOf(const CLI::App &command) {
  const CLI::App *parent = command.get_parent();
  return (parent ? nameOf(*parent) + ' ' : std::string()) + command.get_name();
}

// Reports unknown options, each with the nearest known one.
void sayUnknown(const CLI::App &app, std::ostream &err) {
  const CLI::App &command = lastCommand(app);
  for (const std::string &typed : app.remaining(true))
    say(err,
        typed + (typed.starts_with("-") ? ": no such option; nearest is " +
                                              nearestOption(command, typed)
                 : &command == &app
                     ? ": is not expected; mtrun takes one folder, and every "
                       "option takes one value"
                     : ": is not expected; `" + nameOf(command) +
                           " --help` lists the arguments"));
}

// Reports that a subcommand needs one of its verbs.
void sayNoVerb(const CLI::App &command, std::ostream &err) {
  std::vector<std::string> names;
  for (const CLI::App *verb :
       command.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(verb->get_name());
  const std::vector<std::string_view> words(names.begin(), names.end());
  std::string all;
  for (const std::string &name : names)
    all += (all.empty() ? "" : ", ") + name;
  const std::vector<std::string> typed = command.remaining();
  say(err, typed.empty()
               ? nameOf(command) + ": needs one of " + all
               : typed.front() + ": must be one of " + all + "; nearest is " +
                     std::string(base::nearestTo(typed.front(), words)));
}

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
    sayUnknown(app, err);
    return kBadInput;
  } catch (const CLI::RequiredError &error) {
    const CLI::App &command = lastCommand(app);
    if (command.get_require_subcommand_min() > 0)
      sayNoVerb(command, err);
    else
      say(err, error.what());
    return kBadInput;
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help
      return app.exit(error, out, err);
    say(err, error.what());
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
    if (calibrate->parsed()) {
      return runCalibrate(calibrateFlags, out, err);
    }
    if (flags.folder.empty() || flags.data.empty())
      throw BadInput("a folder and --data are needed: "
                     "mtrun run --data text.txt");
    resolve(flags);
    return trainPlan(std::move(flags), out, err);
  } catch (const BadInput &error) {
    say(err, error.what());
  } catch (const runtime::PlanError &error) {
    say(err, error.what());
  } catch (const runtime::DataError &error) {
    say(err, error.what());
  } catch (const runtime::WeightError &error) {
    say(err, error.what());
  } catch (const std::invalid_argument &error) {
    say(err, error.what());
  } catch (const std::exception &error) {
    say(err, error.what());
    return kFailed;
  }
  return kBadInput;
}

} // namespace mtplan::tools

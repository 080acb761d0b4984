//===- command.cpp - The command `mtplan` ---------------------------------===//

#include "tools/command/command.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string_view>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "llvm/Support/raw_os_ostream.h"

#include "planner/graph/op_graph_dot.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"
#include "runtime/data/files.h"
#include "tools/driver/constraints.h"
#include "tools/driver/executable.h"
#include "tools/driver/objective.h"
#include "tools/driver/pipeline.h"
#include "tools/driver/prove_plan.h"
#include "tools/driver/read_flags.h"
#include "tools/driver/saved_plan.h"
#include "tools/exchange/prediction.h"
#include "tools/report/comparison.h"
#include "tools/report/page/plan_page.h"
#include "tools/report/report.h"
#include "tools/report/sweep.h"
#include "tools/text/command_line.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

namespace {

constexpr const char *kExamples = R"(
Examples:
  # The fastest way to train GPT-2 8.3B on one DGX-2H with 8 GPUs
  mtplan examples/gpt2-8.3b.json --gpus 8 --hardware dgx-2h

  # The same facts for a script, and the program that each rank runs
  mtplan examples/llama-3-8b.json --json
  mtplan examples/llama-3-8b.json --emit mlir --stage partitioned

  # The same training step as a CUDA and NCCL program to read, build and change
  mtplan examples/tiny-gpt2.json --gpus 8 --emit cuda -o prog

  # Decide something yourself, leave the rest open, and prove the result
  mtplan examples/gpt2-1.2b.json --tp 4 --pin 'h.*.mlp.fc1=column' \
    --pin 'wte.weight=[tp,-]' --verify

  # A machine file from what was measured on yours
  mtplan fit-hardware measurements.json -o machine.json
  mtplan fit-software runs.csv -o software.json

Exit status: 0 a plan was found; 1 nothing fits, or a proof failed; 2 bad input.
)";

// CLI11 stores every value as text. The reader of the flag's row checks the
// text, so that all faults are reported together and values in files get the
// same check.
void addFlag(CLI::App &app, const FlagRow &row, Flags &flags) {
  const std::string key = row.shortName();
  CLI::Option *option = nullptr;
  switch (row.value.kind) {
  case FlagKind::onOrAbsent:
    option = app.add_flag(row.name, flags.switches[key], row.help);
    break;
  case FlagKind::list:
    option = app.add_option(row.name, flags.lists[key], row.help)
                 ->expected(1)
                 ->allow_extra_args(false)
                 ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    break;
  case FlagKind::pair:
    option = app.add_option(row.name, flags.lists[key], row.help)->expected(2);
    break;
  default:
    option = app.add_option(row.name, flags.texts[key], row.help);
  }
  option->group(row.group);
  if (row.value.kind != FlagKind::onOrAbsent)
    option->type_name(row.type);
}

/// Shows a line during a long operation. The destructor erases the line.
class Progress {
public:
  Progress(std::ostream &stream, bool onTerminal, const char *text)
      : err(stream), shown(onTerminal) {
    if (shown)
      err << text << std::flush;
  }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  ~Progress() {
    if (shown)
      err << "\r\033[K" << std::flush;
  }

private:
  std::ostream &err;
  bool shown;
};

class Command {
public:
  Command(Flags typed, std::ostream &o, std::ostream &e, const Terminal &t)
      : flags(std::move(typed)), out(o), err(e), terminal(t) {
    if (const std::string *file = flags.find("--constraints"))
      addConstraints(*file, flags, errors);
    request = readFlags(flags, errors);
    checkOutputs();
    readQuestions();
    readSweep();
  }

  int run() {
    if (request.load.empty() && request.emit &&
        *request.emit <= Stage::differentiated)
      return emitUnplanned();
    if (!flags.list("--compare").empty())
      return compare();
    decide();
    if (!errors.empty())
      return refuse();
    if (!swept.empty()) {
      Progress progress(err, terminal.progress, "sweeping...");
      sweep = sweepOf(outcome, swept);
    }
    const planner::PlannedCandidate *best = outcome.best();
    if (!best && !sweep)
      return reportInfeasible();
    if (sweep)
      out << csvOf(*sweep);
    if (!best)
      return kNothingFits;
    if (!writeFiles(*best))
      return refuse();
    if (sweep)
      return kDone;
    if (request.exportKind)
      return exportIt();
    if (request.emit)
      return emit(*outcome.problem, best);
    std::optional<passes::Proof> proof;
    if (request.verify && !(proof = prove(*best)))
      return refuse();
    std::vector<std::string> why;
    if (request.explain || !questions.empty()) {
      Progress progress(err, terminal.progress, "explaining...");
      if (request.explain)
        why = explanationsOf(outcome);
      for (const auto &[words, narrower] : questions)
        why.push_back(answerTo(words, planFor(narrower), outcome));
    }
    if (request.json)
      out << jsonOf(outcome, {request.timings, proof ? &*proof : nullptr,
                              nullptr, why.empty() ? nullptr : &why});
    else
      out << screenOf(outcome, style()) << textOf(why)
          << (proof ? textOf(*proof) : "");
    return proof && !proof->holds ? kNothingFits : kDone;
  }

private:
  ScreenStyle style() const { return {terminal.colour, request.timings}; }

  void checkOutputs() {
    runtime::NamedFiles files;
    // Standard input and presets are not files, even if a file has the same
    // name.
    auto read = [&](const char *by, const std::string &name,
                    const std::vector<std::string> &presets = {}) {
      if (name != "-" && std::ranges::find(presets, name) == presets.end())
        files.read(by, name);
    };
    read("MODEL", flags.text("MODEL"));
    read("--hardware", flags.text("--hardware"), planner::presetNames());
    read("--software", flags.text("--software"), planner::softwareNames());
    for (const char *flag : {"--constraints", "--import", "--load"})
      read(flag, flags.text(flag));
    for (const std::string &file : flags.list("--compare"))
      read("--compare", file);
    auto write = [&](const char *by, const std::string &file) {
      if (const std::string why = files.write(by, file); !why.empty())
        errors.push_back(fmt::format("{}: {} {}", by, file, why));
    };
    write("--dot", request.dot);
    write("--trace", request.trace);
    write("--report", request.report);
    write("--save", request.save);
    if (!request.output.empty())
      for (const char *file : {"plan.json", kPredictionFile})
        write("-o", request.output + '/' + file);
  }

  void readQuestions() {
    const std::vector<std::string> &all = flags.list("--why");
    if (!all.empty() && !request.load.empty())
      errors.emplace_back("--why: compares searches, and --load gives a plan: "
                          "use --compare");
    if (!all.empty() &&
        (flags.find("--sweep") || request.emit || request.exportKind ||
         !flags.list("--compare").empty()))
      errors.emplace_back("--why: is part of the report: give it without "
                          "--sweep, --emit, --export and --compare");
    if (!all.empty() && request.objective != Objective::stepTime)
      errors.emplace_back("--why: compares step times: give it without "
                          "--objective");
    if (!errors.empty())
      return;
    for (const std::string &words : all) {
      Flags narrower = withWords(flags, words, "--why", errors);
      questions.emplace_back(words, errors.empty() ? readFlags(narrower, errors)
                                                   : PlanRequest());
    }
  }

  void readSweep() {
    const std::string *names = flags.find("--sweep");
    if (!names)
      return;
    std::vector<std::string> faults;
    for (const std::string &name : distinct(wordsOf(*names)))
      if (positionOf(name, "flag to sweep", sweepableNames(), faults))
        swept.push_back(name);
    if (request.json || request.emit || request.exportKind || request.verify)
      faults.emplace_back("prints a CSV: give it without --json, --emit, "
                          "--export and --verify");
    if (request.objective != Objective::stepTime || !request.load.empty())
      faults.emplace_back("searches for the least step time: give it without "
                          "--objective and --load");
    for (const std::string &fault : faults)
      errors.push_back("--sweep: " + fault);
  }

  int compare() {
    std::vector<PlanOutcome> plans;
    for (const std::string &file : flags.list("--compare")) {
      Flags one;
      one.texts["MODEL"] = flags.text("MODEL");
      one.texts["--load"] = file;
      plans.push_back(loadPlan(one));
      for (const std::string &error : plans.back().errors)
        errors.push_back(error);
      if (plans.back().problem && !plans.back().best())
        errors.push_back(file + ": does not fit on its machine");
    }
    if (!errors.empty())
      return refuse();
    const std::vector<std::string> &files = flags.list("--compare");
    out << comparisonOf({files[0], &plans[0]}, {files[1], &plans[1]});
    return kDone;
  }

  static std::string textOf(const std::vector<std::string> &why) {
    std::string text = why.empty() ? "" : "Why\n";
    for (const std::string &line : why)
      text += "  " + line + '\n';
    return text;
  }

  void decide() {
    Progress progress(err, terminal.progress, "searching...");
    if (request.load.empty())
      outcome = planFor(request, std::move(errors));
    else if (errors.empty())
      outcome = loadPlan(flags);
    else
      outcome.errors = std::move(errors);
    errors = std::move(outcome.errors);
  }

  bool writeFiles(const planner::PlannedCandidate &best) {
    auto write = [&](const std::string &file, auto text) {
      return file.empty() || writeTextFile(file, text(), errors);
    };
    return write(request.dot, [&] { return drawing(best); }) &&
           write(request.trace, [&] { return traceTextOf(outcome, errors); }) &&
           write(request.report,
                 [&] {
                   return htmlOf(pageOf(outcome, sweep ? &*sweep : nullptr));
                 }) &&
           write(request.save, [&] { return savedPlanOf(outcome); }) &&
           (request.output.empty() ||
            writeExecutable(*outcome.problem, best, request.output,
                            request.emitsCuda, errors));
  }

  int refuse() {
    if (request.json)
      out << errorsJson(errors);
    return printErrors(errors, err);
  }

  int emitUnplanned() {
    std::unique_ptr<Problem> problem = buildProblem(request, errors);
    return errors.empty() ? emit(*problem, nullptr) : refuse();
  }

  int exportIt() {
    Exported exported = exportPlan(outcome, *request.exportKind);
    errors = exported.refusals;
    if (!errors.empty())
      return refuse();
    out << exported.text;
    for (const std::string &note : exported.notes)
      err << "note: " << note << '\n';
    return kDone;
  }

  int emit(const Problem &problem, const planner::PlannedCandidate *best) {
    mlir::OwningOpRef<mlir::ModuleOp> module =
        moduleOf(problem, *request.emit, best, errors);
    if (!module || !errors.empty())
      return refuse();
    llvm::raw_os_ostream stream(out);
    module->print(stream);
    stream << '\n';
    return kDone;
  }

  std::optional<passes::Proof> prove(const planner::PlannedCandidate &best) {
    Progress progress(err, terminal.progress, "proving...");
    return provePlan(*outcome.problem, best, errors);
  }

  static std::string textOf(const passes::Proof &proof) {
    if (proof.holds)
      return fmt::format("Proof  holds: {} tensors on {} ranks, worst relative "
                         "difference {:.1e}\n",
                         proof.tensors, proof.ranks, proof.worstError);
    std::string text = "Proof  FAILS\n";
    for (const std::string &failure : proof.failures)
      text += "  " + failure + '\n';
    return text;
  }

  std::string drawing(const planner::PlannedCandidate &best) const {
    std::vector<planner::DrawnSegment> segments;
    for (const planner::SegmentPlan &plan : best.plans())
      segments.push_back(
          {plan.segment, plan.first, plan.count, plan.strategies});
    return planner::dotOf(
        planner::withBatch(outcome.problem->graph,
                           best.config.microBatch * best.config.dp),
        segments, planner::meshOf(best.config));
  }

  int reportInfeasible() {
    std::vector<std::string> remedies;
    {
      Progress progress(err, terminal.progress,
                        "nothing fits; trying what would...");
      remedies = remediesOf(request, outcome);
    }
    if (request.json)
      out << jsonOf(outcome, {request.timings, nullptr, &remedies});
    else
      out << infeasibleText(outcome, remedies, style());
    return kNothingFits;
  }

  Flags flags;
  std::vector<std::string> errors;
  PlanRequest request;
  std::vector<std::pair<std::string, PlanRequest>> questions;
  std::vector<std::string> swept;
  std::optional<Sweep> sweep;
  std::ostream &out, &err;
  Terminal terminal;
  PlanOutcome outcome;
};

} // namespace

Terminal terminalOf() {
  const char *term = std::getenv("TERM");
  const bool plain = std::getenv("NO_COLOR") || !term || term[0] == '\0' ||
                     std::string_view(term) == "dumb";
  return {isatty(STDOUT_FILENO) && !plain, isatty(STDERR_FILENO) && !plain};
}

std::optional<Flags> parseArguments(const std::vector<std::string> &arguments,
                                    std::ostream &out, std::ostream &err,
                                    int &exitCode) {
  Flags flags;
  CLI::App app{"Finds the fastest way to train a transformer on given "
               "hardware, and proves it."};
  app.name("mtplan");
  app.footer(kExamples);
  // --help and --version are added last, because CLI11 prints groups in the
  // order in which they are added.
  app.set_help_flag();
  for (const FlagRow &row : flagRows())
    addFlag(app, row, flags);
  app.set_help_flag("-h,--help", "print this help")->group("Output");
  app.set_version_flag("--version", "mtplan " MTPLAN_VERSION,
                       "print the version")
      ->group("Output");
  app.final_callback([&] {
    if (!flags.find("MODEL") && !flags.find("--load") &&
        flags.list("--compare").empty())
      throw CLI::RequiredError("MODEL");
  });
  if (!parseOrReport(app, arguments, "mtplan takes one model", out, err,
                     exitCode))
    return std::nullopt;
  return flags;
}

int runCommand(const std::vector<std::string> &arguments, std::ostream &out,
               std::ostream &err, const Terminal &terminal) {
  if (!arguments.empty() && arguments.front() == kFitHardware)
    return runFitHardware({arguments.begin() + 1, arguments.end()}, out, err);
  if (!arguments.empty() && arguments.front() == kFitSoftware)
    return runFitSoftware({arguments.begin() + 1, arguments.end()}, out, err);
  int exitCode = kDone;
  std::optional<Flags> flags = parseArguments(arguments, out, err, exitCode);
  if (!flags)
    return exitCode;
  return Command(std::move(*flags), out, err, terminal).run();
}

} // namespace mtplan::tools

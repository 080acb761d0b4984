//===- command.cpp - The command `mtplan` ---------------------------------===//

#include "tools/command.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "llvm/Support/raw_os_ostream.h"

#include "passes/verify/prove.h"
#include "passes/verify/resize.h"
#include "planner/graph/op_graph_dot.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"
#include "runtime/data/named_files.h"
#include "tools/compare.h"
#include "tools/constraints.h"
#include "tools/diagnostics.h"
#include "tools/executable.h"
#include "tools/explain.h"
#include "tools/fit_hardware.h"
#include "tools/foreign.h"
#include "tools/objective.h"
#include "tools/page/plan_page.h"
#include "tools/pipeline.h"
#include "tools/report_json.h"
#include "tools/run/prediction.h"
#include "tools/saved_plan.h"
#include "tools/screen.h"
#include "tools/shortfall.h"
#include "tools/step_trace.h"
#include "tools/text_file.h"

namespace mtplan::tools {

namespace {

/// A line on a terminal's standard error that is gone when this is.
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
    if (flags.constraints)
      addConstraints(*flags.constraints, flags, errors);
    request = readFlags(flags, errors);
    checkOutputs();
  }

  int run() {
    if (request.load.empty() && request.emit &&
        *request.emit <= Stage::differentiated)
      return emitUnplanned();
    if (!flags.compare.empty())
      return compare();
    decide();
    if (!errors.empty())
      return refuse();
    const planner::PlannedCandidate *best = outcome.best();
    if (!best)
      return reportShortfall();
    if (!writeFiles(*best))
      return refuse();
    if (request.exportKind)
      return exportIt();
    if (request.emit)
      return emit(*outcome.problem, best);
    std::optional<passes::Proof> proof;
    if (request.verify && !(proof = prove(*best)))
      return refuse();
    std::vector<std::string> why;
    if (request.explain) {
      Progress progress(err, terminal.progress, "explaining...");
      why = explanationsOf(outcome);
    }
    if (request.json)
      out << jsonOf(outcome, {request.timings, proof ? &*proof : nullptr,
                              nullptr, request.explain ? &why : nullptr});
    else
      out << screenOf(outcome, style()) << textOf(why)
          << (proof ? textOf(*proof) : "");
    return proof && !proof->holds ? kNothingFits : kDone;
  }

private:
  ScreenStyle style() const { return {terminal.colour, request.timings}; }

  void checkOutputs() {
    runtime::NamedFiles files;
    // What comes from standard input, or with this program, is no file,
    // whatever has its name here.
    auto read = [&](const char *by, const std::string &name,
                    const std::vector<std::string> &presets = {}) {
      if (name != "-" && std::ranges::find(presets, name) == presets.end())
        files.read(by, name);
    };
    read("MODEL", flags.model);
    read("--hardware", flags.hardware.value_or(""), planner::presetNames());
    read("--software", flags.software.value_or(""), planner::softwareNames());
    read("--constraints", flags.constraints.value_or(""));
    read("--import", flags.importFile.value_or(""));
    read("--load", flags.load.value_or(""));
    for (const std::string &file : flags.compare)
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

  // Two saved plans, each with the model that it is of.
  int compare() {
    std::vector<PlanOutcome> plans;
    for (const std::string &file : flags.compare) {
      Flags one;
      one.model = flags.model;
      one.load = file;
      plans.push_back(loadPlan(one));
      for (const std::string &error : plans.back().errors)
        errors.push_back(error);
      if (plans.back().problem && !plans.back().best())
        errors.push_back(file + ": does not fit on its machine");
    }
    if (!errors.empty())
      return refuse();
    out << comparisonOf({flags.compare[0], &plans[0]},
                        {flags.compare[1], &plans[1]});
    return kDone;
  }

  static std::string textOf(const std::vector<std::string> &why) {
    std::string text = why.empty() ? "" : "Why\n";
    for (const std::string &line : why)
      text += "  " + line + '\n';
    return text;
  }

  // Finds a plan, or reads one.
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
           write(request.report, [&] { return htmlOf(pageOf(outcome)); }) &&
           write(request.save, [&] { return savedPlanOf(outcome); }) &&
           (request.output.empty() ||
            writeExecutable(*outcome.problem, best, request.output,
                            request.emitsCuda, errors));
  }

  int refuse() {
    if (request.json)
      out << errorsJson(errors);
    for (const std::string &error : errors)
      err << "error: " << error << '\n';
    return kBadInput;
  }

  int emitUnplanned() {
    std::unique_ptr<Problem> problem = buildProblem(request, errors);
    return errors.empty() ? emit(*problem, nullptr) : refuse();
  }

  int exportIt() {
    Exported exported = exportPlan(outcome, *request.exportKind);
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
    mlir::OwningOpRef<mlir::ModuleOp> module =
        moduleOf(*outcome.problem, Stage::planned, &best, errors);
    mlir::OwningOpRef<mlir::ModuleOp> model =
        moduleOf(*outcome.problem, Stage::differentiated, nullptr, errors);
    if (!module || !model)
      return std::nullopt;
    passes::resizeBatch(*model, best.how.microBatch * best.how.dp);
    // A plan that cannot be run shrunk is not proved: no fault of the input.
    std::vector<std::string> failures;
    CapturedDiagnostics captured(*outcome.problem->context, failures);
    passes::ProofOptions options;
    options.schedule = best.how.schedule;
    if (best.how.virtualStages > 1) // goes in rounds of so many
      options.microBatches = best.how.pp;
    passes::Proof proof = passes::prove(*model, *module, options);
    proof.holds = proof.holds && failures.empty();
    proof.failures.insert(proof.failures.end(), failures.begin(),
                          failures.end());
    return proof;
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
    return planner::dotOf(planner::withBatch(outcome.problem->graph,
                                             best.how.microBatch * best.how.dp),
                          segments, planner::meshOf(best.how));
  }

  int reportShortfall() {
    std::vector<std::string> remedies;
    {
      Progress progress(err, terminal.progress,
                        "nothing fits; trying what would...");
      remedies = remediesOf(request, outcome);
    }
    if (request.json)
      out << jsonOf(outcome, {request.timings, nullptr, &remedies});
    else
      out << shortfallOf(outcome, remedies, style());
    return kNothingFits;
  }

  Flags flags;
  std::vector<std::string> errors;
  PlanRequest request;
  std::ostream &out, &err;
  Terminal terminal;
  PlanOutcome outcome;
};

} // namespace

int runCommand(const std::vector<std::string> &arguments, std::ostream &out,
               std::ostream &err, const Terminal &terminal) {
  if (!arguments.empty() && arguments.front() == kFitHardware)
    return runFitHardware({arguments.begin() + 1, arguments.end()}, out, err);
  int exitCode = kDone;
  std::optional<Flags> flags = parseArguments(arguments, out, err, exitCode);
  if (!flags)
    return exitCode;
  return Command(std::move(*flags), out, err, terminal).run();
}

} // namespace mtplan::tools

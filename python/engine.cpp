//===- engine.cpp - The planner as the Python package calls it ------------===//

#include "python/engine.h"

#include <iostream>
#include <mutex>

#include "planner/machine/machine_json.h"
#include "tools/command/command.h"
#include "tools/driver/constraints.h"
#include "tools/driver/executable.h"
#include "tools/driver/objective.h"
#include "tools/driver/plan_text.h"
#include "tools/driver/prove_plan.h"
#include "tools/driver/read_flags.h"
#include "tools/driver/saved_plan.h"
#include "tools/report/comparison.h"
#include "tools/report/page/plan_page.h"
#include "tools/report/report.h"
#include "tools/report/sweep.h"
#include "tools/text/command_line.h"
#include "tools/text/text_file.h"

namespace mtplan::python {

using namespace mtplan::tools;

namespace {

using Errors = std::vector<std::string>;

void throwAny(const Errors &errors) {
  if (!errors.empty())
    throw Failure{errors, ""};
}

// Clears flags.locations, so that errors of values begin with the flag's name.
void addFlags(const std::string &object, const std::string &caller,
              Flags &flags, Errors &errors) {
  addConstraintsOfText(object, caller, flags, errors);
  flags.locations.clear();
}

struct Asked {
  Flags flags;
  PlanRequest request;
};

Asked read(const Request &given, const Poll &poll, const Watch &watch) {
  Asked asked;
  Errors errors;
  asked.flags.texts["MODEL"] = given.model.name;
  addFlags(given.flags, given.caller, asked.flags, errors);
  if (!given.imported.name.empty())
    asked.flags.texts["--import"] = given.imported.name;
  if (!given.output.empty())
    asked.flags.texts["-o"] = given.output;
  asked.request = readFlags(asked.flags, errors);
  throwAny(errors);
  asked.request.modelText = given.model.text;
  asked.request.importText = given.imported.text;
  asked.request.machineText = given.machineText;
  asked.request.softwareText = given.softwareText;
  asked.request.poll = poll;
  if (watch)
    asked.request.watch = [watch](const planner::SearchState &now) {
      watch(now.open, now.fastest.value);
    };
  return asked;
}

[[noreturn]] void throwInfeasible(const PlanRequest &request,
                                  const PlanOutcome &outcome) {
  const Errors remedies = remediesOf(request, outcome);
  std::string screen = infeasibleText(outcome, remedies, {});
  screen.erase(screen.find_last_not_of('\n') + 1);
  throw Failure{{screen}, jsonOf(outcome, {false, nullptr, &remedies})};
}

} // namespace

struct FoundPlan::State {
  Asked asked;
  PlanOutcome outcome;
  /// Serializes calls, because MLIR's context is not locked.
  mutable std::mutex mutex;

  const planner::PlannedCandidate &best() const { return *outcome.best(); }
};

FoundPlan::FoundPlan(std::unique_ptr<State> found) : state(std::move(found)) {}
FoundPlan::~FoundPlan() = default;

std::unique_ptr<FoundPlan> FoundPlan::search(const Request &request,
                                             const Poll &poll,
                                             const Watch &watch) {
  auto state = std::make_unique<State>();
  state->asked = read(request, poll, watch);
  PlanOutcome &outcome = state->outcome;
  outcome = planFor(state->asked.request);
  throwAny(outcome.errors);
  if (!outcome.best())
    throwInfeasible(state->asked.request, outcome);
  // Later calls search, too, but `watch` is only for this search.
  state->asked.request.watch = nullptr;
  outcome.asked.watch = nullptr;
  outcome.problem->options.watch = nullptr;
  std::unique_ptr<FoundPlan> found(new FoundPlan(std::move(state)));
  if (!request.output.empty())
    found->compile(request.output, false);
  return found;
}

std::unique_ptr<FoundPlan> FoundPlan::load(const std::string &file,
                                           const std::string &model,
                                           const std::string &flags,
                                           const std::string &caller) {
  auto state = std::make_unique<State>();
  Errors errors;
  Flags &given = state->asked.flags;
  addFlags(flags, caller, given, errors);
  given.texts["--load"] = file;
  if (!model.empty())
    given.texts["MODEL"] = model;
  state->asked.request = readFlags(given, errors);
  throwAny(errors);
  state->outcome = loadPlan(given);
  throwAny(state->outcome.errors);
  if (!state->outcome.best())
    throwInfeasible(state->outcome.asked, state->outcome);
  return std::unique_ptr<FoundPlan>(new FoundPlan(std::move(state)));
}

std::string FoundPlan::json(bool timings) const {
  std::lock_guard lock(state->mutex);
  return jsonOf(state->outcome, {timings});
}

std::string FoundPlan::screen() const {
  std::lock_guard lock(state->mutex);
  return screenOf(state->outcome, {});
}

std::string FoundPlan::summary() const { return candidateText(state->best()); }

std::string FoundPlan::page() const {
  std::lock_guard lock(state->mutex);
  return htmlOf(pageOf(state->outcome));
}

std::string FoundPlan::saved() const {
  std::lock_guard lock(state->mutex);
  return savedPlanOf(state->outcome);
}

std::string FoundPlan::trace() const {
  std::lock_guard lock(state->mutex);
  Errors errors;
  std::string text = traceTextOf(state->outcome, errors);
  throwAny(errors);
  return text;
}

std::string FoundPlan::verified() const {
  std::lock_guard lock(state->mutex);
  Errors errors;
  const std::optional<passes::Proof> proof =
      provePlan(*state->outcome.problem, state->best(), errors);
  throwAny(errors);
  return jsonOf(state->outcome, {false, &*proof});
}

std::vector<std::string> FoundPlan::explain() const {
  std::lock_guard lock(state->mutex);
  return explanationsOf(state->outcome);
}

std::string FoundPlan::why(const std::string &words, const Poll &poll) const {
  std::lock_guard lock(state->mutex);
  Errors errors;
  if (state->asked.flags.find("--load"))
    errors.emplace_back("--why: compares searches, and --load gives a plan: "
                        "use --compare");
  if (state->asked.request.objective != Objective::stepTime)
    errors.emplace_back("--why: compares step times: give it without "
                        "--objective");
  const Flags narrower = withWords(state->asked.flags, words, "--why", errors);
  throwAny(errors);
  PlanRequest request = readFlags(narrower, errors);
  throwAny(errors);
  const PlanRequest &asked = state->asked.request;
  request.modelText = asked.modelText;
  request.importText = asked.importText;
  request.machineText = asked.machineText;
  request.softwareText = asked.softwareText;
  request.poll = poll;
  return answerTo(words, planFor(request), state->outcome);
}

ExportedText FoundPlan::exported(const std::string &notation) const {
  std::lock_guard lock(state->mutex);
  Flags flags;
  flags.texts["MODEL"] = state->asked.request.model;
  flags.texts["--export"] = notation;
  Errors errors;
  const PlanRequest request = readFlags(flags, errors);
  throwAny(errors);
  Exported text = exportPlan(state->outcome, *request.exportKind);
  throwAny(text.refusals);
  return {std::move(text.text), std::move(text.notes)};
}

void FoundPlan::compile(const std::string &folder, bool withSource) const {
  std::lock_guard lock(state->mutex);
  Errors errors;
  writeExecutable(*state->outcome.problem, state->best(), folder, withSource,
                  errors);
  throwAny(errors);
}

std::string sweep(const Request &request, const std::string &names,
                  const Poll &poll, const Watch &watch) {
  const Asked asked = read(request, poll, watch);
  Errors errors, swept;
  for (const std::string &name : distinct(wordsOf(names)))
    if (positionOf(name, "flag to sweep", sweepableNames(), errors))
      swept.push_back(name);
  if (asked.request.objective != Objective::stepTime)
    errors.emplace_back("searches for the least step time: give it without "
                        "--objective");
  for (std::string &error : errors)
    error = "--sweep: " + error;
  throwAny(errors);
  PlanOutcome outcome = planFor(asked.request);
  throwAny(outcome.errors);
  return csvOf(sweepOf(outcome, swept));
}

std::vector<Flag> flags() {
  std::vector<Flag> all;
  for (const FlagRow &row : flagRows())
    if (row.scope & kConstraint)
      all.push_back({row.key(), row.type, row.help, row.group});
    else if (row.shortName() == "--pin")
      all.push_back({"pins", row.type, row.help, row.group});
  return all;
}

std::vector<std::string> machineNames() { return planner::presetNames(); }

std::string machineText(const std::string &nameOrPath) {
  try {
    return planner::machineText(nameOrPath);
  } catch (const planner::MachineError &error) {
    Errors errors;
    addLines(error.what(), nameOrPath, errors);
    throw Failure{errors, ""};
  }
}

void checkMachine(const std::string &text, const std::string &name) {
  try {
    planner::parseMachine(text);
  } catch (const planner::MachineError &error) {
    Errors errors;
    addLines(error.what(), name, errors);
    throw Failure{errors, ""};
  }
}

int runCommand(const std::vector<std::string> &arguments) {
  return runMain([&] {
    return tools::runCommand(arguments, std::cout, std::cerr, terminalOf());
  });
}

} // namespace mtplan::python

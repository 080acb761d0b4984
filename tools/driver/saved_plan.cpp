//===- saved_plan.cpp - A plan as a file ----------------------------------===//

#include "tools/driver/saved_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "llvm/Support/raw_ostream.h"

#include "planner/machine/software_json.h"
#include "planner/search/segment/segment_plan.h"
#include "planner/search/space/enumerate.h"
#include "tools/driver/constraints.h"
#include "tools/driver/plan_text.h"
#include "tools/driver/read_flags.h"
#include "tools/driver/saved_candidate.h"
#include "tools/text/text_file.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;
using planner::Parallelism;
using planner::PlannedCandidate;
using planner::Rejection;

namespace {

constexpr std::int64_t kPlanFileVersion = 1;
constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::size_t kMostFindings = 20;

// Returns the FNV-1a hash of the model's IR before differentiation.
std::string fingerprintOf(const Problem &problem) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::ModuleOp(problem.model.module.get()).print(stream);
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : stream.str())
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

json simplicityJson(const planner::Simplicity &simplicity) {
  return {{"kinds", simplicity.kinds},
          {"fullness", simplicity.fullness},
          {"unusual", simplicity.unusual},
          {"techniques", simplicity.techniques}};
}

json fasterJson(const std::optional<planner::FasterPlan> &faster) {
  if (!faster)
    return nullptr;
  return {{"step_s", faster->step.value},
          {"simplicity", simplicityJson(faster->simplicity)},
          {"chosen", simplicityJson(faster->chosen)}};
}

json searchJson(const PlanOutcome &outcome) {
  const planner::SearchResult &result = outcome.result;
  json rejections = json::array();
  for (const RejectedMesh &mesh : rejectedMeshes(outcome)) {
    const Rejection &one = *mesh.nearest;
    json entry = {{"dp", one.config.dp},
                  {"tp", one.config.tp},
                  {"pp", one.config.pp},
                  {"cp", one.config.cp},
                  {"micro_batch", one.config.microBatch},
                  {"candidates", mesh.candidates},
                  {"reason", nameOf(one.reason)}};
    if (one.config.tp2 > 1)
      entry["tp2"] = one.config.tp2;
    entry["at_least_s"] = one.bound.value;
    entry["needs_bytes"] = one.needed.value;
    entry["is_floor"] = one.isLowerBound;
    entry["detail"] = one.detail;
    rejections.push_back(std::move(entry));
  }
  json attempts = json::array();
  for (const Attempt &attempt : outcome.attempts)
    attempts.push_back({{"what", attempt.what}, {"failure", attempt.failure}});
  return {{"candidates", result.candidates},
          {"pruned", result.pruned},
          {"solved", result.solved},
          {"refused", result.refused},
          {"unreached", result.unreached},
          {"optimal", result.optimal},
          {"at_least_s", result.lowerBound.value},
          {"faster", fasterJson(result.faster)},
          {"kept_free_bytes", outcome.keptFree.value},
          {"attempts", std::move(attempts)},
          {"rejections", std::move(rejections)}};
}

class PlanFile {
public:
  PlanFile(const Flags &theFlags, PlanOutcome &into)
      : flags(theFlags), file(theFlags.text("--load")), outcome(into),
        errors(into.errors) {}

  void read() {
    std::optional<std::string> text = readTextFile(file, errors);
    if (!text)
      return;
    json root;
    try {
      root = base::parseJson(*text);
    } catch (const base::JsonError &error) {
      addLines(error.what(), file, errors);
      return;
    }
    JsonFields fields(root, "", notes);
    if (readVersion(fields) && readProblem(fields) && readModel(fields))
      readResult(fields);
    report();
    if (!errors.empty())
      outcome.problem.reset();
  }

private:
  bool report() {
    for (const std::string &note : notes)
      addLines(note, file, errors);
    notes.clear();
    return errors.empty();
  }

  bool readVersion(JsonFields &fields) {
    const json *version = fields.need("mtplan_plan");
    if (version && *version != kPlanFileVersion)
      fields.fail("mtplan_plan",
                  fmt::format("is {}; this mtplan reads version {}",
                              version->dump(), kPlanFileVersion));
    writtenBy = fields.text("written_by");
    return report();
  }

  bool isElsewhere() const {
    return std::ranges::any_of(flagRows(), [&](const FlagRow &row) {
      return (row.scope & kReplaceable) && flags.find(row.shortName());
    });
  }

  // Builds the problem from the saved flags, the saved machine and the saved
  // software. --hardware and --software replace the machine and the software.
  bool readProblem(JsonFields &fields) {
    Flags asked;
    const json *request = fields.need("asked");
    if (const json *model = fields.need("model"); model && model->is_object())
      asked.texts["MODEL"] = model->value("file", std::string());
    if (!flags.text("MODEL").empty())
      asked.texts["MODEL"] = flags.text("MODEL");
    const json *machine = fields.need("machine");
    const json *software = fields.need("software");
    if (!report() || !request || !machine || !software)
      return false;
    addConstraints(*request, "/asked", file, asked, errors);
    for (const FlagRow &row : flagRows())
      if (const std::string flag = row.shortName();
          (row.scope & kReplaceable) && flags.find(flag))
        asked.texts[flag] = *flags.find(flag);
    for (const char *flag : {"--emit", "-o", "--stage"})
      if (flags.find(flag))
        asked.texts[flag] = *flags.find(flag);
    for (const char *flag : {"--verify", "--json"})
      asked.switches[flag] = flags.isOn(flag);
    outcome.asked = readFlags(asked, errors);
    if (!flags.find("--hardware"))
      outcome.asked.machineText = machine->dump();
    if (!flags.find("--software"))
      outcome.asked.softwareText = software->dump();
    if (!errors.empty())
      return false;
    std::vector<std::string> found;
    outcome.problem = buildProblem(outcome.asked, found);
    for (const std::string &error : found)
      errors.push_back(placed(error));
    return errors.empty();
  }

  // Converts the JSON pointer in an error about the embedded machine or
  // software into a pointer into this file.
  std::string placed(const std::string &error) const {
    for (auto [name, key] : {std::pair(outcome.asked.hardware, "/machine"),
                             std::pair(outcome.asked.software, "/software")})
      if (!name.empty() && error.starts_with(name + ": /"))
        return file + ": " + key + error.substr(name.size() + 2);
    return error;
  }

  bool readModel(JsonFields &fields) {
    const json *value = fields.need("model");
    if (!value)
      return report();
    JsonFields said(*value, fields.pointerTo("model"), notes);
    const ir::LoadedModel &model = outcome.problem->model;
    said.text("file");
    std::string name = said.text("name");
    auto compare = [&](const char *key, std::int64_t here) {
      std::int64_t there = said.integer(key, 0, kMost * 1024);
      if (there != here)
        said.fail(key, fmt::format("is {} in {}, and {} in {}", there, name,
                                   here, model.name));
    };
    std::size_t before = notes.size();
    compare("layers", model.layers);
    compare("sequence", model.sequence);
    compare("parameters", model.parameters);
    std::string fingerprint = said.text("fingerprint");
    std::string here = fingerprintOf(*outcome.problem);
    if (notes.size() == before && fingerprint != here)
      said.fail("fingerprint",
                fmt::format("is {}, of {} {}: another model of the same size, "
                            "or another version of mtplan ({} wrote the plan, "
                            "this is mtplan {})",
                            fingerprint, model.name, here, writtenBy,
                            MTPLAN_VERSION));
    said.rejectOthers();
    return report();
  }

  void readResult(JsonFields &fields) {
    readSearch(fields);
    auto plans = fields.elements("plans", true);
    fields.rejectOthers();
    if (plans.empty())
      fields.fail("plans", "has no plan");
    if (isElsewhere() && plans.size() > 1)
      plans.resize(1);
    if (!report())
      return;
    for (const auto &[value, where] : plans)
      readPlan(*value, where);
    if (!report())
      return;
    planner::SearchResult &result = outcome.result;
    if (isElsewhere()) {
      result.rejections.clear();
      result.candidates = result.solved = 1;
      result.pruned = result.refused = result.unreached = 0;
      result.optimal = false;
      result.faster.reset();
      outcome.claim = fmt::format("The plan of {}, priced as it stands", file);
    }
    if (!result.plans.empty() && !result.plans.front().fits) {
      result.nearest = std::move(result.plans.front());
      result.plans.clear();
      Rejection rejection;
      rejection.config = result.nearest->config;
      const planner::MemoryUse &memory = result.nearest->memory;
      bool hostIsFull = memory.total() <= memory.limit;
      rejection.reason =
          hostIsFull ? Rejection::Reason::host : Rejection::Reason::memory;
      rejection.needed = hostIsFull ? memory.host : memory.total();
      result.rejections = {rejection};
      if (isElsewhere())
        std::swap(result.solved, result.refused);
    }
  }

  planner::Simplicity readSimplicity(JsonFields &fields, const char *key) {
    planner::Simplicity simplicity;
    if (const json *value = fields.need(key)) {
      JsonFields of(*value, fields.pointerTo(key), notes);
      for (auto [name, member] :
           {std::pair("kinds", &planner::Simplicity::kinds),
            std::pair("fullness", &planner::Simplicity::fullness),
            std::pair("unusual", &planner::Simplicity::unusual),
            std::pair("techniques", &planner::Simplicity::techniques)})
        simplicity.*member =
            static_cast<int>(of.integer(name, 0, std::int64_t{1} << 30));
      of.rejectOthers();
    }
    return simplicity;
  }

  void readFaster(JsonFields &search) {
    const json *value = search.find("faster");
    if (!value || value->is_null())
      return;
    JsonFields fields(*value, search.pointerTo("faster"), notes);
    outcome.result.faster = {savedSeconds(fields, "step_s"),
                             readSimplicity(fields, "simplicity"),
                             readSimplicity(fields, "chosen")};
    fields.rejectOthers();
  }

  void readSearch(JsonFields &fields) {
    const json *value = fields.need("search");
    if (!value)
      return;
    JsonFields search(*value, fields.pointerTo("search"), notes);
    constexpr std::int64_t kMostCandidates = std::int64_t{1} << 53;
    planner::SearchResult &result = outcome.result;
    result.candidates = search.integer("candidates", 0, kMostCandidates);
    result.pruned = search.integer("pruned", 0, kMostCandidates);
    result.solved = search.integer("solved", 0, kMostCandidates, 0);
    result.refused = search.integer("refused", 0, kMostCandidates, 0);
    result.unreached = search.integer("unreached", 0, kMostCandidates, 0);
    result.optimal = search.boolean("optimal", false);
    result.lowerBound = savedSeconds(search, "at_least_s");
    readFaster(search);
    outcome.keptFree = {search.number("kept_free_bytes", {}, 0.0)};
    for (const auto &[element, where] : search.elements("rejections", true)) {
      JsonFields one(*element, where, notes);
      Rejection rejection;
      rejection.config.dp = savedCount(one, "dp");
      rejection.config.tp = savedCount(one, "tp");
      rejection.config.tp2 = static_cast<int>(one.integer("tp2", 1, kMost, 1));
      rejection.config.pp = savedCount(one, "pp");
      rejection.config.cp = savedCount(one, "cp");
      rejection.config.microBatch = one.integer("micro_batch", 0, kMost);
      rejection.count = one.integer("candidates", 0, kMostCandidates);
      rejection.reason = static_cast<Rejection::Reason>(one.oneOf(
          "reason", {"divisor", "memory", "host", "bound", "pins", "budget"}));
      rejection.bound = savedSeconds(one, "at_least_s");
      rejection.needed = {one.number("needs_bytes", {})};
      rejection.isLowerBound = one.boolean("is_floor", false);
      rejection.detail = one.text("detail");
      one.rejectOthers();
      result.rejections.push_back(std::move(rejection));
    }
    for (const auto &[element, where] : search.elements("attempts", true)) {
      JsonFields one(*element, where, notes);
      std::string what = one.text("what");
      outcome.attempts.push_back({what, one.text("failure")});
      one.rejectOthers();
    }
    search.rejectOthers();
  }

  bool isPlannable(const Parallelism &config) {
    const Problem &problem = *outcome.problem;
    if (candidates.empty()) {
      std::vector<Rejection> ignored;
      candidates = planner::enumerateSpace(problem.graph, problem.machine,
                                           problem.options, ignored);
    }
    return planner::isInSpace(candidates, config, problem.options);
  }

  void readPlan(const json &value, const std::string &where) {
    JsonFields plan(value, where, notes);
    const Problem &problem = *outcome.problem;
    std::optional<Parallelism> config =
        readConfig(plan, problem.options.globalBatch, notes);
    if (config && !isPlannable(*config)) {
      plan.fail("parallelism",
                fmt::format("is not among what was asked for on {} GPUs, or "
                            "not legal there",
                            problem.options.devices));
      config.reset();
    }
    double step = plan.number("step_time_s", {});
    planner::Seconds bound = savedSeconds(plan, "at_least_s");
    bool optimal = plan.boolean("optimal", false);
    const json *parts = plan.need("parts"), *runs = plan.need("runs");
    plan.rejectOthers();
    if (!config || !parts || !runs)
      return;
    planner::ModelGraph graph =
        planner::withBatch(problem.graph, config->microBatch * config->dp);
    planner::Setting setting =
        planner::settingOf(problem.options, problem.machine, *config);
    planner::PlannedParts held =
        readParts(plan, graph, setting, config->layers, notes);
    if (!notes.empty())
      return;
    std::vector<planner::SegmentPlan> chain;
    for (const auto &part : held)
      chain.insert(chain.end(), part.begin(), part.end());
    std::vector<std::string> found = planner::check(graph, chain, setting);
    for (std::size_t i = 0; i < std::min(found.size(), kMostFindings); ++i)
      notes.push_back(where + ": " + found[i]);
    if (!found.empty())
      return;
    PlannedCandidate candidate = planner::priceGiven(
        graph, problem.options, problem.machine, *config, std::move(held));
    if (!isElsewhere()) {
      notePrice(step, candidate.time.step.value);
      candidate.lowerBound = bound;
      candidate.optimal = optimal;
    }
    outcome.result.plans.push_back(std::move(candidate));
  }

  // Adds a note if the predicted time differs from the saved time of an earlier
  // version.
  void notePrice(double saved, double now) {
    if (!outcome.result.plans.empty() ||
        std::abs(saved - now) <= 1e-12 * std::abs(now))
      return;
    outcome.problem->notes.push_back(fmt::format(
        "{} took {} when {} saved it; bounds and rejections are from then",
        file, timeText({saved}), writtenBy));
  }

  const Flags &flags;
  const std::string file;
  PlanOutcome &outcome;
  std::vector<std::string> &errors;
  base::JsonErrors notes;
  std::string writtenBy;
  std::vector<Parallelism> candidates;
};

} // namespace

// Infinite times become null, because nlohmann::json writes infinity as null.
std::string savedPlanOf(const PlanOutcome &outcome) {
  const Problem &problem = *outcome.problem;
  const ir::LoadedModel &model = problem.model;
  json file = {{"mtplan_plan", kPlanFileVersion},
               {"written_by", "mtplan " MTPLAN_VERSION}};
  file["model"] = {{"file", outcome.asked.model},
                   {"name", model.name},
                   {"layers", model.layers},
                   {"sequence", model.sequence},
                   {"parameters", model.parameters},
                   {"fingerprint", fingerprintOf(problem)}};
  file["asked"] = constraintsOf(outcome.asked, problem);
  file["search"] = searchJson(outcome);
  json &plans = file["plans"] = json::array();
  for (const PlannedCandidate &plan : outcome.result.plans)
    plans.push_back(candidateJson(problem, plan));
  file["machine"] = json::parse(problem.machineText);
  file["software"] =
      json::parse(problem.softwareText.empty() ? planner::softwareText("mtplan")
                                               : problem.softwareText);
  return file.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

PlanOutcome loadPlan(const Flags &flags) {
  PlanOutcome outcome;
  PlanFile(flags, outcome).read();
  if (outcome.problem)
    finishOutcome(outcome);
  return outcome;
}

} // namespace mtplan::tools

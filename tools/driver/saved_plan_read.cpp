//===- saved_plan_read.cpp - Reading a saved plan -------------------------===//

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_pointer.h"
#include "base/json_text.h"
#include "planner/index.h"
#include "planner/search/given_plan.h"
#include "planner/search/segment/plan_check.h"
#include "planner/search/space/enumerate.h"
#include "tools/driver/constraints.h"
#include "tools/driver/read_flags.h"
#include "tools/driver/saved_plan.h"
#include "tools/text/text_file.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;
using planner::at;
using planner::Parallelism;
using planner::PlannedCandidate;
using planner::Rejection;

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::size_t kMostFindings = 20;
constexpr std::int64_t kMostLayers = 10'000;

template <typename Value>
std::vector<std::string> namesOf(std::initializer_list<Value> values) {
  std::vector<std::string> names;
  for (Value value : values)
    names.emplace_back(nameOf(value));
  return names;
}

// The file has null for infinity.
planner::Seconds secondsOf(JsonFields &fields, const char *key) {
  const json *value = fields.need(key);
  if (value && value->is_null())
    return {std::numeric_limits<double>::infinity()};
  return {value ? fields.number(key, {}) : 0.0};
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
  // The notes so far become errors of this file.
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

  // Builds the problem from the saved flags, on the saved machine.
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
    // Flags given beside --load replace the saved ones.
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

  // Errors of the embedded machine and software get a JSON pointer of this
  // file.
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

  void readSearch(JsonFields &fields) {
    const json *value = fields.need("search");
    if (!value)
      return;
    JsonFields search(*value, fields.pointerTo("search"), notes);
    planner::SearchResult &result = outcome.result;
    result.candidates = search.integer("candidates", 0, kMostCandidates);
    result.pruned = search.integer("pruned", 0, kMostCandidates);
    result.solved = search.integer("solved", 0, kMostCandidates, 0);
    result.refused = search.integer("refused", 0, kMostCandidates, 0);
    result.unreached = search.integer("unreached", 0, kMostCandidates, 0);
    result.optimal = search.boolean("optimal", false);
    result.lowerBound = secondsOf(search, "at_least_s");
    for (const auto &[element, where] : search.elements("rejections", true)) {
      JsonFields one(*element, where, notes);
      Rejection rejection;
      rejection.config.dp = count(one, "dp");
      rejection.config.tp = count(one, "tp");
      rejection.config.pp = count(one, "pp");
      rejection.config.cp = count(one, "cp");
      rejection.config.microBatch = one.integer("micro_batch", 0, kMost);
      // The rejection stands for all candidates of its mesh.
      rejection.count = one.integer("candidates", 0, kMostCandidates);
      rejection.reason = static_cast<Rejection::Reason>(one.oneOf(
          "reason", {"divisor", "memory", "host", "bound", "pins", "budget"}));
      rejection.bound = secondsOf(one, "at_least_s");
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

  static constexpr std::int64_t kMostCandidates = std::int64_t{1} << 53;

  static int count(JsonFields &fields, const char *key) {
    constexpr std::int64_t kMostCounted = 10'000'000;
    return static_cast<int>(fields.integer(key, 0, kMostCounted));
  }

  std::optional<Parallelism> readHow(JsonFields &plan) {
    using planner::Offload;
    using planner::Recompute;
    using planner::ScheduleKind;
    const json *value = plan.need("parallelism");
    if (!value)
      return std::nullopt;
    std::size_t before = notes.size();
    JsonFields fields(*value, plan.pointerTo("parallelism"), notes);
    Parallelism config;
    config.dp = count(fields, "dp");
    config.tp = count(fields, "tp");
    config.pp = count(fields, "pp");
    config.cp = count(fields, "cp");
    config.ep = count(fields, "ep");
    config.schedule = static_cast<ScheduleKind>(fields.oneOf(
        "schedule",
        namesOf({ScheduleKind::gpipe, ScheduleKind::oneForwardOneBackward,
                 ScheduleKind::interleaved, ScheduleKind::zeroBubble})));
    config.virtualStages = count(fields, "virtual_stages");
    for (std::int64_t layers :
         fields.integers("stage_layers", 1, kMostLayers, true))
      config.layers.push_back(static_cast<int>(layers));
    config.microBatch = fields.integer("micro_batch", 1, kMostSamples);
    config.globalBatch = outcome.problem->options.globalBatch;
    config.zeroStage = static_cast<int>(fields.integer("zero", 0, 3));
    config.zeroRanks = count(fields, "zero_ranks");
    config.recompute = static_cast<Recompute>(fields.oneOf(
        "recompute",
        namesOf({Recompute::none, Recompute::selective, Recompute::full})));
    config.recomputeLayers =
        static_cast<int>(fields.integer("recompute_layers", -1, kMostLayers));
    config.offload = static_cast<Offload>(
        fields.oneOf("offload", namesOf({Offload::none, Offload::optimizer})));
    config.tiles = count(fields, "tiles");
    fields.rejectOthers();
    if (notes.size() != before)
      return std::nullopt;
    if (!isPlannable(config)) {
      plan.fail("parallelism",
                fmt::format("is not among what was asked for on {} GPUs, or "
                            "not legal there",
                            outcome.problem->options.devices));
      return std::nullopt;
    }
    return config;
  }

  // A configuration is plannable if the search enumerates it.
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
    std::optional<Parallelism> config = readHow(plan);
    double step = plan.number("step_time_s", {});
    planner::Seconds bound = secondsOf(plan, "at_least_s");
    bool optimal = plan.boolean("optimal", false);
    const json *parts = plan.need("parts"), *runs = plan.need("runs");
    plan.rejectOthers();
    if (!config || !parts || !runs)
      return;
    const Problem &problem = *outcome.problem;
    planner::ModelGraph graph =
        planner::withBatch(problem.graph, config->microBatch * config->dp);
    planner::Setting setting =
        planner::settingOf(problem.options, problem.machine, *config);
    std::vector<planner::SegmentPlan> known;
    for (const auto &[run, pointer] : plan.elements("runs", true))
      if (auto one = readRun(*run, pointer, graph, setting, notes))
        known.push_back(std::move(*one));
      else
        return;
    planner::PlannedParts held = readParts(plan, *config, known);
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

  // Prices may change with the version of mtplan.
  void notePrice(double saved, double now) {
    if (!outcome.result.plans.empty() ||
        std::abs(saved - now) <= 1e-12 * std::abs(now))
      return;
    outcome.problem->notes.push_back(fmt::format(
        "{} took {} when {} saved it; bounds and rejections are from then",
        file, timeText({saved}), writtenBy));
  }

  // Reads the runs; they must cover every layer of every segment once, in the
  // model's order.
  planner::PlannedParts
  readParts(JsonFields &plan, const Parallelism &config,
            const std::vector<planner::SegmentPlan> &runs) {
    planner::PlannedParts held;
    const planner::ModelGraph &graph = outcome.problem->graph;
    std::vector<planner::PipelinePart> wanted =
        planner::pipelineParts(graph, config.layers);
    auto parts = plan.elements("parts", true);
    if (parts.size() != wanted.size()) {
      plan.fail("parts", fmt::format("has {} parts, stage_layers has {}",
                                     parts.size(), wanted.size()));
      return held;
    }
    for (std::size_t part = 0; part < parts.size(); ++part) {
      held.emplace_back();
      planner::PipelinePart found;
      const auto &[list, pointer] = parts[part];
      if (!list->is_array()) {
        notes.push_back(pointer + ": must be an array");
        return held;
      }
      for (std::size_t i = 0; i < list->size(); ++i) {
        JsonFields one((*list)[i], base::childPointer(pointer, i), notes);
        int run = count(one, "run"), first = count(one, "first");
        int copies = count(one, "copies");
        one.rejectOthers();
        if (at(run) >= runs.size()) {
          one.fail("run", fmt::format("is {}, of {} runs", run, runs.size()));
          return held;
        }
        held.back().push_back(runs[at(run)]);
        planner::SegmentPlan &placed = held.back().back();
        placed.first = first;
        placed.count = copies;
        int from = first - graph.segments[at(placed.segment)].first;
        if (!found.empty() && found.back().segment == placed.segment &&
            found.back().first + found.back().count == from && copies > 0)
          found.back().count += copies;
        else
          found.push_back({placed.segment, from, copies});
      }
      if (found != wanted[part])
        notes.push_back(pointer + ": does not hold each layer once, as "
                                  "stage_layers deals them out");
    }
    return held;
  }

  const Flags &flags;
  const std::string file;
  PlanOutcome &outcome;
  std::vector<std::string> &errors;
  base::JsonErrors notes; ///< with JSON pointers, without the file's name
  std::string writtenBy;
  std::vector<Parallelism> candidates;
};

} // namespace

PlanOutcome loadPlan(const Flags &flags) {
  PlanOutcome outcome;
  PlanFile(flags, outcome).read();
  if (outcome.problem)
    finishOutcome(outcome);
  return outcome;
}

} // namespace mtplan::tools

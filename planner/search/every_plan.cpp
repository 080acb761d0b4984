//===- every_plan.cpp - Every plan of a small configuration ---------------===//

#include "planner/search/every_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

/// The search gives up if there may be more than kMostPlans plans, or more than
/// kMostTasks tasks in all simulated steps together.
constexpr double kMostPlans = 30'000, kMostTasks = 3e6;

/// Lists the legal assignments of a problem in lexicographic order.
class LegalAssignments {
public:
  LegalAssignments(const Problem &theProblem, std::size_t mostAssignments)
      : problem(theProblem), most(mostAssignments),
        completed(theProblem.domains.size()) {
    for (const CostTable &table : problem.tables)
      if (!table.scope.empty())
        completed[at(std::ranges::max(table.scope))].push_back(&table);
    assignment.resize(problem.domains.size());
  }

  /// Returns the legal assignments, or nothing if there are more than
  /// `mostAssignments` or too many to visit.
  std::optional<std::vector<Assignment>> list() {
    if (!extend(0))
      return std::nullopt;
    return std::move(legal);
  }

private:
  // Assigns the variables from `next` on; returns false if a limit is exceeded.
  bool extend(std::size_t next) {
    if (next == assignment.size()) {
      legal.push_back(assignment);
      return legal.size() <= most;
    }
    for (int value = 0; value < problem.domains[next]; ++value) {
      assignment[next] = value;
      if (++visited > kMostVisits)
        return false;
      if (isLegal(next) && !extend(next + 1))
        return false;
    }
    return true;
  }

  // Returns whether the tables whose last variable is `last` allow the current
  // values.
  bool isLegal(std::size_t last) const {
    return std::ranges::all_of(completed[last], [&](const CostTable *table) {
      std::size_t entry = 0;
      for (int variable : table->scope)
        entry = entry * at(problem.domains[at(variable)]) +
                at(assignment[at(variable)]);
      return table->time.empty() || table->time[entry] < kInfinity;
    });
  }

  static constexpr int kMostVisits = 200'000;
  const Problem &problem;
  const std::size_t most;
  /// Lists the tables by their last variable.
  std::vector<std::vector<const CostTable *>> completed;
  Assignment assignment;
  std::vector<Assignment> legal;
  int visited = 0;
};

struct Repeat {
  std::size_t part;
  int segment, number;
};

/// Lists the plans of a configuration with one fixed layout of the values
/// between stages.
class Plans {
public:
  Plans(const ModelGraph &g, const SearchOptions &options,
        const Machine &machine, const Parallelism &config, Boundary boundary)
      : graph(g), setting(settingOf(options, machine, config)) {
    setting.boundary = boundary;
    const std::vector<PipelinePart> parts = pipelineParts(graph, config.layers);
    numberOfParts = parts.size();
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (const RepeatRange &range : parts[part])
        for (int i = 0; i < range.count; ++i)
          repeats.push_back({part, range.segment, range.first + i});
  }

  /// Sets `choices`. Returns an upper bound of the number of plans, or infinity
  /// if the bound exceeds `most`.
  double count(double most) {
    const std::vector<bool> owner(graph.parameters.size(), true);
    std::vector<int> repeatsOfSegment(graph.segments.size(), 0);
    for (const Repeat &repeat : repeats)
      ++repeatsOfSegment[at(repeat.segment)];
    double plans = 1.0;
    for (std::size_t s = 0; s < graph.segments.size(); ++s) {
      problems.push_back(
          unitProblem(graph, static_cast<int>(s), setting, owner));
      const double each = std::pow(most / plans, 1.0 / repeatsOfSegment[s]);
      std::optional<std::vector<Assignment>> legal =
          LegalAssignments(problems.back().link.problem,
                           static_cast<std::size_t>(each * (1 + 1e-9)))
              .list();
      if (!legal)
        return kInfinity;
      plans *= std::pow(legal->size(), repeatsOfSegment[s]);
      choices.push_back(std::move(*legal));
    }
    return plans;
  }

  template <typename Judge> void visit(Judge judge) { visitFrom(0, {}, judge); }

private:
  template <typename Judge>
  void visitFrom(std::size_t next, const std::map<int, int> &shared,
                 Judge &judge) {
    if (next == repeats.size())
      return judge(parts());
    for (const Assignment &choice : choices[at(repeats[next].segment)]) {
      std::map<int, int> extended = shared;
      if (!joins(choice, extended))
        continue;
      chosen.push_back(&choice);
      visitFrom(next + 1, extended, judge);
      chosen.pop_back();
    }
  }

  const Link &linkOf(std::size_t repeat) const {
    return problems[at(repeats[repeat].segment)].link;
  }

  // Returns whether `choice` is legal for the next repeat, and adds to `shared`
  // the values that `choice` gives to shared variables.
  bool joins(const Assignment &choice, std::map<int, int> &shared) const {
    const std::size_t next = chosen.size();
    const Link &link = linkOf(next);
    if (next > 0)
      for (std::size_t i = 0; i < link.in.size(); ++i)
        if ((*chosen.back())[at(linkOf(next - 1).out[i])] !=
            choice[at(link.in[i])])
          return false;
    return std::ranges::all_of(link.shared, [&](const auto &one) {
      const int value = choice[at(one.first)];
      return shared.emplace(one.second, value).first->second == value;
    });
  }

  PlannedParts parts() const {
    PlannedParts parts(numberOfParts);
    for (std::size_t i = 0; i < repeats.size(); ++i) {
      const auto &[part, segment, number] = repeats[i];
      std::vector<SegmentPlan> &runs = parts[part];
      if (!runs.empty() && runs.back().segment == segment &&
          chosen[i] == chosen[i - 1]) {
        ++runs.back().count;
        continue;
      }
      runs.push_back(
          readAssignment(graph, segment, problems[at(segment)], *chosen[i]));
      runs.back().first = number;
    }
    return parts;
  }

  const ModelGraph &graph;
  Setting setting;
  std::size_t numberOfParts = 0;
  std::vector<Repeat> repeats;                  ///< in model order
  std::vector<SegmentProblem> problems;         ///< by segment
  std::vector<std::vector<Assignment>> choices; ///< by segment
  std::vector<const Assignment *> chosen;       ///< by repeat
};

} // namespace

std::optional<PlannedCandidate>
fastestOfAll(const ModelGraph &model, const SearchOptions &options,
             const Machine &machine, Seconds slowest, Rejection &rejection) {
  if (rejection.bound >= slowest)
    return std::nullopt;
  const Parallelism config = rejection.config;
  const ModelGraph graph = withBatch(model, config.microBatch * config.dp);
  const double tasks = 3.0 * static_cast<double>(config.microBatches()) *
                       static_cast<double>(config.layers.size());
  double left = std::min(kMostPlans, kMostTasks / tasks);
  std::vector<Plans> each;
  for (const Boundary &boundary : boundariesOf(graph, config)) {
    each.emplace_back(graph, options, machine, config, boundary);
    left -= each.back().count(left);
    if (left < 0.0)
      return std::nullopt;
  }
  const Setting setting = settingOf(options, machine, config);
  std::optional<PlannedCandidate> fastest;
  rejection.bound = slowest;
  for (Plans &plans : each)
    plans.visit([&](PlannedParts parts) {
      const Seconds step = stepSecondsOf(
          stepProblemOf(graph, parts, setting, config, options.overlaps));
      if (fastest ? step >= rejection.bound : step > slowest)
        return;
      PlannedCandidate plan =
          priceGiven(graph, options, machine, config, std::move(parts));
      if (!plan.fits)
        return;
      rejection.bound = plan.lowerBound;
      fastest = std::move(plan);
    });
  if (fastest)
    fastest->optimal = true;
  return fastest;
}

} // namespace mtplan::planner

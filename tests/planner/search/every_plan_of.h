//===- every_plan_of.h - Every plan of a tiny problem -----------*- C++ -*-===//

#ifndef MTPLAN_TESTS_PLANNER_SEARCH_EVERY_PLAN_OF_H
#define MTPLAN_TESTS_PLANNER_SEARCH_EVERY_PLAN_OF_H

#include <map>
#include <vector>

#include "planner/search/segment/step_link.h"
#include "planner/search/stage/stage_solver.h"
#include "tests/planner/search/space/space_case.h"
#include "tests/planner/solve/exhaustive.h"

namespace mtplan::planner {

/// Holds the legal choices of one repeat of a segment.
struct RepeatChoices {
  SegmentProblem problem;
  std::vector<Assignment> legal;
};

/// Lists every plan of one configuration and layout between stages.
class EveryPlan {
public:
  EveryPlan(const Case &theCase, const Parallelism &theConfig,
            const Boundary &boundary)
      : drawn(theCase), config(theConfig),
        graph(withBatch(theCase.model, theConfig.microBatch * theConfig.dp)),
        parts(pipelineParts(graph, config.layers)) {
    Setting setting = settingOf(drawn.options, drawn.machine, config);
    setting.boundary = boundary;
    const std::vector<bool> owner(graph.parameters.size(), true);
    for (std::size_t s = 0; s < graph.segments.size(); ++s) {
      RepeatChoices choices{
          buildSegmentProblem(graph, static_cast<int>(s), setting, owner), {}};
      const Problem &problem = choices.problem.link.problem;
      const bool isLegal =
          std::ranges::find(problem.domains, 0) == problem.domains.end();
      Assignment assignment(problem.domains.size(), 0);
      while (isLegal) {
        if (!std::isinf(costOf(problem, assignment).time))
          choices.legal.push_back(assignment);
        if (!advance(assignment, problem.domains))
          break;
      }
      segments.push_back(std::move(choices));
    }
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (const RepeatRange &range : parts[part])
        for (int i = 0; i < range.count; ++i)
          repeats.push_back(
              {static_cast<int>(part), range.segment, range.first + i});
  }

  /// Returns an upper bound of the number of plans.
  double size() const {
    double plans = 1;
    for (const Repeat &repeat : repeats)
      plans *= static_cast<double>(
          segments[static_cast<std::size_t>(repeat.segment)].legal.size());
    return plans;
  }

  /// Calls `judge` with each plan.
  template <typename Judge> void visit(Judge judge) {
    std::map<int, int> shared;
    visitFrom(0, shared, judge);
  }

private:
  struct Repeat {
    int part, segment, number;
  };

  bool joins(const Assignment &choice, std::map<int, int> &shared) const {
    const Repeat &repeat = repeats[path.size()];
    const Link &link =
        segments[static_cast<std::size_t>(repeat.segment)].problem.link;
    if (!path.empty()) {
      const Repeat &before = repeats[path.size() - 1];
      const Link &last =
          segments[static_cast<std::size_t>(before.segment)].problem.link;
      for (std::size_t i = 0; i < link.in.size(); ++i)
        if ((*path.back())[static_cast<std::size_t>(last.out[i])] !=
            choice[static_cast<std::size_t>(link.in[i])])
          return false;
    }
    for (auto [variable, id] : link.shared) {
      const int value = choice[static_cast<std::size_t>(variable)];
      if (shared.emplace(id, value).first->second != value)
        return false;
    }
    return true;
  }

  template <typename Judge>
  void visitFrom(std::size_t next, const std::map<int, int> &shared,
                 Judge &judge) {
    if (next == repeats.size()) {
      judge(planOf());
      return;
    }
    for (const Assignment &choice :
         segments[static_cast<std::size_t>(repeats[next].segment)].legal) {
      std::map<int, int> extended = shared;
      if (!joins(choice, extended))
        continue;
      path.push_back(&choice);
      visitFrom(next + 1, extended, judge);
      path.pop_back();
    }
  }

  PlannedCandidate planOf() const {
    PlannedParts planned(parts.size());
    for (std::size_t i = 0; i < repeats.size(); ++i) {
      const Repeat &repeat = repeats[i];
      std::vector<SegmentPlan> &runs =
          planned[static_cast<std::size_t>(repeat.part)];
      if (!runs.empty() && runs.back().segment == repeat.segment &&
          *path[i] == *path[i - 1]) {
        ++runs.back().count;
        continue;
      }
      runs.push_back(readAssignment(
          graph, repeat.segment,
          segments[static_cast<std::size_t>(repeat.segment)].problem,
          *path[i]));
      runs.back().first = repeat.number;
    }
    return priceGiven(graph, drawn.options, drawn.machine, config,
                      std::move(planned));
  }

  const Case &drawn;
  const Parallelism config;
  const ModelGraph graph;
  const std::vector<PipelinePart> parts;
  std::vector<RepeatChoices> segments;
  std::vector<Repeat> repeats;
  std::vector<const Assignment *> path;
};

/// Draws a problem that has few plans.
inline Case drawTiny(unsigned seed) {
  RandomModel random(seed);
  Case drawn;
  drawn.model = random.model(random.draw(1, 2), 1, random.draw(0, 1));
  drawn.machine = roundMachine(random.oneIn(2) ? 0.0 : 1e-6);
  drawn.options = openOptions(random.draw(1, 2) * 2);
  drawn.options.globalBatch = 4;
  drawn.options.tensorSplits.clear();
  for (Split split : {Split::batch, Split::sequence, Split::row, Split::column})
    if (random.oneIn(2))
      drawn.options.tensorSplits.push_back(split);
  if (random.oneIn(2))
    drawn.options.overlaps = {};
  return drawn;
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SEARCH_EVERY_PLAN_OF_H

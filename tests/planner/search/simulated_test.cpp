//===- simulated_test.cpp - The search against every plan, simulated ------===//
//
// The solvers minimise sums of times, but times that overlap do not add up.
// These tests simulate every plan of every configuration of small random
// problems, and compare the result of the search with the fastest plan that
// fits.
//
//===----------------------------------------------------------------------===//

#include <cstdio>

#include <gtest/gtest.h>

#include "planner/search/search.h"
#include "planner/search/stage/stage_solver.h"
#include "tests/planner/search/space/space_case.h"
#include "tests/planner/solve/exhaustive.h"

namespace mtplan::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Holds the legal choices of one repeat of a segment.
struct RepeatChoices {
  SegmentProblem problem;
  std::vector<Assignment> legal;
};

/// Simulates every plan of one configuration and layout between stages.
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

Case drawTiny(unsigned seed) {
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

// Draws a problem whose tensor ranks form two axes of two ranks.
Case drawWithTwoTensorAxes(unsigned seed) {
  Case drawn = drawTiny(seed);
  drawn.options.devices = 4;
  drawn.options.tp = 4;
  drawn.options.tp2.only = {2};
  drawn.options.splitsOfTwoAxes = drawn.options.tensorSplits;
  return drawn;
}

/// Holds the step time and the memory of a plan.
struct Price {
  double step = 0.0, memory = 0.0;
};

// Returns the prices of all plans; none if there are more than `most`.
std::vector<Price> pricesOf(const Case &drawn, double most) {
  std::vector<EveryPlan> every;
  const std::vector<Parallelism> space =
      wholeSpace(drawn.model, drawn.machine, drawn.options);
  double size = 0;
  for (const Parallelism &config : space)
    for (const Boundary &boundary : boundariesOf(drawn.model, config)) {
      every.emplace_back(drawn, config, boundary);
      size += every.back().size();
      if (size > most)
        return {};
    }
  std::vector<Price> prices;
  for (EveryPlan &plans : every)
    plans.visit([&](const PlannedCandidate &plan) {
      prices.push_back({plan.time.step.value, plan.memory.total().value});
    });
  return prices;
}

/// Counts problems, and searches for which some plan fits: all of them, those
/// that prove the optimum, and those that miss the fastest plan.
struct Found {
  int problems = 0, searches = 0, proved = 0, slower = 0;
  double worst = 0.0; ///< how much slower
};

Found compare(int problems, double mostPlans, Case (*draw)(unsigned)) {
  Found counts;
  for (unsigned seed = 0; counts.problems < problems; ++seed) {
    Case drawn = draw(seed);
    const std::vector<Price> prices = pricesOf(drawn, mostPlans);
    if (prices.empty())
      continue;
    ++counts.problems;
    const double used =
        std::ranges::min_element(prices, {}, &Price::step)->memory;
    for (double share : {2.0, 0.9, 0.7, 0.5}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " at " << share);
      drawn.machine.device.memory = Bytes{share * used};
      double best = kNever;
      for (const Price &price : prices)
        if (price.memory <= share * used)
          best = std::min(best, price.step);
      const SearchResult result =
          search(drawn.model, drawn.machine, drawn.options);
      if (best == kNever) {
        EXPECT_TRUE(result.plans.empty());
        continue;
      }
      ++counts.searches;
      EXPECT_LE(result.lowerBound.value, best * (1 + 1e-9));
      if (result.plans.empty()) {
        ++counts.slower;
        continue;
      }
      const PlannedCandidate &plan = result.plans[0];
      EXPECT_GE(plan.time.step.value, best * (1 - 1e-9));
      const double excess = plan.time.step.value / best - 1;
      counts.proved += result.optimal;
      if (excess <= 1e-9)
        continue;
      EXPECT_FALSE(result.optimal);
      ++counts.slower;
      counts.worst = std::max(counts.worst, excess);
    }
  }
  return counts;
}

// Without a tolerance, the search returns the fastest plan under the simulator
// and proves it.
TEST(Simulated, SearchFindsTheFastestOfAllPlans) {
  const Found counts = compare(40, 3'000, drawTiny);
  EXPECT_EQ(counts.slower, 0);
  EXPECT_EQ(counts.proved, counts.searches);
  EXPECT_GT(counts.searches, 100);
}

TEST(Simulated, SearchFindsTheFastestOfAllPlansWithTwoTensorAxes) {
  const Found counts = compare(4, 3'000, drawWithTwoTensorAxes);
  EXPECT_EQ(counts.slower, 0);
  EXPECT_EQ(counts.proved, counts.searches);
  EXPECT_GT(counts.searches, 10);
}

// One search of 5,960 finds the fastest plan without proving it.
TEST(Simulated, DISABLED_SearchFindsTheFastestOfManyPlans) {
  const Found counts = compare(2'000, 30'000, drawTiny);
  std::printf("%d problems, %d searches with a plan: %d proved, %d slower than "
              "the fastest plan, by at most %.1f %%\n",
              counts.problems, counts.searches, counts.proved, counts.slower,
              100 * counts.worst);
  EXPECT_EQ(counts.slower, 0);
  EXPECT_GE(counts.proved, counts.searches * 999 / 1000);
}

} // namespace
} // namespace mtplan::planner

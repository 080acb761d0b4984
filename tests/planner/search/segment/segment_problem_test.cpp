//===- segment_problem_test.cpp - The choice problem equals the step ------===//
//
// Draws small random steps. The optimum of the choice problem is the optimum of
// the step, and an assignment that is read back has the cost that the solver
// reported.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "planner/graph/op_graph.h"
#include "planner/search/search.h"
#include "planner/search/segment/step_link.h"
#include "planner/search/stage/stage_solver.h"
#include "tests/planner/graph_check.h"
#include "tests/planner/plain_times.h"
#include "tests/planner/random_model.h"
#include "tests/planner/search/segment/step_specification.h"
#include "tests/planner/solve/exhaustive.h"

namespace mtplan::planner {
namespace {

struct Case {
  ModelGraph model;
  Machine machine;
  Setting setting;
};

Case drawCase(unsigned seed, int segments, int forwardOps, int backwardOps) {
  RandomModel random(seed);
  Case drawn;
  drawn.model = random.model(segments, forwardOps, backwardOps);
  drawn.machine = roundMachine(random.oneIn(2) ? 1e-6 : 0.0);
  NetworkLevel &network = drawn.machine.levels[0];
  network.inSwitchReduction = random.oneIn(3);
  network.reductionBandwidth = 4.0 * network.bandwidth;
  if (seed % 5 < 2)
    fuseConsumers(drawn.model, drawn.machine);
  SearchOptions options;
  int tp = random.draw(1, 2) * 2, dp = random.draw(1, 2);
  for (Split split : {Split::batch, Split::sequence, Split::row, Split::column,
                      Split::hidden})
    if (random.oneIn(2))
      options.tensorSplits.push_back(split);
  std::int64_t microBatch = RandomModel::kSamples / dp;
  options.globalBatch = dp * microBatch * random.draw(1, 3);
  Parallelism config;
  config.dp = dp;
  config.tp = tp;
  config.microBatch = microBatch;
  config.globalBatch = options.globalBatch;
  drawn.setting = settingOf(options, drawn.machine, config);
  return drawn;
}

std::vector<SegmentProblem> problemsOf(const Case &drawn) {
  std::vector<SegmentProblem> problems;
  for (std::size_t s = 0; s < drawn.model.segments.size(); ++s)
    problems.push_back(buildSegmentProblem(
        drawn.model, static_cast<int>(s), drawn.setting,
        std::vector<bool>(drawn.model.parameters.size(), s == 0)));
  return problems;
}

ChainProblem chainOf(const std::vector<SegmentProblem> &problems) {
  ChainProblem chain;
  for (const SegmentProblem &problem : problems)
    chain.links.push_back(problem.link);
  return chain;
}

void expectNear(double actual, double expected) {
  EXPECT_NEAR(actual, expected, 1e-12 * expected);
}

// Returns whether repeats of a segment save or carry a value in more than one
// layout. In this case, the solver counts the mean over the repeats, which is
// below the true memory.
bool keepApart(const ModelGraph &model, const std::vector<SegmentPlan> &plans) {
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const SegmentGraph &segment =
        model.segments[static_cast<std::size_t>(plans[i].segment)];
    for (int tensor : segment.carriedIn) {
      auto t = static_cast<std::size_t>(tensor);
      if (isCarriedOut(segment, tensor) && plans[i].saved[t] &&
          plans[i].segment == plans[i - 1].segment &&
          (plans[i].saved[t] != plans[i - 1].saved[t] ||
           plans[i].made[t] != plans[i - 1].made[t]))
        return true;
    }
  }
  return false;
}

// Checks that the plans of `solution`, read back and priced, have the cost that
// `solution` reports.
void expectPlansCost(const Case &drawn,
                     const std::vector<SegmentProblem> &problems,
                     const ChainProblem &chain, const ChainSolution &solution) {
  Cost cost = costOf(chain, solution.runs);
  expectNear(cost.time, solution.cost.time);
  expectNear(cost.memory, solution.cost.memory);
  std::vector<SegmentPlan> plans;
  for (const Run &run : solution.runs) {
    plans.push_back(readAssignment(drawn.model, run.link,
                                   problems[static_cast<std::size_t>(run.link)],
                                   run.assignment));
    plans.back().count = run.count;
  }
  StepTime time = stepTimeOf(drawn.model, plans, drawn.setting);
  expectNear(time.step.value, cost.time);
  MemoryUse memory = memoryOf(drawn.model, plans, drawn.setting);
  double held = (memory.parameters + memory.gradients + memory.optimizer +
                 memory.activations)
                    .value;
  if (keepApart(drawn.model, plans))
    EXPECT_GE(held, cost.memory * (1 - 1e-12));
  else
    expectNear(held, cost.memory);
}

// Checks the costs of the chain's optimal solutions without a memory limit and
// with decreasing limits.
void expectReadsBack(const Case &drawn) {
  std::vector<SegmentProblem> problems = problemsOf(drawn);
  ChainProblem chain = chainOf(problems);
  ASSERT_EQ(check(chain), std::vector<std::string>{});
  ChainSolution free = solveChain(chain);
  ASSERT_TRUE(free.feasible);
  expectPlansCost(drawn, problems, chain, free);
  for (double share : {0.95, 0.8, 0.6, 0.1}) {
    chain.memoryLimit = share * free.cost.memory;
    expectPlansCost(drawn, problems, chain, solveChain(chain));
  }
}

void expectOptimum(Case &drawn, StepSpecification &specification) {
  ChainSolution solution = solveChain(chainOf(problemsOf(drawn)));
  ASSERT_TRUE(solution.feasible);
  expectNear(solution.cost.time, specification.fastest());
}

TEST(SegmentProblem, OptimumIsThatOfTheStep) {
  int tried = 0, tied = 0, repeated = 0, followed = 0;
  for (unsigned seed = 0; tried < 400; ++seed) {
    SCOPED_TRACE(seed);
    Case drawn = drawCase(seed, 1 + static_cast<int>(seed % 3),
                          1 + static_cast<int>(seed % 2),
                          1 + static_cast<int>(seed / 2 % 3));
    StepSpecification specification(drawn.model, drawn.setting);
    if (specification.size() > 300'000)
      continue;
    ASSERT_EQ(check(drawn.model), std::vector<std::string>{});
    ++tried;
    tied += drawn.model.parameters[0].shared;
    for (const SegmentGraph &segment : drawn.model.segments)
      repeated += segment.repeat > 1;
    for (const SegmentGraph &segment : drawn.model.segments)
      followed += std::ranges::any_of(
          segment.ops, [](const Op &op) { return op.fusedOperand >= 0; });
    expectOptimum(drawn, specification);
  }
  EXPECT_GT(tied, 5);
  EXPECT_GT(repeated, 20);
  EXPECT_GT(followed, 40);
}

TEST(SegmentProblem, AssignmentsReadBackKeepTheirCost) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    expectReadsBack(drawCase(seed, 1 + static_cast<int>(seed % 3), 3, 3));
  }
}

// Lets the second of three segments carry a second value through its repeats.
// The weight's gradient reads the value, and the repeats together save it once.
void carrySecondValue(ModelGraph &model) {
  auto add = [](SegmentGraph &segment, Phase phase) {
    Tensor tensor = segment.tensors[1]; // a carried value
    tensor.name = segment.name + (phase == Phase::forward ? ".on" : ".don");
    tensor.kind = TensorKind::activation;
    tensor.phase = phase;
    segment.tensors.push_back(tensor);
    return static_cast<int>(segment.tensors.size()) - 1;
  };
  SegmentGraph &first = model.segments[0], &last = model.segments[2];
  first.carriedOut.push_back(first.carriedOut[0]);
  first.gradientIn.push_back(add(first, Phase::backward));
  SegmentGraph &middle = model.segments[1];
  int value = add(middle, Phase::forward);
  int gradient = add(middle, Phase::backward);
  middle.carriedIn.push_back(value);
  middle.carriedOut.push_back(value);
  middle.gradientIn.push_back(gradient);
  middle.gradientOut.push_back(gradient);
  for (Op &op : middle.ops)
    if (op.results[0].tensor == middle.accumulations[0].tensor)
      op.operands[0].tensor = value;
  last.carriedIn.push_back(add(last, Phase::forward));
  last.gradientOut.push_back(last.gradientOut[0]);
}

TEST(SegmentProblem, RepeatsSaveACarriedValueOnce) {
  int repeated = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Case drawn = drawCase(seed, 3, 3, 3);
    carrySecondValue(drawn.model);
    ASSERT_EQ(check(drawn.model), std::vector<std::string>{});
    repeated += drawn.model.segments[1].repeat > 1;
    expectReadsBack(drawn);
  }
  EXPECT_GT(repeated, 20);
}

// Solved and priced costs agree for every software file, with and without
// recomputation.
TEST(SegmentProblem, AssignmentsKeepTheirCostUnderAnySoftware) {
  unsigned seed = 0;
  for (const std::string &name : softwareNames()) {
    Software software = loadSoftware(name);
    for (Recompute recompute : {Recompute::none, Recompute::full}) {
      SCOPED_TRACE(testing::Message() << name << ' ' << nameOf(recompute));
      Case drawn = drawCase(seed, 1 + static_cast<int>(seed % 3), 3, 3);
      drawn.setting.software = &software;
      drawn.setting.recompute = recompute;
      expectReadsBack(drawn);
      ++seed;
    }
  }
}

// The prices of conversions are random and obey no triangle inequality.
TEST(ConversionTrees, AreTheCheapest) {
  RandomModel random(7);
  for (int round = 0; round < 300; ++round) {
    LayoutDomain domain;
    int n = random.draw(1, 5);
    domain.layouts.assign(static_cast<std::size_t>(n), Layout::replicated(1));
    std::vector<std::vector<double>> price;
    for (int from = 0; from < n; ++from) {
      price.emplace_back();
      for (int to = 0; to < n; ++to)
        price.back().push_back(from == to               ? 0
                               : random.draw(0, 9) == 0 ? kInfinity
                                                        : random.draw(0, 20));
      domain.seconds.insert(domain.seconds.end(), price.back().begin(),
                            price.back().end());
    }
    ConversionTrees trees(domain); // answers several questions
    for (int question = 0; question < 3; ++question) {
      int made = random.draw(0, n - 1);
      auto wanted = static_cast<unsigned>(random.draw(1, (1 << n) - 1));
      double expected = cheapestTree(price, 1U << made, wanted);
      EXPECT_DOUBLE_EQ(trees.prices(wanted)[static_cast<std::size_t>(made)],
                       expected);
      if (expected == kInfinity)
        continue;
      unsigned have = 1U << made;
      double paid = 0;
      for (auto [from, to] : trees.conversions(made, wanted)) {
        EXPECT_TRUE(have >> from & 1U) << "before it is there";
        EXPECT_FALSE(have >> to & 1U) << "twice";
        have |= 1U << to;
        paid += domain.between(from, to);
      }
      EXPECT_EQ(wanted & ~have, 0U);
      EXPECT_DOUBLE_EQ(paid, expected);
    }
  }
}

// The bound of overlapped traffic (step_forms.cpp) relies on this.
TEST(LayoutDomain, RestrictsTheStepsBetweenReplicasAlone) {
  const Case drawn = drawCase(3, 1, 1, 1);
  const Mesh &mesh = drawn.setting.mesh;
  const std::vector<std::int64_t> shape{64, 64};
  const Layout replicated = Layout::replicated(2);
  const int tensorAxis = tensorAxisOf(mesh);
  LayoutDomain domain;
  const int whole = domain.add(replicated),
            byData = domain.add(withPlacement(replicated, kDataAxis, 0)),
            byOther = domain.add(withPlacement(replicated, kDataAxis, 1)),
            partial =
                domain.add(withPlacement(replicated, kDataAxis, kPartial)),
            byRow = domain.add(withPlacement(replicated, tensorAxis, 0)),
            byColumn = domain.add(withPlacement(replicated, tensorAxis, 1));
  const auto isLegal = [&](int from, int to) {
    return domain.between(from, to) < kInfinity;
  };
  const auto restrictTo = [&](const std::vector<StepKind> &kinds) {
    domain.price(shape, 4, false, drawn.setting);
    domain.restrictBetweenReplicas(kinds, shape, mesh);
  };
  restrictTo({StepKind::allGather});
  EXPECT_TRUE(isLegal(byData, whole));
  EXPECT_TRUE(isLegal(byData, byRow));
  EXPECT_TRUE(isLegal(byRow, byColumn));
  EXPECT_TRUE(isLegal(whole, byColumn));
  EXPECT_FALSE(isLegal(whole, byData));
  EXPECT_FALSE(isLegal(byData, byOther));
  EXPECT_FALSE(isLegal(partial, byData));
  restrictTo({StepKind::reduceScatter, StepKind::maskToRoot, StepKind::slice});
  EXPECT_TRUE(isLegal(partial, byData));
  EXPECT_TRUE(isLegal(whole, partial));
  EXPECT_TRUE(isLegal(whole, byData));
  EXPECT_TRUE(isLegal(byRow, byColumn));
  EXPECT_FALSE(isLegal(partial, whole));
  EXPECT_FALSE(isLegal(byData, whole));
  EXPECT_FALSE(isLegal(byData, byOther));
}

} // namespace
} // namespace mtplan::planner

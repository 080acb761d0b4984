//===- search_test.cpp - The search against exhaustive solving ------------===//

#include <set>

#include <gtest/gtest.h>

#include "planner/cost/compute_cost.h"
#include "planner/search/search.h"
#include "planner/search/solve_candidate.h"
#include "tests/planner/plain_times.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

SearchOptions optionsFor(int devices, std::int64_t globalBatch) {
  SearchOptions options;
  options.devices = devices;
  options.globalBatch = globalBatch;
  options.tensorSplits = {Split::row, Split::column, Split::sequence};
  return options;
}

struct Solved {
  int dp = 1, tp = 1;
  std::int64_t microBatch = 1;
  std::optional<PlannedCandidate> planned;
  double work = 0.0;  // lower bound in seconds: the time of the operators alone
  double bound = 0.0; // lower bound in seconds of plans that fit
};

// Solves every configuration on its own, ordered by tp, then micro-batch.
std::vector<Solved> solveAll(const ModelGraph &model, const Machine &machine,
                             const SearchOptions &options) {
  std::vector<Solved> all;
  for (int tp = 1; tp <= options.devices; ++tp) {
    int dp = options.devices / tp;
    if (dp * tp != options.devices || options.globalBatch % dp != 0)
      continue;
    for (std::int64_t b = 1; b <= options.globalBatch / dp; ++b) {
      if (options.globalBatch / dp % b != 0)
        continue;
      Parallelism config;
      config.dp = dp;
      config.tp = tp;
      config.microBatch = b;
      config.globalBatch = options.globalBatch;
      Setting setting = settingOf(options, machine, config);
      ModelGraph graph = withBatch(model, b * dp);
      StageCache solvers;
      Rejection rejection;
      Solved one{dp, tp, b, {}, 0.0, 0.0};
      one.planned = solveCandidate(graph, options, machine, config, {}, solvers,
                                   rejection);
      // The search solves with fewer points, too, because more points may give
      // a faster sum whose plan does not fit.
      for (std::int64_t points : {std::int64_t{0}, kFewPoints}) {
        Rejection ignored;
        std::optional<PlannedCandidate> other =
            solveCandidate(graph, options, machine, config, {kNever, points},
                           solvers, ignored);
        if (other->fits &&
            (!one.planned->fits || other->time.step < one.planned->time.step)) {
          other->lowerBound =
              std::max(other->lowerBound, one.planned->lowerBound);
          one.planned = std::move(other);
        }
      }
      one.bound = one.planned->fits ? one.planned->lowerBound.value
                                    : rejection.bound.value;
      for (const SegmentGraph &segment : graph.segments)
        for (const Op &op : segment.ops)
          one.work +=
              static_cast<double>(setting.microBatches) * segment.repeat *
              computeLowerBound(op, segment.tensors, options.devices, machine,
                                *options.software, options.precision)
                  .value;
      all.push_back(std::move(one));
    }
  }
  return all;
}

const Solved &find(const std::vector<Solved> &all, const Rejection &rejection) {
  return *std::ranges::find_if(all, [&](const Solved &one) {
    return one.dp == rejection.config.dp && one.tp == rejection.config.tp &&
           one.microBatch == rejection.config.microBatch;
  });
}

// Checks the claims of `result` against every configuration solved on its own.
void expectClaimsHold(const SearchResult &result,
                      const std::vector<Solved> &all) {
  double best = kNever;
  for (const Solved &one : all)
    if (one.planned && one.planned->fits) {
      const PlannedCandidate &planned = *one.planned;
      best = std::min(best, planned.time.step.value);
      EXPECT_LE(planned.lowerBound.value, planned.time.step.value * (1 + 1e-9));
      EXPECT_LE(one.work, planned.lowerBound.value * (1 + 1e-9));
      EXPECT_LE(planned.memory.total().value,
                planned.memory.limit.value * (1 + 1e-12));
      EXPECT_LE(result.lowerBound.value, planned.time.step.value * (1 + 1e-9));
    }
  EXPECT_EQ(result.candidates, static_cast<int>(all.size()));
  for (const Rejection &rejection : result.rejections) {
    const Solved &one = find(all, rejection);
    if (rejection.reason == Rejection::Reason::memory) {
      EXPECT_FALSE(one.planned && one.planned->fits);
      EXPECT_LE(rejection.needed.value,
                one.planned->memory.total().value * (1 + 1e-12));
    }
    if (rejection.reason == Rejection::Reason::bound && one.planned &&
        one.planned->fits) {
      EXPECT_LE(rejection.bound.value,
                one.planned->time.step.value * (1 + 1e-9));
    }
  }
  if (best == kNever) {
    EXPECT_TRUE(result.plans.empty());
    EXPECT_FALSE(result.optimal);
    return;
  }
  ASSERT_FALSE(result.plans.empty());
  EXPECT_FALSE(result.nearest);
  EXPECT_NEAR(result.plans[0].time.step.value, best, 1e-9 * best);
  double open = kNever;
  for (const Solved &one : all)
    open = std::min(open, one.bound);
  EXPECT_LE(result.lowerBound.value, std::min(open, best) * (1 + 1e-9));
  EXPECT_EQ(result.optimal, best <= open * (1 + 1e-9));
  for (std::size_t i = 1; i < result.plans.size(); ++i)
    EXPECT_LE(result.plans[i - 1].time.step, result.plans[i].time.step);
}

TEST(PlannerSearch, FindsTheBestAtAnyMemory) {
  int fitting = 0, tight = 0, optimal = 0, open = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    RandomModel random(seed);
    ModelGraph model = random.model(1 + static_cast<int>(seed % 3), 2, 2);
    Machine machine = roundMachine(seed % 2 == 0 ? 0.0 : 1e-6);
    SearchOptions options = optionsFor(4, 8);
    SearchResult free = search(model, machine, options);
    ASSERT_FALSE(free.plans.empty());
    double used = free.plans[0].memory.total().value;
    for (double share : {2.0, 0.97, 0.9, 0.8, 0.6, 0.2}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " at " << share);
      machine.device.memory = Bytes{share * used};
      for (int top : {1, 3}) {
        options.top = top;
        SearchResult result = search(model, machine, options);
        expectClaimsHold(result, solveAll(model, machine, options));
        fitting += !result.plans.empty();
        optimal += result.optimal;
        open += !result.plans.empty() && !result.optimal;
        tight += !result.plans.empty() &&
                 result.plans[0].time.step > free.plans[0].time.step;
      }
    }
  }
  // Cases of every kind occurred.
  EXPECT_GT(fitting, 200);
  EXPECT_GT(tight, 150);
  EXPECT_GT(optimal, 150);
  EXPECT_GT(open, 20);
}

TEST(PlannerSearch, IsDeterministicForAnyListLength) {
  RandomModel random(5);
  ModelGraph model = random.model(3, 2, 2);
  Machine machine = roundMachine(1e-6);
  SearchOptions options = optionsFor(8, 8);
  SearchResult first = search(model, machine, options);
  ASSERT_FALSE(first.plans.empty());
  for (int top : {1, 1, 4, 100}) {
    options.top = top;
    SearchResult again = search(model, machine, options);
    EXPECT_LE(again.plans.size(), static_cast<std::size_t>(top));
    const PlannedCandidate &a = first.plans[0], &b = again.plans[0];
    EXPECT_EQ(a.config.tp, b.config.tp);
    EXPECT_EQ(a.config.microBatch, b.config.microBatch);
    EXPECT_EQ(a.time.step, b.time.step);
    ASSERT_EQ(a.plans().size(), b.plans().size());
    for (std::size_t i = 0; i < a.plans().size(); ++i) {
      EXPECT_EQ(a.plans()[i].strategies, b.plans()[i].strategies);
      EXPECT_EQ(a.plans()[i].saved, b.plans()[i].saved);
      EXPECT_EQ(a.plans()[i].parameters, b.plans()[i].parameters);
    }
  }
}

TEST(PlannerSearch, BatchesMustDivide) {
  RandomModel random(1);
  ModelGraph model = random.model(1, 1, 1);
  Machine machine = roundMachine();
  SearchOptions options = optionsFor(4, 6);
  options.top = 100;
  SearchResult result = search(model, machine, options);
  // dp 4 does not divide 6. dp 2 allows micro-batches of 1 or 3, dp 1 of 1, 2,
  // 3 or 6.
  EXPECT_EQ(result.candidates, 6);
  ASSERT_FALSE(result.rejections.empty());
  EXPECT_EQ(result.rejections[0].reason, Rejection::Reason::divisor);
  EXPECT_EQ(result.rejections[0].config.dp, 4);
  EXPECT_EQ(
      result.rejections[0].detail,
      "global batch 6 is not divisible by dp 4; nearest that are: 4 and 8");
  std::set<std::pair<int, std::int64_t>> seen;
  for (const PlannedCandidate &planned : result.plans) {
    EXPECT_EQ(planned.config.microBatch * planned.config.microBatches() *
                  planned.config.dp,
              6);
    seen.emplace(planned.config.dp, planned.config.microBatch);
  }
  EXPECT_EQ(seen.size(), 6U);
  options.microBatch = 2; // divides 6 and not 3
  EXPECT_EQ(search(model, machine, options).candidates, 1);
}

TEST(PlannerSearch, DivisorsBindDegreesAskedForAlone) {
  RandomModel random(1);
  ModelGraph model = random.model(1, 1, 1);
  Machine machine = roundMachine();
  SearchOptions options = optionsFor(4, 4);
  options.divisors = {{"columns", 6, Split::column}};
  EXPECT_GT(search(model, machine, options).candidates, 0);
  options.tp = 4;
  SearchResult result = search(model, machine, options);
  EXPECT_EQ(result.candidates, 0);
  ASSERT_EQ(result.rejections.size(), 1U);
  EXPECT_EQ(result.rejections[0].detail, "6 columns are not divisible by tp 4");
  options.divisors[0].split = Split::head; // not allowed, so not binding
  EXPECT_GT(search(model, machine, options).candidates, 0);
}

TEST(PlannerSearch, NearestNeedsLeastIfNothingFits) {
  RandomModel random(2);
  ModelGraph model = random.model(2, 2, 2);
  Machine machine = roundMachine();
  SearchOptions options = optionsFor(2, 2);
  double least = kNever;
  machine.device.memory = Bytes{1.0};
  for (const Solved &one : solveAll(model, machine, options))
    least = std::min(least, one.planned->memory.total().value);
  machine.device.memory = Bytes{least * 0.75};
  SearchResult result = search(model, machine, options);
  EXPECT_TRUE(result.plans.empty());
  // Lower bounds of memory reject the configurations. The lowest of them is at
  // most the memory of the smallest plan.
  double needed = kNever;
  for (const Rejection &rejection : result.rejections)
    if (rejection.reason == Rejection::Reason::memory)
      needed = std::min(needed, rejection.needed.value);
  EXPECT_GT(needed, machine.device.memory.value);
  EXPECT_LE(needed, least * (1 + 1e-12));
  // `nearest` is empty if bounds reject every configuration unsolved.
  if (result.nearest) {
    EXPECT_FALSE(result.nearest->fits);
    EXPECT_DOUBLE_EQ(result.nearest->memory.total().value, least);
  }
  machine.device.memory = Bytes{least};
  EXPECT_FALSE(search(model, machine, options).plans.empty());
}

Pins columnPins(const ModelGraph &model) {
  Pins pins;
  for (const SegmentGraph &segment : model.segments) {
    pins.ops.emplace_back();
    for (const Op &op : segment.ops)
      pins.ops.back().push_back(op.opClass == OpClass::gemm ? "column" : "");
  }
  pins.parameters.assign(model.parameters.size(),
                         std::vector<std::string>{"", "tp"});
  return pins;
}

TEST(PlannerSearch, PinsApplyToTheTensorAxisAlone) {
  RandomModel random(3);
  ModelGraph model = random.model(2, 2, 2);
  Machine machine = roundMachine();
  SearchOptions options = optionsFor(2, 4);
  Pins pins = columnPins(model);
  options.tp = 1;
  Seconds unpinned = search(model, machine, options).plans[0].time.step;
  options.pins = &pins;
  EXPECT_EQ(search(model, machine, options).plans[0].time.step, unpinned);
  options.tp = 2;
  SearchResult result = search(model, machine, options);
  ASSERT_FALSE(result.plans.empty());
  for (const SegmentPlan &plan : result.plans[0].plans()) {
    const auto &ops =
        model.segments[static_cast<std::size_t>(plan.segment)].ops;
    for (std::size_t o = 0; o < ops.size(); ++o)
      if (ops[o].opClass == OpClass::gemm) {
        EXPECT_EQ(wordOf(ops[o], plan.strategies[o], kTensorAxis), "column");
      }
    for (const auto &state : plan.parameters)
      if (state) {
        EXPECT_EQ(placementOf(state->stored, kTensorAxis), 1);
      }
  }
  pins.ops[0][0] = "head"; // no such factor
  SearchResult refused = search(model, machine, options);
  EXPECT_TRUE(refused.plans.empty());
  for (const Rejection &rejection : refused.rejections)
    EXPECT_EQ(rejection.reason, Rejection::Reason::pins);
}

// Two axes divide a batch of 4 separately but not together, and nothing else
// can be split, so the tensor ranks repeat the work.
TEST(PlannerSearch, AnAxisWithoutAFactorRepeatsTheWork) {
  RandomModel random(4);
  ModelGraph model = random.model(1, 1, 1);
  Machine machine = roundMachine();
  SearchOptions options = optionsFor(8, 4);
  options.tensorSplits = {Split::batch};
  options.tp = 4;
  options.microBatch = 2;
  EXPECT_EQ(search(model, machine, options).plans.size(), 1U);
}

} // namespace
} // namespace mtplan::planner

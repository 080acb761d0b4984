//===- step_forms_test.cpp - Linear bounds against every plan -------------===//

#include <array>

#include <gtest/gtest.h>

#include "planner/search/bound/candidate_bounds.h"
#include "planner/search/bound/step_forms.h"
#include "tests/planner/search/every_plan_of.h"

namespace mtplan::planner {
namespace {

/// Compares every form with the step of every plan of a configuration.
class FormsCheck {
public:
  FormsCheck(const Case &theCase, const Parallelism &theConfig)
      : drawn(theCase), config(theConfig),
        graph(withBatch(theCase.model, config.microBatch * config.dp)),
        setting(settingOf(drawn.options, drawn.machine, config)) {
    Relaxation relaxation(drawn.model, drawn.machine, drawn.options);
    relaxation.prepare({config});
    forms = stepFormsOf(graph, relaxation.stepOf(config).times, setting, config,
                        drawn.options.overlaps);
  }

  /// Checks all plans, and returns their number.
  int run() {
    int plans = 0;
    EveryPlan(drawn, config, std::nullopt).visit([&](const auto &plan) {
      ++plans;
      check(plan);
    });
    return plans;
  }

  /// Counts the plans whose step is at most 1 % above some form.
  int near = 0;

private:
  void check(const PlannedCandidate &plan) {
    std::vector<PhaseTimes> times;
    std::vector<bool> paid(graph.parameters.size(), false);
    for (const SegmentPlan &run : plan.parts.front())
      times.push_back(phaseTimesOf(graph, run, setting, paid));
    PricedParts parts(1);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const SegmentPlan &run = plan.parts.front()[i];
      parts.front().push_back({&run, &times[i], run.count});
    }
    const double step = plan.time.step.value;
    double most = 0.0;
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const double bound = forms[i].of(parts, config).value;
      EXPECT_LE(bound, step * (1 + 1e-9)) << "form " << i;
      most = std::max(most, bound);
    }
    EXPECT_LE(mean(forms.front(), forms.back(), 0.25).of(parts, config).value,
              step * (1 + 1e-9));
    near += most >= 0.99 * step;
  }

  const Case &drawn;
  const Parallelism &config;
  const ModelGraph graph;
  const Setting setting;
  std::vector<StepForm> forms;
};

TEST(StepForms, NeverExceedTheStepOfAnyPlan) {
  int plans = 0, near = 0;
  std::array<int, 4> byZero{};
  for (unsigned seed = 0; seed < 150; ++seed) {
    Case drawn = drawTiny(seed);
    Software software = *drawn.options.software;
    software.overlap.tax = software.overlap.taxOneRankPerNode =
        (seed % 3) * 0.25;
    software.parameters.perSharer = {(seed % 2) * 1e-6};
    drawn.options.software = &software;
    drawn.options.overlaps.gather = seed % 5 != 0;
    drawn.options.overlaps.reduce = seed % 7 != 0;
    for (const Parallelism &config :
         wholeSpace(drawn.model, drawn.machine, drawn.options)) {
      if (config.pp > 1 || config.offload != Offload::none ||
          EveryPlan(drawn, config, std::nullopt).size() > 300)
        continue;
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", tp " << config.tp
                                      << ", ZeRO " << config.zeroStage
                                      << ", micro-batch " << config.microBatch);
      FormsCheck check(drawn, config);
      const int count = check.run();
      plans += count;
      near += check.near;
      byZero[static_cast<std::size_t>(config.zeroStage)] += count;
    }
  }
  EXPECT_GT(plans, 10'000);
  EXPECT_GT(near, plans / 2) << "bounds that are seldom near are useless";
  for (int count : byZero)
    EXPECT_GT(count, 500);
}

} // namespace
} // namespace mtplan::planner

//===- step_form.cpp - A lower bound of a step with one stage -------------===//

#include "planner/search/bound/step_form.h"

#include <algorithm>
#include <cassert>

#include "planner/integers.h"

namespace mtplan::planner {

Transfers transfersOf(const Parallelism &config) {
  const auto microBatches = static_cast<double>(config.microBatches());
  return {config.zeroStage > 2 ? 2.0 * microBatches : 1.0,
          config.zeroStage > 1 ? microBatches : 1.0};
}

void StepForm::setWeights(Setting &setting) const {
  setting.sumWeights.clear();
  setting.firstWeights.clear();
  for (const Segment &one : segments) {
    const auto sumOf = [&](const Weights &weights) {
      assert(weights.gatherTax == 0.0 || setting.zeroStage < 3);
      assert(weights.reduceTax == 0.0 || setting.zeroStage < 2);
      SumWeights sum = overlapWeights(weights.compute, weights.gather,
                                      weights.reduce, setting.zeroStage);
      sum.gatherTax = weights.gatherTax;
      sum.reduceTax = weights.reduceTax;
      sum.gatherLimit = weights.gatherTax * one.gatherLimit.value;
      sum.reduceLimit = weights.reduceTax * one.reduceLimit.value;
      return sum;
    };
    setting.sumWeights.push_back(sumOf(one.others));
    setting.firstWeights.push_back(sumOf(one.first));
  }
}

Seconds StepForm::of(const PricedParts &parts,
                     const Parallelism &config) const {
  const auto microBatches = static_cast<double>(config.microBatches());
  const Transfers transfers = transfersOf(config);
  Seconds time = fixed;
  int before = -1;
  for (const std::vector<PricedRun> &part : parts)
    for (const PricedRun &run : part) {
      const SliceTimes slice = sliceWithoutTax(*run.times, config);
      const Segment &one = segments[at(run.plan->segment)];
      const auto weighted = [&](const Weights &weights) {
        return weights.compute * microBatches *
                   (slice.forward + slice.backward) +
               weights.gather * transfers.gathers * slice.gather +
               weights.reduce * transfers.reductions * slice.reduce +
               weights.gatherTax * std::min(slice.gather, one.gatherLimit) +
               weights.reduceTax * std::min(slice.reduce, one.reduceLimit);
      };
      const int firsts = run.plan->segment == before ? 0 : 1;
      before = run.plan->segment;
      time += firsts * weighted(one.first) +
              (run.count - firsts) * weighted(one.others) +
              run.count * run.times->update;
    }
  return time;
}

StepForm mean(const StepForm &a, const StepForm &b, double share) {
  const auto between = [&](auto one, auto other) {
    return (1.0 - share) * one + share * other;
  };
  StepForm form;
  form.fixed = between(a.fixed, b.fixed);
  for (std::size_t s = 0; s < a.segments.size(); ++s) {
    const auto weightsOf = [&](const StepForm::Weights &one,
                               const StepForm::Weights &other) {
      return StepForm::Weights{between(one.compute, other.compute),
                               between(one.gather, other.gather),
                               between(one.reduce, other.reduce),
                               between(one.gatherTax, other.gatherTax),
                               between(one.reduceTax, other.reduceTax)};
    };
    const StepForm::Segment &one = a.segments[s], &other = b.segments[s];
    form.segments.push_back({weightsOf(one.first, other.first),
                             weightsOf(one.others, other.others),
                             one.gatherLimit, one.reduceLimit});
  }
  return form;
}

// The least value is a concave function of the share: the least of several
// lines. It is largest at an end or where two lines intersect.
std::pair<double, Seconds> bestShare(const StepForm &a, const StepForm &b,
                                     const std::vector<PricedParts> &plans,
                                     const Parallelism &config) {
  struct Values {
    double start, rise;
  };
  std::vector<Values> lines;
  for (const PricedParts &parts : plans) {
    const double start = a.of(parts, config).value;
    lines.push_back({start, b.of(parts, config).value - start});
  }
  std::vector<double> shares{0.0, 1.0};
  for (const Values &one : lines)
    for (const Values &other : lines)
      if (one.rise != other.rise)
        shares.push_back(std::clamp(
            (other.start - one.start) / (one.rise - other.rise), 0.0, 1.0));
  std::pair<double, Seconds> best{0.0, {-kInfinity}};
  for (double share : shares) {
    double least = kInfinity;
    for (const Values &line : lines)
      least = std::min(least, line.start + share * line.rise);
    if (least > best.second.value)
      best = {share, {least}};
  }
  return best;
}

} // namespace mtplan::planner

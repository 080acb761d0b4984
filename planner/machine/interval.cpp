//===- interval.cpp - How far predictions may be off ----------------------===//

#include "planner/machine/interval.h"

#include <algorithm>
#include <cmath>

namespace mtplan::planner {

StepInterval stepInterval(const Software &software, const Device &device,
                          int devices) {
  for (const std::string &name : {device.name, device.architecture})
    for (const Accuracy &one : software.accuracy)
      if (one.device == name && one.mostDevices >= devices)
        return {{one.low, one.high}, &one};
  return {kUnvalidated, nullptr};
}

Interval intervalOf(std::vector<Ratio> ratios) {
  if (ratios.empty())
    return kUnvalidated;
  std::ranges::sort(ratios, {}, &Ratio::value);
  const auto count = static_cast<double>(ratios.size());
  double total = 0.0;
  for (const Ratio &ratio : ratios)
    total += ratio.weight;
  // A value lies in the middle of its weight. With equal weights, the ranks are
  // 1, 2, ...
  std::vector<double> ranks;
  double before = 0.5;
  for (const Ratio &ratio : ratios) {
    const double weight = ratio.weight * count / total;
    ranks.push_back(before + weight / 2);
    before += weight;
  }
  // Returns the logarithm at a rank, between two ranks by interpolation.
  const auto atRank = [&](double rank) {
    const auto next = static_cast<std::size_t>(
        std::ranges::lower_bound(ranks, rank) - ranks.begin());
    if (next == 0 || next == ranks.size())
      return std::log((next == 0 ? ratios.front() : ratios.back()).value);
    const double part =
        (rank - ranks[next - 1]) / (ranks[next] - ranks[next - 1]);
    return (1 - part) * std::log(ratios[next - 1].value) +
           part * std::log(ratios[next].value);
  };
  const auto blended = [&](double rank, double prior) {
    return std::exp((count * atRank(rank) + kPriorRuns * std::log(prior)) /
                    (count + kPriorRuns));
  };
  return {blended(0.1 * (count + 1), kUnvalidated.low),
          blended(0.9 * (count + 1), kUnvalidated.high)};
}

} // namespace mtplan::planner

//===- replicas.cpp - Groups of replicas for experts and ZeRO -------------===//

#include "planner/search/space/replicas.h"

#include <algorithm>
#include <numeric>

#include "planner/divisors.h"

namespace mtplan::planner {

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

// ZeRO groups above one set of experts hold several sets; with one set per copy
// there is nothing of the experts to split.
bool mayShare(int sharing, int dp, int ep) {
  return sharing == dp || (sharing > ep && sharing < dp && dp % sharing == 0 &&
                           sharing % ep == 0);
}

void addOnce(std::vector<int> &list, int number) {
  if (std::ranges::find(list, number) == list.end())
    list.push_back(number);
}

std::string againstExpertRank(int ep, std::int64_t experts,
                              std::int64_t devices, bool areReplicas) {
  bool one = areReplicas && experts % ep == 0; // "dp 8 does", else they do
  std::string divided = experts % ep == 0 ? "" : text(experts) + " experts";
  if (devices % ep != 0)
    divided += (divided.empty() ? "" : " and ") +
               (areReplicas ? "dp " + text(devices)
                            : "the " + text(devices) + " GPUs");
  return divided + (one ? " does" : " do") + " not divide by ep " + text(ep);
}

std::string againstZeroRank(int sharing, const std::vector<int> &expertRanks,
                            int dp) {
  std::string asked = "zero-ranks " + text(sharing);
  if (sharing > dp)
    return asked + " is more than the replicas, dp " + text(dp);
  if (dp % sharing != 0)
    return asked + " does not divide dp " + text(dp);
  if (sharing == 1)
    return asked + " leaves each of dp " + text(dp) +
           " replicas a copy of its own, which is zero 0";
  return asked + " is not a larger multiple of ep " +
         listText(expertRanks, "or");
}

} // namespace

std::int64_t expertsOf(const ModelGraph &model) {
  std::int64_t most = 1;
  for (const Parameter &parameter : model.parameters)
    for (std::size_t d = 0; d < parameter.splits.size(); ++d)
      if (parameter.splits[d] == Split::expert)
        most = std::max(most, parameter.shape[d]);
  return most;
}

std::vector<int> expertRanks(const Choices<int> &asked, std::int64_t experts,
                             int dp) {
  std::vector<int> ranks;
  for (std::int64_t ep : divisorsOf(std::gcd(experts, std::int64_t{dp})))
    if (asked.allows(static_cast<int>(ep)))
      ranks.push_back(static_cast<int>(ep));
  return ranks;
}

std::vector<int> zeroRanksOf(const Parallelism &config, const Machine &machine,
                             const Choices<int> &asked) {
  if (config.zeroStage == 0)
    return {1};
  std::vector<int> ranks;
  for (int sharing : asked.only)
    if (int all = sharing == 0 ? config.dp : sharing;
        mayShare(all, config.dp, config.ep))
      addOnce(ranks, all);
  if (!asked.only.empty())
    return ranks;
  for (const NetworkLevel &level : machine.levels)
    for (int n = level.ranks / (config.tp * config.cp); n > 1; --n)
      if (n < config.dp && mayShare(n, config.dp, config.ep)) {
        addOnce(ranks, n);
        break;
      }
  addOnce(ranks, config.dp);
  return ranks;
}

std::string againstExpertRanks(const Choices<int> &asked, std::int64_t experts,
                               int devices, bool areReplicas) {
  if (!expertRanks(asked, experts, devices).empty())
    return {};
  if (experts == 1)
    return "the model has no experts to deal out over ep " +
           listText(asked.only, "or") + "; ep must be 1";
  std::string against;
  for (int ep : asked.only)
    against += (against.empty() ? "" : ", ") +
               againstExpertRank(ep, experts, devices, areReplicas);
  return against + "; nearest that divide both: " +
         nearestOf(divisorsOf(std::gcd(experts, std::int64_t{devices})),
                   {asked.only.begin(), asked.only.end()});
}

std::string againstZeroRanks(const Choices<int> &asked,
                             const std::vector<int> &expertRanks, int dp) {
  auto mayBe = [&](int sharing) {
    return std::ranges::any_of(
        expertRanks, [&](int ep) { return mayShare(sharing, dp, ep); });
  };
  if (asked.only.empty() || std::ranges::any_of(asked.only, [&](int sharing) {
        return sharing == 0 || mayBe(sharing);
      }))
    return {};
  std::string against;
  for (int sharing : asked.only)
    against += (against.empty() ? "" : ", ") +
               againstZeroRank(sharing, expertRanks, dp);
  std::vector<std::int64_t> allowed = divisorsOf(dp);
  std::erase_if(allowed, [&](std::int64_t sharing) {
    return !mayBe(static_cast<int>(sharing));
  });
  return against + "; nearest that would do: " +
         nearestOf(allowed, {asked.only.begin(), asked.only.end()});
}

} // namespace mtplan::planner

//===- parallelism.cpp - The configuration of a plan ----------------------===//

#include "planner/search/space/parallelism.h"

#include <algorithm>
#include <numeric>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

// Returns whether `sharing` replicas may share the state that ZeRO shards. A
// group smaller than dp must have several sets of experts: with one set, there
// would be no experts' state to shard.
bool mayShare(int sharing, int dp, int ep) {
  return sharing == dp || (sharing > ep && sharing < dp && dp % sharing == 0 &&
                           sharing % ep == 0);
}

void addOnce(std::vector<int> &list, int number) {
  if (!contains(list, number))
    list.push_back(number);
}

std::string errorOfExpertRank(int ep, std::int64_t experts,
                              std::int64_t devices, bool areReplicas) {
  bool one = areReplicas && experts % ep == 0; // singular: "dp 8 is"
  std::string divided = experts % ep == 0 ? "" : text(experts) + " experts";
  if (devices % ep != 0)
    divided += (divided.empty() ? "" : " and ") +
               (areReplicas ? "dp " + text(devices)
                            : "the " + text(devices) + " GPUs");
  return divided + (one ? " is" : " are") + " not divisible by ep " + text(ep);
}

std::string errorOfZeroRank(int sharing, const std::vector<int> &expertRanks,
                            int dp) {
  std::string asked = "zero-ranks " + text(sharing);
  if (sharing > dp)
    return asked + " is more than the number of replicas, dp " + text(dp);
  if (dp % sharing != 0)
    return asked + " does not divide dp " + text(dp);
  if (sharing == 1)
    return asked + " shards nothing over the dp " + text(dp) +
           " replicas, which is zero 0";
  return asked + " must be more than ep " + listText(expertRanks, "or") +
         " and a multiple of it";
}

// Returns recomputeShareOf() of virtual stages `first`, `first` + `step`, ...
double shareOf(const Parallelism &config, std::size_t first, std::size_t step) {
  int all = 0, recomputed = 0;
  for (std::size_t part = first; part < config.layers.size(); part += step) {
    all += config.layers[part];
    recomputed += std::min(config.layers[part], config.recomputeLayers);
  }
  return config.recomputeLayers < 0 || all == 0 ? 1.0
                                                : double(recomputed) / all;
}

} // namespace

Mesh meshOf(int dp, int tp) {
  Mesh mesh;
  mesh.axes = {{"dp", dp}, {"tp", tp}};
  return mesh;
}

Mesh meshOf(const Parallelism &config) {
  int sharing = config.zeroStage > 0 ? config.zeroRanks : config.dp;
  Mesh mesh;
  int outer = config.dp / config.ep;
  bool hybrid = sharing < config.dp && sharing % config.ep == 0;
  int inner = hybrid ? sharing / config.ep : 1;
  mesh.axes.push_back({"dp", outer / inner});
  auto add = [&](const char *name, int size) {
    if (size > 1)
      mesh.axes.push_back({name, size});
  };
  add("zero", inner);
  add("ep", config.ep);
  add("cp", config.cp);
  mesh.axes.push_back({"tp", config.tp / config.tp2});
  add("tp2", config.tp2);
  return mesh;
}

std::vector<int> tensorAxesOf(const Mesh &mesh) {
  std::vector<int> axes(mesh.axes.size() - at(tensorAxisOf(mesh)));
  std::iota(axes.begin(), axes.end(), tensorAxisOf(mesh));
  return axes;
}

int tensorRanksOf(const Mesh &mesh) {
  int ranks = 1;
  for (int axis : tensorAxesOf(mesh))
    ranks *= mesh.axes[at(axis)].size;
  return ranks;
}

ScheduleShape shapeOf(const Parallelism &config) {
  return {config.schedule, config.pp, config.virtualStages,
          static_cast<int>(config.microBatches())};
}

double inFlightOf(const Parallelism &config, int stage) {
  return static_cast<double>(inFlight(shapeOf(config), stage).total()) /
         config.virtualStages;
}

double recomputeShareOf(const Parallelism &config) {
  return shareOf(config, 0, 1);
}

double recomputeShareOf(const Parallelism &config, int stage) {
  return shareOf(config, at(stage), at(config.pp));
}

double leastRecomputeShareOf(const Parallelism &config) {
  double least = 1.0;
  for (int stage = 0; stage < config.pp; ++stage)
    least = std::min(least, recomputeShareOf(config, stage));
  return least;
}

const char *nameOf(Recompute recompute) {
  constexpr const char *kNames[] = {"none", "selective", "full"};
  return kNames[static_cast<std::size_t>(recompute)];
}

const char *nameOf(Offload offload) {
  return offload == Offload::none ? "none" : "optimizer";
}

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

std::string errorOfExpertRanks(const Choices<int> &asked, std::int64_t experts,
                               int devices, bool areReplicas) {
  if (!expertRanks(asked, experts, devices).empty())
    return {};
  if (experts == 1)
    return "the model has no experts to distribute over ep " +
           listText(asked.only, "or") + "; ep must be 1";
  std::string error;
  for (int ep : asked.only)
    error += (error.empty() ? "" : ", ") +
             errorOfExpertRank(ep, experts, devices, areReplicas);
  return error + "; nearest that divide both: " +
         nearestOf(divisorsOf(std::gcd(experts, std::int64_t{devices})),
                   {asked.only.begin(), asked.only.end()});
}

std::string errorOfZeroRanks(const Choices<int> &asked,
                             const std::vector<int> &expertRanks, int dp) {
  auto mayBe = [&](int sharing) {
    return std::ranges::any_of(
        expertRanks, [&](int ep) { return mayShare(sharing, dp, ep); });
  };
  if (asked.only.empty() || std::ranges::any_of(asked.only, [&](int sharing) {
        return sharing == 0 || mayBe(sharing);
      }))
    return {};
  std::string error;
  for (int sharing : asked.only)
    error +=
        (error.empty() ? "" : ", ") + errorOfZeroRank(sharing, expertRanks, dp);
  std::vector<std::int64_t> allowed = divisorsOf(dp);
  std::erase_if(allowed, [&](std::int64_t sharing) {
    return !mayBe(static_cast<int>(sharing));
  });
  return error + "; nearest allowed: " +
         nearestOf(allowed, {asked.only.begin(), asked.only.end()});
}

} // namespace mtplan::planner

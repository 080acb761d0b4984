//===- rejections.cpp - Meshes without a plan -----------------------------===//

#include "tools/driver/rejections.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/driver/parallelism_text.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;
using planner::Rejection;

std::vector<RejectedMesh> rejectedMeshes(const PlanOutcome &outcome) {
  auto keyOf = [](const planner::Parallelism &config) {
    return std::tuple(config.tp, config.pp, config.cp, config.dp);
  };
  std::map<std::tuple<int, int, int, int>, RejectedMesh> meshes;
  // Reasons are ranked by how near the candidate came to a plan.
  auto rank = [](Rejection::Reason reason) {
    switch (reason) {
    case Rejection::Reason::budget:
      return 0;
    case Rejection::Reason::bound:
      return 1;
    case Rejection::Reason::memory:
      return 2;
    case Rejection::Reason::host:
      return 3;
    case Rejection::Reason::pins:
      return 4;
    case Rejection::Reason::divisor:
      return 5;
    }
    return 6;
  };
  auto value = [](const Rejection &rejection) {
    return rejection.reason == Rejection::Reason::bound ||
                   rejection.reason == Rejection::Reason::budget
               ? rejection.bound.value
               : rejection.needed.value;
  };
  for (const Rejection &rejection : outcome.result.rejections) {
    RejectedMesh &mesh = meshes[keyOf(rejection.config)];
    mesh.candidates += rejection.count;
    if (!mesh.nearest ||
        std::pair(rank(rejection.reason), value(rejection)) <
            std::pair(rank(mesh.nearest->reason), value(*mesh.nearest)))
      mesh.nearest = &rejection;
  }
  for (const PlannedCandidate &plan : outcome.result.plans)
    meshes.erase(keyOf(plan.config));
  std::vector<RejectedMesh> list;
  list.reserve(meshes.size());
  for (const auto &[key, mesh] : meshes)
    list.push_back(mesh);
  // The meshes that came nearest to a plan come first.
  std::ranges::stable_sort(list, {}, [&](const RejectedMesh &mesh) {
    return std::pair(rank(mesh.nearest->reason), value(*mesh.nearest));
  });
  return list;
}

std::string reasonText(const RejectedMesh &mesh, const PlanOutcome &outcome) {
  const Rejection &rejection = *mesh.nearest;
  switch (rejection.reason) {
  case Rejection::Reason::budget:
    return "not reached in the time given; no plan is faster than " +
           timeText(rejection.bound);
  case Rejection::Reason::bound:
    return "no plan is faster than " + timeText(rejection.bound);
  case Rejection::Reason::memory:
  case Rejection::Reason::host: {
    bool onHost = rejection.reason == Rejection::Reason::host;
    const planner::Machine &machine = outcome.problem->machine;
    planner::Bytes limit =
        onHost ? hostShareOf(machine, outcome.problem->options.devices)
               : machine.device.memory;
    // The search minimizes device memory, so another plan may need less host
    // memory.
    return (rejection.isLowerBound ? "needs at least "
            : onHost               ? "the fastest plan for the device needs "
                                   : "the smallest plan needs ") +
           gibText(rejection.needed) + " of " + gibText(limit) + " GiB" +
           (onHost ? " of the host's" : "");
  }
  case Rejection::Reason::pins:
    return rejection.detail.empty() ? nothingLegalText(outcome)
                                    : rejection.detail;
  case Rejection::Reason::divisor:
    return rejection.detail;
  }
  return "";
}

bool nothingIsLegal(const PlanOutcome &outcome) {
  return !outcome.result.rejections.empty() &&
         std::ranges::all_of(
             outcome.result.rejections, [](const Rejection &rejection) {
               return rejection.reason == Rejection::Reason::pins;
             });
}

std::string nothingLegalText(const PlanOutcome &outcome) {
  if (!outcome.asked.pins.empty())
    return "no plan obeys the pins";
  return "no legal plan with --splits " + splitsText(outcome.asked.splits);
}

} // namespace mtplan::tools

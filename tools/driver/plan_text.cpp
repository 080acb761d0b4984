//===- plan_text.cpp - Plans and rejections as text -----------------------===//

#include "tools/driver/plan_text.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "planner/integers.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::at;
using planner::Layout;
using planner::Parallelism;
using planner::PlannedCandidate;
using planner::Rejection;
using planner::Strategy;

namespace {

std::string choiceText(const planner::Op &op, int choice) {
  if (choice > planner::kLinear)
    return op.factors[at(choice)].name;
  int group = planner::kLinear - choice;
  return group == 0 ? "partial" : "partial." + std::to_string(group);
}

class Cursor {
public:
  explicit Cursor(const std::string &whole) : text(whole) {}

  bool take(std::string_view word) {
    if (text.compare(next, word.size(), word) != 0)
      return false;
    next += word.size();
    return true;
  }
  /// Reads up to the first character of `stops`, or to the end.
  std::string upTo(std::string_view stops) {
    std::size_t end = std::min(text.find_first_of(stops, next), text.size());
    std::string word = text.substr(next, end - next);
    next = end;
    return word;
  }
  bool atEnd() const { return next == text.size(); }

private:
  const std::string &text;
  std::size_t next = 0;
};

// Orders rejections by how near the candidates came to a plan.
std::pair<std::ptrdiff_t, double> distanceOf(const Rejection &rejection) {
  using Reason = Rejection::Reason;
  constexpr Reason kNearestFirst[] = {Reason::budget, Reason::bound,
                                      Reason::memory, Reason::host,
                                      Reason::pins,   Reason::divisor};
  const Reason reason = rejection.reason;
  const bool isTime = reason == Reason::bound || reason == Reason::budget;
  return {std::ranges::find(kNearestFirst, reason) - kNearestFirst,
          isTime ? rejection.bound.value : rejection.needed.value};
}

} // namespace

std::string meshText(const Parallelism &config) {
  std::string text;
  auto add = [&](const char *axis, int ranks) {
    if (ranks > 1)
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis, ranks);
  };
  add("dp", config.dp);
  if (config.ep > 1)
    text += fmt::format(" (ep {})", config.ep);
  add("tp", config.tp);
  if (config.tp2 > 1)
    text += fmt::format(" ({} x {})", config.tp / config.tp2, config.tp2);
  add("pp", config.pp);
  add("cp", config.cp);
  return text.empty() ? "one GPU" : text;
}

std::string batchText(const Parallelism &config) {
  return fmt::format("micro-batch {} x {}", config.microBatch,
                     config.microBatches());
}

std::string choicesText(const Parallelism &config) {
  std::string text;
  auto add = [&](const std::string &choice) {
    text += (text.empty() ? "" : ", ") + choice;
  };
  if (config.pp > 1) {
    add(nameOf(config.schedule));
    if (config.virtualStages > 1)
      text += fmt::format(" x{}", config.virtualStages);
    auto [least, most] = std::ranges::minmax(config.layers);
    if (least != most)
      add(fmt::format("{} to {} layers a part", least, most));
  }
  if (config.zeroStage > 0) {
    add(fmt::format("ZeRO {}", config.zeroStage));
    if (config.zeroRanks < config.dp)
      text += fmt::format(" over {}", config.zeroRanks);
  }
  if (config.tiles > 1)
    add(fmt::format("weights in {} tiles", config.tiles));
  if (config.recompute != planner::Recompute::none)
    add(std::string(nameOf(config.recompute)) + " recompute");
  if (config.recompute == planner::Recompute::full &&
      config.recomputeLayers > 0)
    text += fmt::format(" of {} layer{} a part", config.recomputeLayers,
                        config.recomputeLayers == 1 ? "" : "s");
  if (config.offload != planner::Offload::none)
    add(std::string(nameOf(config.offload)) + " on the host");
  return text;
}

std::string candidateText(const PlannedCandidate &plan) {
  std::string choices = choicesText(plan.config);
  return fmt::format("{}, micro-batch {}{}{}, {} of {} GiB",
                     meshText(plan.config), plan.config.microBatch,
                     choices.empty() ? "" : ", ", choices,
                     gibText(plan.memory.total()), gibText(plan.memory.limit)) +
         (plan.fits ? ", " + timeText(plan.time.step) + " a step" : "");
}

std::string splitsText(const std::vector<planner::Split> &splits) {
  std::string text;
  for (planner::Split split : splits)
    text += (text.empty() ? "" : ",") + std::string(nameOf(split));
  return text;
}

std::string strategyText(const planner::Op &op, const Strategy &strategy,
                         const planner::Mesh &mesh) {
  std::string text;
  for (std::size_t axis = 0; axis < strategy.axes.size(); ++axis)
    if (strategy.axes[axis] != planner::kReplicated)
      text += (text.empty() ? "" : " ") + mesh.axes[axis].name + '=' +
              choiceText(op, strategy.axes[axis]);
  return text;
}

// Compares `text` with the text of each strategy of the operator, which has
// only a few strategies.
std::optional<Strategy>
readStrategy(const std::string &text, const planner::Op &op,
             const planner::Mesh &mesh,
             const std::vector<planner::AxisRule> &rules, std::string &error) {
  constexpr std::size_t kMostListed = 8;
  std::string legal;
  std::size_t listed = 0;
  std::vector<planner::AxisRule> all = rules;
  all.back().allowReplicated = true;
  for (const Strategy &strategy : planner::strategiesOf(op, mesh, all)) {
    std::string one = strategyText(op, strategy, mesh);
    if (one == text)
      return strategy;
    if (listed++ < kMostListed)
      legal += (legal.empty() ? "\"" : ", \"") + one + '"';
  }
  if (listed > kMostListed)
    legal += " and " + std::to_string(listed - kMostListed) + " more";
  error = "is \"" + text + "\"; may be " + legal;
  return std::nullopt;
}

std::optional<Layout> readLayout(const std::string &text,
                                 const std::vector<std::int64_t> &shape,
                                 const planner::Mesh &mesh,
                                 std::string &error) {
  Layout layout;
  std::vector<bool> used(mesh.axes.size(), false);
  auto fail = [&](const std::string &what) {
    error = "is \"" + text + "\", " + what;
    return std::nullopt;
  };
  auto axisOf = [&](const std::string &name) {
    int axis = mesh.find(name);
    if (axis < 0 || used[at(axis)])
      return -1;
    used[at(axis)] = true;
    return axis;
  };
  Cursor cursor(text);
  if (!cursor.take("["))
    return fail("which is no layout such as [dp, -, tp]");
  while (!cursor.take("]")) {
    if (!layout.dims.empty() && !cursor.take(", "))
      return fail("which is no layout such as [dp, -, tp]");
    layout.dims.emplace_back();
    if (cursor.take("-"))
      continue;
    do {
      std::string name = cursor.upTo("+,]");
      int axis = axisOf(name);
      if (axis < 0)
        return fail("where \"" + name +
                    "\" is no axis of the mesh, or one that is there already");
      layout.dims.back().push_back(axis);
    } while (cursor.take("+"));
  }
  if (cursor.take(" partial={"))
    do {
      std::string name = cursor.upTo(":");
      int axis = axisOf(name);
      bool isMax = cursor.take(":max");
      if (axis < 0 || (!isMax && !cursor.take(":sum")))
        return fail("where \"" + name + "\" is no axis with :sum or :max");
      layout.partial.push_back(axis);
      layout.reduction =
          isMax ? planner::Reduction::max : planner::Reduction::sum;
    } while (cursor.take(", "));
  if (!layout.partial.empty() && !cursor.take("}"))
    return fail("which is no layout such as [dp, -, tp]");
  if (!cursor.atEnd())
    return fail("which goes on after the layout");
  if (layout.dims.size() != shape.size())
    return fail("which has " + std::to_string(layout.dims.size()) +
                " dimensions, not " + std::to_string(shape.size()));
  if (!planner::divides(shape, layout, mesh))
    return fail("which does not divide its shape");
  return layout;
}

std::vector<RejectedMesh> rejectedMeshes(const PlanOutcome &outcome) {
  auto keyOf = [](const Parallelism &config) {
    return std::tuple(config.tp, config.tp2, config.pp, config.cp, config.dp);
  };
  std::map<std::tuple<int, int, int, int, int>, RejectedMesh> meshes;
  for (const Rejection &rejection : outcome.result.rejections) {
    RejectedMesh &mesh = meshes[keyOf(rejection.config)];
    mesh.candidates += rejection.count;
    if (!mesh.nearest || distanceOf(rejection) < distanceOf(*mesh.nearest))
      mesh.nearest = &rejection;
  }
  for (const PlannedCandidate &plan : outcome.result.plans)
    meshes.erase(keyOf(plan.config));
  std::vector<RejectedMesh> list;
  list.reserve(meshes.size());
  for (const auto &[key, mesh] : meshes)
    list.push_back(mesh);
  std::ranges::stable_sort(list, {}, [](const RejectedMesh &mesh) {
    return distanceOf(*mesh.nearest);
  });
  return list;
}

std::string reasonText(const RejectedMesh &mesh, const PlanOutcome &outcome) {
  const Rejection &rejection = *mesh.nearest;
  switch (rejection.reason) {
  case Rejection::Reason::budget:
    return (rejection.detail.empty() ? "not reached in the time given"
                                     : rejection.detail) +
           "; no plan is faster than " + timeText(rejection.bound);
  case Rejection::Reason::bound:
    return "no plan is faster than " + timeText(rejection.bound);
  case Rejection::Reason::memory:
  case Rejection::Reason::host: {
    bool onHost = rejection.reason == Rejection::Reason::host;
    const planner::Machine &machine = outcome.problem->machine;
    planner::Bytes limit =
        onHost ? hostShareOf(machine, outcome.problem->options.devices)
               : machine.device.memory - outcome.keptFree;
    // For each candidate, the search compares only the plan that is fastest on
    // the device with the host's memory. A slower plan may need less.
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
  std::string text =
      "no legal plan with --splits " + splitsText(outcome.asked.splits);
  std::string collectives;
  for (planner::StepKind kind : outcome.asked.collectives.only)
    collectives += (collectives.empty() ? " and --collectives " : ",") +
                   std::string(nameOf(kind));
  return text + collectives;
}

} // namespace mtplan::tools

//===- tensor_splits.cpp - Tensor splits that trainers support ------------===//

#include "tools/report/tensor_splits.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/integers.h"
#include "planner/search/space/setting.h"

namespace mtplan::tools {

using planner::at;

namespace {

struct ExpectedSplit {
  std::string_view tail; ///< end of the operator's label
  std::string_view word;
};

constexpr ExpectedSplit kExpected[] = {
    {".attn.q", "column"},  {".attn.k", "column"},   {".attn.v", "column"},
    {".attn.core", "head"}, {".attn.proj", "row"},   {".mlp.gate", "column"},
    {".mlp.up", "column"},  {".mlp.fc1", "column"},  {".mlp.down", "row"},
    {".mlp.fc2", "row"},    {".moe.gate", "column"}, {".moe.up", "column"},
    {".moe.down", "row"},
};

constexpr std::array<std::string_view, 4> kSplits = {"column", "row", "head",
                                                     "vocab"};

// Returns the word for the split that trainers use over the tensor axis, or ""
// if any split is fine.
std::string_view expectedWord(const planner::Op &op, bool sequence) {
  for (const ExpectedSplit &expected : kExpected)
    if (op.name.ends_with(expected.tail))
      return expected.word;
  if (op.name == "wte" || op.name == "lm_head")
    return "vocab";
  const bool isNorm = op.kind == "layer_norm" || op.kind == "rms_norm";
  if (isNorm || op.kind == "add" || op.kind == "dropout")
    return sequence ? "sequence" : "replicated";
  return "";
}

} // namespace

std::string nameOfLayers(const std::string &label, int first, int count) {
  std::size_t star = label.find('*');
  if (star == label.npos)
    return label;
  std::string copies = std::to_string(first);
  if (count > 1)
    copies += ".." + std::to_string(first + count - 1);
  return label.substr(0, star) + copies + label.substr(star + 1);
}

std::string twoAxesText(const std::string &trainer,
                        const planner::Parallelism &config) {
  return fmt::format("{} has one tensor axis, but the plan has two of {} and "
                     "{} ranks; nearest: --tp-axes 1",
                     trainer, config.tp / config.tp2, config.tp2);
}

std::vector<std::string> unlikeMegatronSplits(const PlanOutcome &outcome,
                                              const std::string &trainer,
                                              bool sequence) {
  const Problem &problem = *outcome.problem;
  const planner::PlannedCandidate &plan = *outcome.best();
  if (plan.config.tp == 1)
    return {};
  if (plan.config.tp2 > 1)
    return {twoAxesText(trainer, plan.config)};
  const int axis = planner::tensorAxisOf(planner::meshOf(plan.config));
  const bool wholeKeys =
      problem.model.kvHeads && *problem.model.kvHeads % plan.config.tp != 0;
  std::vector<std::string> others, pins;
  bool otherSplits = false;
  for (const planner::SegmentPlan &run : plan.plans()) {
    const planner::SegmentGraph &segment =
        problem.graph.segments[at(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const planner::Op &op = segment.ops[o];
      const std::string_view expected = expectedWord(op, sequence);
      const std::string word = planner::wordOf(op, run.strategies[o], axis);
      const bool isSum = expected == "replicated" && word == "partial";
      const bool isWhole =
          wholeKeys && word == "replicated" &&
          (op.name.ends_with(".attn.k") || op.name.ends_with(".attn.v"));
      if (op.phase != planner::Phase::forward || expected.empty() ||
          word == expected || isSum || isWhole)
        continue;
      others.push_back(fmt::format("{} is {}, not {}",
                                   nameOfLayers(op.name, run.first, run.count),
                                   word, expected));
      const bool isMegatrons =
          std::ranges::find(kSplits, word) != kSplits.end();
      otherSplits |= !sequence && !isMegatrons;
      std::string pin = fmt::format("--pin '{}={}'", op.name, expected);
      if ((sequence || isMegatrons) &&
          std::ranges::find(pins, pin) == pins.end())
        pins.push_back(std::move(pin));
    }
  }
  if (others.empty())
    return {};
  if (otherSplits)
    pins.insert(pins.begin(),
                fmt::format("--splits {}", fmt::join(kSplits, ",")));
  constexpr std::size_t kMostShown = 2;
  const std::size_t shown = std::min(others.size(), kMostShown);
  return {fmt::format(
      "the {} tensor ranks work otherwise than {}'s: {}{}; nearest: {}",
      plan.config.tp, trainer,
      fmt::join(others.begin(),
                others.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      others.size() > shown ? fmt::format(" and {} more", others.size() - shown)
                            : "",
      fmt::join(pins, " "))};
}

} // namespace mtplan::tools

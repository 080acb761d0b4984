//===- repeated_work.cpp - Work that tensor ranks repeat ------------------===//

#include "tools/driver/repeated_work.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "planner/integers.h"
#include "planner/search/space/pipeline_parts.h"

namespace mtplan::tools {

using planner::at;
using planner::Split;

namespace {

constexpr double kMost = 0.5;

/// Counts the flops of all products, and of products that every tensor-parallel
/// rank repeats.
struct Work {
  double all = 0.0, repeated = 0.0;
  bool isMostlyRepeated() const { return repeated > kMost * all; }
};

const char *wordOf(Split split) {
  switch (split) {
  case Split::sequence:
    return "sequence";
  case Split::head:
    return "heads";
  case Split::vocab:
    return "vocabulary";
  case Split::expert:
    return "experts";
  case Split::batch:
  case Split::column:
  case Split::row:
  case Split::feature:
  case Split::hidden:
    break;
  }
  return "features";
}

class RepeatedWork {
public:
  explicit RepeatedWork(const PlanOutcome &outcome)
      : asked(outcome.asked), problem(*outcome.problem), plan(*outcome.best()),
        options(problem.options) {}

  std::string note() {
    const int tp = plan.config.tp;
    const Work work = workOfPlan();
    if (tp == 1 || !work.isMostlyRepeated())
      return "";
    const std::string who = tp < options.devices
                                ? fmt::format("every {} GPUs (tp)", tp)
                            : tp == 2 ? "both GPUs"
                                      : fmt::format("all {} GPUs", tp);
    const double share = work.repeated / work.all;
    const std::string fact =
        share > 0.999
            ? fmt::format("{} do the same work", who)
            : fmt::format("{} repeat {:.0f} % of the work", who, 100 * share);
    if (options.pins)
      return fact + ": by --pin, or because nothing there divides";
    if (could(options.devices))
      return fact + fmt::format(": sharing it would take longer, or more "
                                "memory than there is; {} of them may do as "
                                "well",
                                options.devices / tp);
    return fact + fmt::format(": tp {} divides none of {}", tp, sizesText()) +
           remedies();
  }

private:
  bool maySplit(const planner::Factor &factor) const {
    return factor.divisible &&
           std::ranges::find(options.tensorSplits, factor.split) !=
               options.tensorSplits.end();
  }

  std::int64_t samples(std::int64_t dp) const {
    return options.microBatch.value_or(options.globalBatch / dp);
  }

  // Counts the plan's work, and collects the factor sizes of repeated products
  // in `sizes`.
  Work workOfPlan() {
    const int tensorAxis = planner::tensorAxisOf(planner::meshOf(plan.config));
    Work work;
    for (const planner::SegmentPlan &run : plan.plans()) {
      const auto &ops = problem.graph.segments[at(run.segment)].ops;
      for (std::size_t o = 0; o < ops.size(); ++o) {
        if (ops[o].opClass == planner::OpClass::memory)
          continue;
        const double flops = ops[o].flops.value * run.count;
        work.all += flops;
        const std::vector<int> &choices = run.strategies[o].axes;
        if (std::any_of(
                choices.begin() + tensorAxis, choices.end(),
                [](int choice) { return choice != planner::kReplicated; }))
          continue;
        work.repeated += flops;
        for (const planner::Factor &factor : ops[o].factors)
          if (maySplit(factor) && factor.split != Split::batch)
            sizes[wordOf(factor.split)].insert(factor.size);
      }
    }
    return work;
  }

  std::string sizesText() const {
    std::string text;
    if (std::ranges::find(options.tensorSplits, Split::batch) !=
        options.tensorSplits.end())
      text =
          options.microBatch
              ? fmt::format("micro-batch {}", *options.microBatch)
          : plan.config.dp == 1
              ? fmt::format("global batch {}", options.globalBatch)
              : fmt::format("{} samples of a replica", samples(plan.config.dp));
    for (const auto &[word, found] : sizes)
      text += fmt::format(
          "{}{} {}", text.empty() ? "" : ", ", word,
          planner::listText(std::vector(found.begin(), found.end()), "and"));
    return text.empty() ? "what --splits allows" : text;
  }

  bool sharesMost(std::int64_t dp, std::int64_t tp) const {
    Work work;
    for (const planner::SegmentGraph &segment : problem.graph.segments)
      for (const planner::Op &op : segment.ops) {
        if (op.opClass == planner::OpClass::memory)
          continue;
        const double flops = op.flops.value * segment.repeat;
        work.all += flops;
        if (std::ranges::none_of(op.factors, [&](const auto &factor) {
              return maySplit(factor) &&
                     (factor.split == Split::batch ? samples(dp)
                                                   : factor.size) %
                             tp ==
                         0;
            }))
          work.repeated += flops;
      }
    return !work.isMostlyRepeated();
  }

  // Returns whether these choices of pp (`stages`) and cp (`contexts`) allow a
  // mesh on which most products can be split.
  bool couldShare(std::int64_t gpus, const planner::Choices<int> &stages,
                  const planner::Choices<int> &contexts) const {
    using planner::divisorsOf;
    const int layers = planner::layersOf(problem.graph);
    for (const std::int64_t tp : divisorsOf(gpus)) {
      if (options.tp && tp != *options.tp)
        continue;
      for (const std::int64_t pp : divisorsOf(gpus / tp)) {
        if (!stages.allows(static_cast<int>(pp)) || pp > layers)
          continue;
        for (const std::int64_t cp : divisorsOf(gpus / tp / pp)) {
          const std::int64_t dp = gpus / tp / pp / cp;
          if (contexts.allows(static_cast<int>(cp)) &&
              (cp == 1 || problem.graph.sequence % (2 * cp) == 0) &&
              (!options.dp || dp == *options.dp) &&
              options.globalBatch % (dp * options.microBatch.value_or(1)) ==
                  0 &&
              (tp == 1 || sharesMost(dp, tp)))
            return true;
        }
      }
    }
    return false;
  }

  bool could(std::int64_t gpus) const {
    return couldShare(gpus, options.pp, options.cp);
  }

  std::string remedies() const {
    const std::int64_t gpus = options.devices;
    // A single GPU is never suggested, because it could not share the work with
    // another rank.
    std::int64_t below = gpus - 1, above = gpus + 1;
    while (below > 1 && !could(below))
      --below;
    while (above <= 2 * gpus && !could(above))
      ++above;
    std::vector<std::int64_t> near;
    if (below > 1)
      near.push_back(below);
    if (above <= 2 * gpus)
      near.push_back(above);
    // --load and --import decide pp and cp, and reject flags for pp and cp.
    const bool mayAdd = asked.load.empty() && asked.importFile.empty();
    const char *flag = mayAdd && couldShare(gpus, {}, options.cp)   ? "--pp any"
                       : mayAdd && couldShare(gpus, options.pp, {}) ? "--cp any"
                                                                    : nullptr;
    if (near.empty())
      return flag ? fmt::format("; with {} they could share it", flag) : "";
    return "; nearest numbers of GPUs that could share it: " +
           planner::listText(near, "and") +
           (flag ? fmt::format(", or {} with {}", gpus, flag) : "");
  }

  const PlanRequest &asked;
  const Problem &problem;
  const planner::PlannedCandidate &plan;
  const planner::SearchOptions &options;
  std::map<std::string, std::set<std::int64_t>>
      sizes; ///< sizes of factors of repeated products, by wordOf()
};

} // namespace

std::string repeatedWorkOf(const PlanOutcome &outcome) {
  return RepeatedWork(outcome).note();
}

} // namespace mtplan::tools

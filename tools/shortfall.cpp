//===- shortfall.cpp - When nothing fits ----------------------------------===//

#include "tools/shortfall.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/how_text.h"
#include "tools/limits.h"
#include "tools/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;

namespace {

std::string planText(const PlannedCandidate &plan) {
  std::string choices = choicesText(plan.how);
  return fmt::format("{}, micro-batch {}{}{}, {} of {} GiB", meshText(plan.how),
                     plan.how.microBatch, choices.empty() ? "" : ", ", choices,
                     gibText(plan.memory.total()), gibText(plan.memory.limit));
}

/// Searches variations of one request.
class Remedies {
public:
  Remedies(const PlanRequest &asked, const Problem &base)
      : request(asked), problem(base) {}

  std::vector<std::string> run() {
    for (std::size_t i = 0; i < request.pins.size(); ++i)
      attempt("without --pin '" + request.pins[i].text + '\'',
              [&](PlanRequest &changed) {
                changed.pins.erase(changed.pins.begin() +
                                   static_cast<std::ptrdiff_t>(i));
              });
    if (request.microBatch)
      attempt("without --micro-batch",
              [](PlanRequest &changed) { changed.microBatch.reset(); });
    if (request.tp || request.dp)
      attempt("without --tp and --dp", [](PlanRequest &changed) {
        changed.tp.reset();
        changed.dp.reset();
      });
    if (!hasDefaultSplits())
      attempt("with every default split",
              [](PlanRequest &changed) { changed.splits = defaultSplits(); });
    if (problem.options.precision == planner::Precision::fp32)
      for (auto half : {planner::Precision::bf16, planner::Precision::fp16})
        if (problem.machine.device.peak(half))
          attempt(fmt::format("--precision {}", nameOf(half)),
                  [&](PlanRequest &changed) { changed.precision = half; });
    moreGpus();
    return std::move(found);
  }

private:
  bool hasDefaultSplits() const {
    for (planner::Split split : defaultSplits())
      if (std::ranges::find(request.splits, split) == request.splits.end())
        return false;
    return true;
  }

  // The fewest that do; with threes, as heads come in threes too.
  void moreGpus() {
    for (int times : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      std::int64_t gpus = std::int64_t{problem.options.devices} * times;
      bool fits =
          attempt(fmt::format("--gpus {}{}", gpus,
                              request.dp || request.tp ? " without --tp and "
                                                         "--dp"
                                                       : ""),
                  [&](PlanRequest &changed) {
                    changed.gpus = gpus;
                    changed.tp.reset();
                    changed.dp.reset();
                  });
      if (fits)
        return;
    }
  }

  template <typename Change>
  bool attempt(const std::string &what, Change change) {
    PlanRequest changed = request;
    change(changed);
    changed.top = 1;
    PlanOutcome outcome = plan(changed);
    if (!outcome.best())
      return false;
    found.push_back(what + " fits: " + planText(*outcome.best()));
    return true;
  }

  const PlanRequest &request;
  const Problem &problem;
  std::vector<std::string> found;
};

} // namespace

std::vector<std::string> remediesOf(const PlanRequest &request,
                                    const Problem &problem) {
  return Remedies(request, problem).run();
}

std::string shortfallOf(const PlanOutcome &outcome,
                        const std::vector<std::string> &remedies,
                        const ScreenStyle &style) {
  const Problem &problem = *outcome.problem;
  std::string text = headingOf(problem, style);
  for (const std::string &note : problem.notes)
    text += "note: " + note + '\n';
  bool pinned =
      !outcome.result.rejections.empty() &&
      std::ranges::all_of(outcome.result.rejections, [](const auto &rejection) {
        return rejection.reason == planner::Rejection::Reason::pins;
      });
  text += fmt::format("{}, of {} candidate{}.\n",
                      pinned ? "No plan obeys the pins" : "Nothing fits",
                      outcome.result.candidates,
                      outcome.result.candidates == 1 ? "" : "s");
  if (const auto &nearest = outcome.result.nearest)
    text +=
        "Nearest: " + planText(*nearest) + '\n' + memoryText(nearest->memory);
  text += rejectedText(outcome);
  if (remedies.empty())
    return text + "Nothing that was tried would fit.\n";
  text += "What would fit:\n";
  for (const std::string &remedy : remedies)
    text += "  " + remedy + '\n';
  return text;
}

} // namespace mtplan::tools

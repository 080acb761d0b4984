//===- shortfall.cpp - When nothing fits ----------------------------------===//

#include "tools/shortfall.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/divisors.h"
#include "planner/search/pins.h"
#include "tools/facts.h"
#include "tools/how_text.h"
#include "tools/limits.h"
#include "tools/objective.h"
#include "tools/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;

namespace {

constexpr std::int64_t kMostStages = 64;

std::string planText(const PlannedCandidate &plan) {
  std::string choices = choicesText(plan.how);
  return fmt::format("{}, micro-batch {}{}{}, {} of {} GiB", meshText(plan.how),
                     plan.how.microBatch, choices.empty() ? "" : ", ", choices,
                     gibText(plan.memory.total()), gibText(plan.memory.limit)) +
         (plan.fits ? ", " + timeText(plan.time.step) + " a step" : "");
}

/// Searches variations of one request.
class Remedies {
public:
  Remedies(const PlanRequest &asked, const PlanOutcome &outcome)
      : request(asked), problem(*outcome.problem),
        illegal(nothingIsLegal(outcome)) {}

  std::vector<std::string> run() {
    for (std::size_t i = 0; i < request.pins.size(); ++i)
      attempt("without --pin '" + request.pins[i].text + '\'',
              [&](PlanRequest &changed) {
                changed.pins.erase(changed.pins.begin() +
                                   static_cast<std::ptrdiff_t>(i));
              });
    if (illegal && request.pins.empty()) {
      moreSplits();
      repeatedOperator();
    }
    smallerMicroBatch();
    moreZero();
    moreRecompute();
    offloading();
    moreTiles();
    morePipeline();
    moreTensorRanks();
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
    if (found.empty())
      everything();
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

  template <typename Value>
  static Value largest(const planner::Choices<Value> &choices, Value all) {
    Value most{};
    for (Value one : choices.only)
      most = std::max(most, one);
    return choices.only.empty() ? all : most;
  }

  // The first that does.
  void moreSplits() {
    for (planner::Split split : defaultSplits()) {
      if (std::ranges::find(request.splits, split) != request.splits.end())
        continue;
      std::vector<planner::Split> splits = request.splits;
      splits.push_back(split);
      if (attempt("--splits " + splitsText(splits),
                  [&](PlanRequest &changed) { changed.splits = splits; }))
        return;
    }
  }

  // Products are repeated on every tensor rank only where a pin says so: the
  // first for which this makes all the rest legal is the one that was not.
  void repeatedOperator() {
    for (const planner::SegmentGraph &segment : problem.graph.segments)
      for (const planner::Op &op : segment.ops) {
        if (op.phase == planner::Phase::backward ||
            op.opClass == planner::OpClass::memory)
          continue;
        std::string pin = op.name + "=replicated";
        std::vector<std::string> errors;
        if (attempt(op.name + " has no legal strategy; --pin '" + pin + '\'',
                    [&](PlanRequest &changed) {
                      changed.pins = planner::parsePins({pin}, errors);
                    }))
          return;
      }
  }

  // The largest that does.
  void smallerMicroBatch() {
    if (!request.microBatch)
      return;
    std::vector<std::int64_t> smaller =
        planner::divisorsOf(std::max<std::int64_t>(*request.microBatch, 1));
    for (auto b = smaller.rbegin(); b != smaller.rend(); ++b)
      if (*b < *request.microBatch &&
          attempt(fmt::format("--micro-batch {}", *b),
                  [&](PlanRequest &changed) { changed.microBatch = *b; }))
        return;
  }

  // The lowest stage that does.
  void moreZero() {
    for (int stage = largest(request.zeroStage, 3) + 1; stage <= 3; ++stage)
      if (attempt(fmt::format("--zero {}", stage), [&](PlanRequest &changed) {
            changed.zeroStage.only = {stage};
          }))
        return;
  }

  // What is computed again least first.
  void moreRecompute() {
    using planner::Recompute;
    for (Recompute recompute : {Recompute::selective, Recompute::full})
      if (recompute > largest(request.recompute, Recompute::full) &&
          attempt(fmt::format("--recompute {}", nameOf(recompute)),
                  [&](PlanRequest &changed) {
                    changed.recompute.only = {recompute};
                  }))
        return;
  }

  void offloading() {
    using planner::Offload;
    if (problem.machine.host && !request.offload.allows(Offload::optimizer))
      attempt("--offload optimizer", [](PlanRequest &changed) {
        changed.offload.only = {Offload::optimizer};
      });
  }

  // Only where nothing else does: the largest weight does not fit whole.
  void moreTiles() {
    if (!found.empty() || !request.tiles.allows(1) ||
        request.tiles.only.empty())
      return;
    attempt("--zero 3 --tiles any", [](PlanRequest &changed) {
      changed.zeroStage.only = {3};
      changed.tiles.only.clear();
    });
  }

  // The fewest stages that do; replicas make room for them.
  void morePipeline() {
    for (std::int64_t pp : planner::divisorsOf(problem.options.devices))
      if (pp > largest(request.pp, problem.options.devices) &&
          pp <= problem.model.layers && pp <= kMostStages &&
          takesTheirPlace(pp / largest(request.pp, 1), "--pp", pp,
                          [&](PlanRequest &changed) {
                            changed.pp.only = {static_cast<int>(pp)};
                          }))
        return;
  }

  // Where tp is fixed: the fewest ranks that do.
  void moreTensorRanks() {
    if (!request.tp)
      return;
    for (std::int64_t tp : planner::divisorsOf(problem.options.devices))
      if (tp > *request.tp && tp % *request.tp == 0 &&
          takesTheirPlace(tp / *request.tp, "--tp", tp,
                          [&](PlanRequest &changed) { changed.tp = tp; }))
        return;
  }

  // A degree that is `times` as large, with as many times fewer replicas if
  // their number is fixed.
  template <typename Change>
  bool takesTheirPlace(std::int64_t times, const char *flag, std::int64_t value,
                       Change change) {
    std::string what = fmt::format("{} {}", flag, value);
    if (!request.dp)
      return attempt(what, change);
    if (*request.dp % times != 0)
      return false;
    return attempt(what + fmt::format(" --dp {}", *request.dp / times),
                   [&](PlanRequest &changed) {
                     change(changed);
                     changed.dp = *request.dp / times;
                   });
  }

  // No one change does: all of them together.
  void everything() {
    attempt("--zero any --recompute any", [](PlanRequest &changed) {
      changed.zeroStage.only.clear();
      changed.recompute.only.clear();
    });
    if (!found.empty())
      return;
    if (problem.machine.host)
      attempt("--zero any --recompute any --offload any",
              [](PlanRequest &changed) {
                changed.zeroStage.only.clear();
                changed.recompute.only.clear();
                changed.offload.only.clear();
              });
    if (!found.empty())
      return;
    attempt(fmt::format("--pp any --zero any --recompute any{}",
                        request.dp ? " without --dp" : ""),
            [](PlanRequest &changed) {
              changed.pp.only.clear();
              changed.zeroStage.only.clear();
              changed.recompute.only.clear();
              changed.dp.reset();
            });
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
  bool illegal; ///< whatever is spent: no strategies go together
  std::vector<std::string> found;
};

// What was found takes longer than was asked for, or no mesh can do without,
// whatever its memory.
bool nothingIsFast(const PlanOutcome &outcome) {
  using Reason = planner::Rejection::Reason;
  const auto &nearest = outcome.result.nearest;
  if (nearest && nearest->fits)
    return true;
  bool anySlow = false;
  for (const RejectedMesh &mesh : rejectedMeshes(outcome)) {
    const Reason reason = mesh.nearest->reason;
    if (reason != Reason::bound && reason != Reason::divisor)
      return false;
    anySlow = anySlow || reason == Reason::bound;
  }
  return anySlow;
}

} // namespace

std::vector<std::string> remediesOf(const PlanRequest &request,
                                    const PlanOutcome &outcome) {
  return Remedies(request, outcome).run();
}

std::string shortfallOf(const PlanOutcome &outcome,
                        const std::vector<std::string> &remedies,
                        const ScreenStyle &style) {
  const Problem &problem = *outcome.problem;
  std::string text = headingOf(problem, style);
  for (const std::string &note : problem.notes)
    text += "note: " + note + '\n';
  const bool slow = nothingIsFast(outcome);
  const auto &most = outcome.asked.maxStepTime;
  text += fmt::format(
      "{}, of {} candidate{}.\n",
      slow && most ? "No plan is fast enough for a step in " + timeText(*most)
      : nothingIsLegal(outcome) ? "N" + nothingLegalText(outcome).substr(1)
                                : "Nothing fits",
      outcome.result.candidates, outcome.result.candidates == 1 ? "" : "s");
  // What takes the least memory is no nearer to a time.
  if (const auto &nearest = outcome.result.nearest;
      nearest && (nearest->fits || !slow))
    text += "Nearest: " + planText(*nearest) + '\n' +
            memoryText(nearest->memory) + marginsText(problem.machine.device);
  text += objectiveText(outcome);
  text += rejectedText(outcome);
  if (remedies.empty())
    return text + "Nothing that was tried would fit.\n";
  text += "What would fit:\n";
  for (const std::string &remedy : remedies)
    text += "  " + remedy + '\n';
  return text;
}

} // namespace mtplan::tools

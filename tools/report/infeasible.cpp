//===- infeasible.cpp - The report when nothing fits ----------------------===//

#include "tools/report/infeasible.h"

#include <fmt/format.h>

#include "tools/driver/parallelism_text.h"
#include "tools/driver/rejections.h"
#include "tools/report/objective_text.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

namespace {

// True if time rules out every mesh: the plan found is slower than asked for,
// or the bounds of all meshes are, whatever their memory.
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

std::string infeasibleText(const PlanOutcome &outcome,
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
  // The plan with the least memory tells nothing about time.
  if (const auto &nearest = outcome.result.nearest;
      nearest && (nearest->fits || !slow))
    text += "Nearest: " + candidateText(*nearest) + '\n' +
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

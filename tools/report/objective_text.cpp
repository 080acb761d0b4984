//===- objective_text.cpp - The result of an objective --------------------===//

#include "tools/report/objective_text.h"

#include <fmt/format.h>

#include "tools/text/units_text.h"

namespace mtplan::tools {

std::string objectiveText(const PlanOutcome &outcome) {
  if (outcome.asked.objective == Objective::stepTime)
    return "";
  const Problem &problem = *outcome.problem;
  std::string within =
      outcome.asked.maxStepTime
          ? " for a step within " + timeText(*outcome.asked.maxStepTime)
          : "";
  std::string text;
  if (outcome.asked.objective == Objective::gpus)
    text = outcome.best()
               ? fmt::format("GPUs  {} are the fewest{}, of divisors of a "
                             "node and whole nodes\n",
                             problem.options.devices, within)
               : fmt::format("GPUs  no number tried is enough{}\n", within);
  else if (outcome.best())
    text = fmt::format("Least memory  {} of a GPU{}\n",
                       preciseGibText(outcome.best()->memory.total()), within);
  else
    return "";
  // The last attempt came nearest; a bisection of memory shows no other.
  const std::size_t kMostLines =
      outcome.asked.objective == Objective::memory ? 1 : 8;
  std::size_t count = outcome.attempts.size();
  std::size_t first = count > kMostLines ? count - kMostLines : 0;
  if (first > 0 && kMostLines > 1)
    text += fmt::format("  {} smaller ones failed before\n", first);
  for (std::size_t i = first; i < count; ++i)
    text += "  " + outcome.attempts[i].what + ": " +
            outcome.attempts[i].failure + '\n';
  return text;
}

} // namespace mtplan::tools

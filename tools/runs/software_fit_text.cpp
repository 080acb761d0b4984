//===- software_fit_text.cpp - Fitted figures as a table ------------------===//

#include <fmt/format.h>

#include "tools/runs/software_fit.h"
#include "tools/text/table.h"

namespace mtplan::tools {

static std::string deviationText(const FittedSoftwareFigure &found,
                                 const SoftwareFigure &figure) {
  constexpr double kPoor = 0.8; // of the deviation without any run
  const std::string text = fmt::format("+- {:.0f} %", 100 * found.deviation);
  return found.deviation > kPoor * figure.width ? text + ", poorly determined"
                                                : text;
}

std::string figuresText(const SoftwareFit &fit) {
  Table figures;
  for (std::size_t f = 0; f < fit.figures.size(); ++f) {
    const SoftwareFigure &figure = softwareFigures(fit.quantity)[f];
    const FittedSoftwareFigure &found = fit.figures[f];
    if (found.isDetermined)
      figures.add({figure.name, fmt::format("{:.4g}", found.base), "->",
                   fmt::format("{:.4g}", found.value), figure.unit,
                   deviationText(found, figure)});
  }
  return figures.print("  ");
}

} // namespace mtplan::tools

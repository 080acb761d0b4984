//===- calibrated.cpp - Tables of measured runs ---------------------------===//

#include "tools/run/calibrated.h"

#include <fmt/format.h>

#include "planner/machine/software.h"
#include "runtime/backend/element.h"
#include "runtime/calibration/stopwatch.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using runtime::MeasuredAs;
using runtime::MeasuredRun;

namespace {

std::string whatOf(const MeasuredRun &run) {
  const std::string type = runtime::nameOf(run.type);
  switch (run.as) {
  case MeasuredAs::launches:
    return "a kernel of " + run.what;
  case MeasuredAs::pass:
    return planner::variantName(run.kernel, run.variant) + ' ' + type;
  case MeasuredAs::product:
    return fmt::format("{}{}x{} by {}x{} {}, {}",
                       run.batch > 1 ? fmt::format("{} of ", run.batch) : "",
                       run.m, run.k, run.k, run.n, type, run.what);
  case MeasuredAs::followed:
    return (run.after.empty() ? fmt::format("{}x{} by {}x{} {}", run.m, run.k,
                                            run.k, run.n, type)
                              : run.after + ' ' + type) +
           " and " + planner::variantName(run.kernel, run.variant);
  case MeasuredAs::attention:
    return fmt::format("{} of {} heads, {} positions, {} {}",
                       planner::variantName(run.kernel, run.variant), run.batch,
                       run.m, run.what, type);
  case MeasuredAs::collective:
    return fmt::format("{} {} over {}{}", run.kernel,
                       bytesText({static_cast<double>(run.bytes)}), run.ranks,
                       run.stride > 1 ? fmt::format(", every {}th", run.stride)
                                      : "");
  case MeasuredAs::message:
    return fmt::format("{} {} to rank + {}", run.kernel,
                       bytesText({static_cast<double>(run.bytes)}), run.stride);
  }
  return {};
}

// Returns the rate per second.
std::string rateOf(const MeasuredRun &run) {
  const double seconds = run.timing.seconds;
  if (run.as == MeasuredAs::launches)
    return "";
  if (run.as == MeasuredAs::product ||
      (run.as == MeasuredAs::followed && run.after.empty()))
    return fmt::format("{:.4g} GFLOP/s", 2e-9 * static_cast<double>(run.m) *
                                             static_cast<double>(run.n) *
                                             static_cast<double>(run.k) *
                                             static_cast<double>(run.batch) /
                                             seconds);
  // Attention has two products forward and five backward, over half of the
  // pairs under a causal mask.
  if (run.as == MeasuredAs::attention)
    return fmt::format(
        "{:.4g} GFLOP/s",
        (run.kernel == "attention" ? 4e-9 : 10e-9) * (run.causal ? 0.5 : 1.0) *
            static_cast<double>(run.batch) * static_cast<double>(run.m) *
            static_cast<double>(run.n) * static_cast<double>(run.k) / seconds);
  return fmt::format("{:.4g} GB/s",
                     1e-9 * static_cast<double>(run.bytes + run.bytesAfter) /
                         seconds);
}

} // namespace

std::string partText(const runtime::CalibrationPart &part, double seconds) {
  using runtime::Stopwatch;
  std::string text;
  if (part.first == 1)
    text =
        fmt::format("measuring {} runs in about {}, each at least {} times "
                    "whatever that takes\n",
                    part.runs, timeText({seconds}), Stopwatch::kFewestSamples);
  return text +
         (part.first == part.last
              ? fmt::format("measuring run {} of {}: {}\n", part.first,
                            part.runs, part.what)
              : fmt::format("measuring runs {} to {} of {}: {}\n", part.first,
                            part.last, part.runs, part.what));
}

std::string lateText(double took, double seconds) {
  constexpr double kAbout = 1.1;
  if (took <= kAbout * seconds)
    return "";
  return fmt::format("note: measuring took {}, not the {} of --seconds: every "
                     "run is timed at least {} times, beside two runs before\n",
                     timeText({took}), timeText({seconds}),
                     runtime::Stopwatch::kFewestSamples);
}

std::string tableOf(const std::vector<MeasuredRun> &runs,
                    const Calibrated &calibrated) {
  Table table;
  table.add({"what", "measured", "middle half", "rate",
             calibrated.before.name + " says", "the file says"});
  for (const MeasuredRun &run : runs) {
    const runtime::Timing &timing = run.timing;
    table.add({whatOf(run), timeText({timing.seconds}),
               percentText((timing.high - timing.low) / timing.seconds),
               rateOf(run),
               timeText({predictedSeconds(run, calibrated.before)}),
               timeText({predictedSeconds(run, calibrated.fit.machine)})});
  }
  return table.print("  ");
}

} // namespace mtplan::tools

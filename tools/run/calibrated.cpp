//===- calibrated.cpp - Predictions and tables of measured runs -----------===//

#include <fmt/format.h>

#include "planner/cost/kernel_cost.h"
#include "planner/machine/software_json.h"
#include "runtime/backend/element.h"
#include "runtime/calibration/calibration.h"
#include "tools/run/calibrate.h"
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
  // Attention has two products forward and five backward. A causal mask halves
  // the query-key pairs.
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

MeasuredRun producerOf(const MeasuredRun &both) {
  MeasuredRun producer = both;
  producer.as = both.after.empty() ? MeasuredAs::product : MeasuredAs::pass;
  producer.kernel = both.after;
  producer.variant.clear();
  producer.bytes = both.bytesAfter;
  return producer;
}

// Returns the time that the consumer adds to the producer's. If the device
// fuses the pair, the consumer moves its tensor once. Otherwise the consumer is
// a separate launch, and moves two or three tensors.
double fusedConsumerSeconds(const MeasuredRun &run,
                            const planner::Machine &machine) {
  const planner::Software &software = planner::defaultSoftware();
  const planner::Device &device = machine.device;
  const planner::Precision precision = precisionOf(run.type);
  planner::BytesPerSec rate = planner::measuredPassRate(
      software, device, run.kernel, precision, run.variant);
  if (rate.value == 0)
    rate = device.passRate();
  const planner::Bytes once{static_cast<double>(run.bytes)};
  if (planner::isFused(software, device,
                       planner::fusionName(run.after, run.kernel, run.variant),
                       precision))
    return (once / rate).value;
  const double passes = run.kernel == "activation" ? 2 : 3;
  return (passes * once / rate + device.launch).value;
}

} // namespace

planner::Precision precisionOf(runtime::ElementType type) {
  switch (type) {
  case runtime::ElementType::f16:
    return planner::Precision::fp16;
  case runtime::ElementType::bf16:
    return planner::Precision::bf16;
  default:
    return planner::Precision::fp32;
  }
}

bool isGradient(const MeasuredRun &run) {
  return run.kernel.ends_with("_grad");
}

double attentionFlopsOf(const MeasuredRun &run) {
  const planner::AttentionShape shape{
      static_cast<double>(run.batch), static_cast<double>(run.m),
      static_cast<double>(run.n), static_cast<double>(run.k), run.causal};
  return planner::fusedFlops(shape, isGradient(run),
                             planner::defaultSoftware().attention)
      .value;
}

double predictedSeconds(const MeasuredRun &run,
                        const planner::Machine &machine) {
  const planner::Software &software = planner::defaultSoftware();
  const planner::Device &device = machine.device;
  const planner::Precision precision = precisionOf(run.type);
  planner::Measurement row;
  row.bytes = static_cast<double>(run.bytes);
  switch (run.as) {
  case MeasuredAs::launches:
    row.kind = planner::MeasuredKind::launches;
    row.count = static_cast<double>(run.count);
    break;
  case MeasuredAs::pass: {
    const planner::BytesPerSec own = planner::measuredPassRate(
        software, device, run.kernel, precision, run.variant);
    row.kind = run.kernel == "copy" ? planner::MeasuredKind::stream
                                    : planner::MeasuredKind::elementwise;
    if (own.value > 0)
      return (planner::Bytes{row.bytes} / own + device.launch).value;
    break;
  }
  case MeasuredAs::followed:
    return predictedSeconds(producerOf(run), machine) +
           fusedConsumerSeconds(run, machine);
  case MeasuredAs::product:
    row.kind = planner::MeasuredKind::product;
    row.m = static_cast<double>(run.m);
    row.n = static_cast<double>(run.n);
    row.k = static_cast<double>(run.k);
    row.batch = static_cast<double>(run.batch);
    row.precision = precision;
    break;
  case MeasuredAs::attention: {
    const planner::AttentionRate rate = planner::attentionRateOf(
        software, device, precision, run.variant == planner::kDropout);
    return attentionFlopsOf(run) /
               (planner::productPeak(device, precision).value *
                (isGradient(run) ? rate.backward : rate.forward)) +
           device.launch.value;
  }
  case MeasuredAs::message:
    row.kind = planner::MeasuredKind::send;
    row.stride = run.stride;
    break;
  case MeasuredAs::collective:
    for (planner::MeasuredKind kind :
         {planner::MeasuredKind::allReduce, planner::MeasuredKind::allGather,
          planner::MeasuredKind::reduceScatter,
          planner::MeasuredKind::allToAll})
      if (run.kernel == planner::nameOf(kind))
        row.kind = kind;
    row.ranks = run.ranks;
    row.stride = run.stride;
    break;
  }
  return row.predicted(machine);
}

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

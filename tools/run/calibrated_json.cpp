//===- calibrated_json.cpp - Measured runs as a measurement file ----------===//

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/cost/kernel_cost.h"
#include "planner/fit/fit_machine.h"
#include "planner/fit/measurements_json.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"
#include "tools/run/calibrate.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using nlohmann::ordered_json;
using runtime::MeasuredAs;
using runtime::MeasuredRun;

namespace {

constexpr double kMicro = 1e-6, kGB = 1e9, kTera = 1e12;

// Measurements support no more than four digits.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

ordered_json quantity(double value, const std::string &source) {
  return {{"value", value}, {"source", source}};
}
ordered_json quantity(int value, const std::string &source) {
  return {{"value", value}, {"source", source}};
}

// Returns whether the run is of a plain memory-bound kernel. Such kernels
// determine the price of all kernels that have no separate figure.
bool isPlain(const MeasuredRun &run) {
  constexpr const char *kPlain[] = {"add", "mul", "scale", "layer_norm",
                                    "rms_norm"};
  return std::ranges::find(kPlain, run.kernel) != std::end(kPlain);
}

class Writer {
public:
  Writer(const CalibratedOn &o, const std::vector<MeasuredRun> &r)
      : on(o), runs(r), like(machineLike(o.like)) {
    for (const MeasuredRun &run : runs)
      if (run.as == MeasuredAs::product)
        notePeak(run);
      else if (run.as == MeasuredAs::launches)
        gap = run.timing.seconds / static_cast<double>(run.count);
  }

  std::string text() {
    ordered_json file;
    file["source"] = on.source;
    file["machine"] = machine();
    addRows(file);
    return file.dump(2) + '\n';
  }

private:
  std::string sourceOf(const MeasuredRun &run) const {
    const std::string name = planner::variantName(run.kernel, run.variant);
    return fmt::format("{}: {}, median of {}", on.source,
                       run.what.empty() ? name : name + ' ' + run.what,
                       run.timing.samples);
  }

  // Subtracts the gap to the next kernel, because the gap has a separate
  // figure.
  double ownSeconds(const MeasuredRun &run) const {
    return std::max(run.timing.seconds - gap, 0.5 * run.timing.seconds);
  }

  void notePeak(const MeasuredRun &run) {
    const MeasuredRun *&best = peaks[precisionOf(run.type)];
    if (!best || rateOf(run) > rateOf(*best))
      best = &run;
  }

  static double rateOf(const MeasuredRun &run) {
    return 2.0 * static_cast<double>(run.m) * static_cast<double>(run.n) *
           static_cast<double>(run.k) * static_cast<double>(run.batch) /
           run.timing.seconds;
  }

  double peakOf(planner::Precision precision) const {
    const auto found = peaks.find(precision);
    return on.hasKnownPeaks || found == peaks.end()
               ? planner::productPeak(like.device, precision).value
               : rateOf(*found->second);
  }

  ordered_json machine() const {
    ordered_json made;
    made["name"] = on.name;
    made["default_precision"] = planner::nameOf(like.defaultPrecision);
    made["devices_per_node"] = quantity(on.ranksOfHost, on.source);
    made["device"] = device();
    made["levels"] = levels();
    return made;
  }

  ordered_json device() const {
    ordered_json made;
    made["like"] = on.like;
    made["name"] = on.device;
    made["memory_GiB"] = quantity(rounded(on.memory / kGiB), on.source);
    if (!on.hasKnownPeaks)
      addPeaks(made);
    made["bandwidth_efficiency"] = "fit";
    made["elementwise_efficiency"] = "fit";
    made["launch_us"] = "fit";
    made["gemm_efficiency"] = "fit";
    for (const auto &[precision, best] : peaks)
      if (precision != like.defaultPrecision)
        made[std::string("gemm_efficiency_") + planner::nameOf(precision)] =
            "fit";
    made["wave_us"] = "fit";
    made["unaligned_64_rate"] = "fit";
    made["unaligned_8_rate"] = "fit";
    made["batched_rate"] = "fit";
    made["kernels"] = kernels();
    return made;
  }

  // Adds the best measured rates as peaks; the fitted efficiencies are relative
  // to the peaks. The time to pack a weight does not depend on the rows of a
  // product, so products with few rows are slower per row. The file therefore
  // has tiles of three heights.
  void addPeaks(ordered_json &made) const {
    made["tiles"] = {
        {"value", {{256, 16, 1}, {64, 16, "fit"}, {16, 16, "fit"}}},
        {"source", "rows over which a weight is packed once"}};
    const MeasuredRun *stream = nullptr;
    for (const MeasuredRun &run : runs)
      if (run.as == MeasuredAs::pass && run.kernel == "copy" &&
          (!stream || double(run.bytes) / run.timing.seconds >
                          double(stream->bytes) / stream->timing.seconds))
        stream = &run;
    if (stream)
      made["bandwidth_GBps"] =
          quantity(rounded(static_cast<double>(stream->bytes) /
                           stream->timing.seconds / kGB),
                   sourceOf(*stream));
    for (const auto &[precision, best] : peaks)
      made[fmt::format("peak_{}_TFLOPs", planner::nameOf(precision))] =
          quantity(rounded(rateOf(*best) / kTera), sourceOf(*best));
  }

  ordered_json kernels() const {
    ordered_json made;
    made["software"] = planner::defaultSoftware().name;
    addAttention(made);
    for (const MeasuredRun &run : runs)
      if (run.as == MeasuredAs::followed)
        made["joins"][planner::nameOf(precisionOf(run.type))].push_back(
            planner::fusionName(run.after, run.kernel, run.variant));
    for (const MeasuredRun &run : runs)
      if (run.as == MeasuredAs::pass)
        made["passes"][planner::variantName(run.kernel, run.variant)]
            [std::string(planner::nameOf(precisionOf(run.type))) + "_GBps"] =
                quantity(rounded(static_cast<double>(run.bytes) /
                                 ownSeconds(run) / kGB),
                         sourceOf(run));
    return made;
  }

  // The geometric mean over shapes is the least-squares fit of the logarithms.
  void addAttention(ordered_json &made) const {
    struct Mean {
      double logarithms = 0.0;
      int runs = 0;
    };
    std::map<std::pair<std::string, std::string>, Mean> means;
    for (const MeasuredRun &run : runs) {
      if (run.as != MeasuredAs::attention)
        continue;
      const planner::Precision precision = precisionOf(run.type);
      const double flops = attentionFlopsOf(run);
      Mean &mean =
          means[{planner::variantName("attention", run.variant),
                 fmt::format("{}_{}", planner::nameOf(precision),
                             isGradient(run) ? "backward" : "forward")}];
      mean.logarithms +=
          std::log(std::min(1.0, flops / ownSeconds(run) / peakOf(precision)));
      ++mean.runs;
    }
    for (const auto &[place, mean] : means)
      made[place.first][place.second] = quantity(
          rounded(std::exp(mean.logarithms / mean.runs)),
          fmt::format("{}: mean of {} shapes, medians", on.source, mean.runs));
  }

  void addPointToPoint(ordered_json &level, int stride) const {
    const MeasuredRun *largest = nullptr;
    for (const MeasuredRun &run : runs)
      if (run.as == MeasuredAs::message && run.stride == stride &&
          (!largest || run.bytes > largest->bytes))
        largest = &run;
    if (largest)
      level["point_to_point_GBps"] =
          quantity(rounded(static_cast<double>(largest->bytes) /
                           largest->timing.seconds / kGB),
                   sourceOf(*largest));
  }

  ordered_json levels() const {
    ordered_json made = ordered_json::array();
    const auto add = [&](const char *name, int stride) -> ordered_json & {
      ordered_json &level = made.emplace_back();
      level["name"] = name;
      if (stride == 1 && on.ranksOfHost < on.ranks)
        level["ranks"] = quantity(on.ranksOfHost, on.source);
      level["bandwidth_GBps"] = "fit";
      addPointToPoint(level, stride);
      level["latency_us"] = "fit";
      level["base_us"] = "fit";
      return level;
    };
    if (on.ranksOfHost > 1)
      add("host", 1);
    if (on.ranksOfHost < on.ranks)
      add("between hosts", on.ranksOfHost);
    if (on.ranks == 1) {
      const planner::NetworkLevel &known = like.levels.front();
      const std::string source =
          "not measured with one rank: value of " + like.name;
      made.push_back(
          {{"name", known.name},
           {"bandwidth_GBps", quantity(known.bandwidth.value / kGB, source)},
           {"latency_us", quantity(known.latency.value / kMicro, source)},
           {"base_us", quantity(known.base.value / kMicro, source)}});
    }
    return made;
  }

  void addRows(ordered_json &file) const {
    for (const MeasuredRun &run : runs) {
      const double us = rounded(run.timing.seconds / kMicro);
      switch (run.as) {
      case MeasuredAs::launches:
        file["launches"].push_back({{"count", run.count}, {"us", us}});
        break;
      case MeasuredAs::pass:
        if (run.kernel == "copy" || isPlain(run))
          file["passes"].push_back(
              {{"kind", run.kernel == "copy" ? "stream" : "elementwise"},
               {"bytes", run.bytes},
               {"us", us}});
        break;
      case MeasuredAs::product: {
        ordered_json row{{"m", run.m}, {"n", run.n}, {"k", run.k}, {"us", us}};
        if (run.batch > 1)
          row["batch"] = run.batch;
        row["precision"] = planner::nameOf(precisionOf(run.type));
        file["products"].push_back(std::move(row));
        break;
      }
      case MeasuredAs::attention:
      case MeasuredAs::followed:
        break; // kernels() has these
      case MeasuredAs::collective:
        file["collectives"].push_back({{"kind", run.kernel},
                                       {"bytes", run.bytes},
                                       {"ranks", run.ranks},
                                       {"stride", run.stride},
                                       {"us", us}});
        break;
      case MeasuredAs::message:
        file["collectives"].push_back({{"kind", run.kernel},
                                       {"bytes", run.bytes},
                                       {"stride", run.stride},
                                       {"us", us}});
        break;
      }
    }
  }

  const CalibratedOn &on;
  const std::vector<MeasuredRun> &runs;
  const planner::Machine like;
  std::map<planner::Precision, const MeasuredRun *> peaks;
  double gap = 0.0; ///< seconds between two kernels
};

// Returns a legal value for a figure that no measurement determines: 0 for
// network latencies, else the preset's value.
ordered_json givenValue(const std::string &figure,
                        const planner::Machine &before,
                        const std::string &like) {
  const auto is = [&](const char *key) { return figure.ends_with(key); };
  const planner::Device &device = before.device;
  double value = is("launch_us")                ? device.launch.value / kMicro
                 : is("bandwidth_efficiency")   ? device.bandwidthEfficiency
                 : is("elementwise_efficiency") ? device.elementwiseEfficiency
                 : is("wave_us")                ? device.wave.value / kMicro
                 : is("unaligned_64_rate")      ? device.products.unaligned64
                 : is("unaligned_8_rate")       ? device.products.unaligned8
                 : is("batched_rate")           ? device.products.batched
                 : is("_us")                    ? 0.0
                 : is("bandwidth_GBps")
                     ? before.levels.front().bandwidth.value / kGB
                     : device.gemmEfficiency;
  return quantity(value, "measurements do not determine it: " +
                             (is("_us") && !is("wave_us") && !is("launch_us")
                                  ? std::string("assumed to be 0")
                                  : "value of " + like));
}

} // namespace

planner::Machine machineLike(const std::string &device) {
  for (const std::string &preset : planner::presetNames()) {
    planner::Machine machine = planner::loadMachine(preset);
    if (machine.device.name == device)
      return machine;
  }
  return planner::parseMachine(
      ordered_json{{"name", "calibrated"},
                   {"devices_per_node", quantity(1, "calibrated")},
                   {"device", device},
                   {"link", {{"bandwidth_GBps", quantity(1, "calibrated")}}}}
          .dump());
}

std::string measurementsText(const CalibratedOn &on,
                             const std::vector<MeasuredRun> &runs) {
  return Writer(on, runs).text();
}

Calibrated calibratedMachine(const CalibratedOn &on,
                             const std::vector<MeasuredRun> &runs) {
  Calibrated made;
  made.before = machineLike(on.like);
  ordered_json file = ordered_json::parse(measurementsText(on, runs));
  for (;;) {
    made.measurementsText = file.dump(2) + '\n';
    const planner::Measurements measured =
        planner::parseMeasurements(made.measurementsText);
    std::vector<std::string> undetermined;
    if (auto fit = planner::fitMachine(measured, undetermined)) {
      made.machineText =
          planner::fittedMachineText(made.measurementsText, *fit);
      made.fit = std::move(*fit);
      return made;
    }
    // Each round removes one undetermined figure from the fit. The measurements
    // may then determine the other figures.
    const std::string &line = undetermined.back();
    const std::string pointer = line.substr(0, line.find(": "));
    ordered_json &place = file.at(ordered_json::json_pointer(pointer));
    if (place != "fit")
      throw std::runtime_error(line);
    // A tile that is the fastest for no run is dropped.
    if (const std::size_t tile = pointer.find("/tiles/value/");
        tile != std::string::npos) {
      const std::string row = pointer.substr(0, pointer.rfind('/'));
      file.at(ordered_json::json_pointer(pointer.substr(0, tile) +
                                         "/tiles/value"))
          .erase(std::stoul(row.substr(row.rfind('/') + 1)));
    } else {
      place = givenValue(pointer, made.before, on.like);
    }
    made.undetermined.push_back(line);
  }
}

} // namespace mtplan::tools

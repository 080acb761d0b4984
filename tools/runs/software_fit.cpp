//===- software_fit.cpp - Software files fitted to runs -------------------===//

#include "tools/runs/software_fit.h"

#include <algorithm>
#include <cmath>

#include "planner/fit/design.h"
#include "planner/fit/least_squares.h"
#include "planner/machine/software_json.h"

namespace mtplan::tools {

using planner::Pass;
using planner::Passes;
using planner::Seconds;
using planner::Software;

namespace {

constexpr double kMicro = 1e-6;
constexpr const char *kPassesName = "/passes";
constexpr const char *kRatesName = "/attention/rates";
/// Errors above this many standard deviations count far less than by their
/// squares.
constexpr double kLarge = 2.0;
/// A value stays within this factor of its base.
constexpr double kMostChange = 10.0;

constexpr Pass Passes::*kPasses[] = {&Passes::layerNorm, &Passes::rmsNorm,
                                     &Passes::residual,  &Passes::activation,
                                     &Passes::gated,     &Passes::rope,
                                     &Passes::dropout,   &Passes::biasGradient};

// All passes have one factor; the first pass that moves bytes represents it.
double passesOf(const Software &software) {
  for (Pass Passes::*pass : kPasses)
    if (const double bytes = (software.passes.*pass).forwardBytes; bytes > 0)
      return bytes;
  return 0.0;
}

void setPasses(Software &software, double value) {
  const double before = passesOf(software);
  const double factor = before > 0 ? value / before : 1.0;
  for (Pass Passes::*pass : kPasses) {
    (software.passes.*pass).forwardBytes *= factor;
    (software.passes.*pass).backwardBytes *= factor;
  }
  software.attention.copyForward *= factor;
  software.attention.copyBackward *= factor;
}

// All rates of attention have one factor; the first represents them.
double ratesOf(const Software &software) {
  return software.attention.rates.empty()
             ? 0.0
             : software.attention.rates.front().forward;
}

void setRates(Software &software, double value) {
  const double before = ratesOf(software);
  // The limit applies to every rate.
  for (planner::AttentionRate &rate : software.attention.rates) {
    rate.forward = std::min(1.0, rate.forward * value / before);
    rate.backward = std::min(1.0, rate.backward * value / before);
  }
}

template <Seconds planner::HostLaunch::*Time>
double hostOf(const Software &software) {
  return (software.host.*Time).value / kMicro;
}
template <Seconds planner::HostLaunch::*Time>
void setHost(Software &software, double us) {
  software.host.*Time = Seconds{us * kMicro};
}

// Returns an error whose square is the loss of Cauchy's distribution.
double robust(double error) {
  const double relative = error / kLarge;
  return std::copysign(kLarge * std::sqrt(std::log1p(relative * relative)),
                       error);
}

double baseOf(const SoftwareFigure &figure, const Software &base) {
  const double value = figure.get(base);
  return value > 0 ? value : figure.usual;
}

double scatterOf(const FixedRun &run, Quantity quantity) {
  if (quantity == Quantity::peakMemory)
    return kMemoryScatter;
  return run.spansNodes() ? kScatter : kScatterInNode;
}

// Returns the slopes of the quantity's logarithm with respect to the logarithms
// of the figures, by run and figure (planner/fit/design.h).
planner::Slopes slopesOf(const Software &software,
                         const std::vector<const FixedRun *> &runs,
                         Quantity quantity) {
  constexpr double kStep = 0.05;
  const std::vector<SoftwareFigure> &figures = softwareFigures(quantity);
  planner::Slopes slopes(runs.size());
  for (const SoftwareFigure &figure : figures) {
    Software more = software, less = software;
    const double value = baseOf(figure, software);
    figure.set(more, value * std::exp(kStep));
    figure.set(less, value * std::exp(-kStep));
    for (std::size_t r = 0; r < runs.size(); ++r)
      slopes[r].push_back(std::log(runs[r]->valueWith(more, quantity) /
                                   runs[r]->valueWith(less, quantity)) /
                          (2 * kStep) * figure.width /
                          scatterOf(*runs[r], quantity));
  }
  return slopes;
}

// These are limits of software files.
constexpr double kBytes = 1e4, kDelay = 1e6;

const std::vector<SoftwareFigure> &figuresOfTime() {
  using planner::HostLaunch;
  static const std::vector<SoftwareFigure> kFigures = {
      {kPassesName, "bytes per element of the first", 0.3, 4.0, 100.0, passesOf,
       setPasses},
      {"/cross_entropy_bytes", "bytes per logit", 0.3, 8.0, kBytes,
       [](const Software &s) { return s.crossEntropy; },
       [](Software &s, double v) { s.crossEntropy = v; }},
      {kRatesName, "share of peak of the first", 0.2, 0.4, 1.0, ratesOf,
       setRates},
      {"/parameters/optimizer_bytes", "bytes per parameter", 0.3, 28.0, kBytes,
       [](const Software &s) { return s.parameters.optimizer; },
       [](Software &s, double v) { s.parameters.optimizer = v; }},
      {"/parameters/per_sharer_us", "us", 1.0, 100.0, kDelay,
       [](const Software &s) { return s.parameters.perSharer.value / kMicro; },
       [](Software &s, double v) {
         s.parameters.perSharer = Seconds{v * kMicro};
       }},
      {"/reached_rates/products", "of the machine's", 0.05, 1.0, 1.5,
       [](const Software &s) { return s.reached.products; },
       [](Software &s, double v) { s.reached.products = v; }},
      {"/tensor_collectives/slowdown", "times", 0.2, 1.0, 100.0,
       [](const Software &s) { return s.tensor.slowdown; },
       [](Software &s, double v) { s.tensor.slowdown = v; }},
      {"/tensor_collectives/slowdown_across_nodes", "times", 0.5, 1.0, 100.0,
       [](const Software &s) { return s.tensor.slowdownAcrossNodes; },
       [](Software &s, double v) { s.tensor.slowdownAcrossNodes = v; }},
      {"/reached_rates/network", "of the machine's", 0.3, 1.0, 10.0,
       [](const Software &s) { return s.reached.network; },
       [](Software &s, double v) { s.reached.network = v; }},
      {"/host/kernel_us", "us", 0.5, 15.0, kDelay, hostOf<&HostLaunch::kernel>,
       setHost<&HostLaunch::kernel>},
      {"/host/collective_us", "us", 0.7, 100.0, kDelay,
       hostOf<&HostLaunch::collective>, setHost<&HostLaunch::collective>},
      {"/host/per_rank_across_nodes_us", "us", 0.5, 20.0, kDelay,
       hostOf<&HostLaunch::perRankAcrossNodes>,
       setHost<&HostLaunch::perRankAcrossNodes>},
      {"/host/per_rank_pipelined_us", "us", 1.0, 50.0, kDelay,
       hostOf<&HostLaunch::perRankPipelined>,
       setHost<&HostLaunch::perRankPipelined>},
      {"/host/per_rank_pipelined_across_nodes_us", "us", 1.0, 100.0, kDelay,
       hostOf<&HostLaunch::perRankPipelinedAcrossNodes>,
       setHost<&HostLaunch::perRankPipelinedAcrossNodes>},
      {"/host/message_us", "us", 1.0, 300.0, kDelay,
       hostOf<&HostLaunch::message>, setHost<&HostLaunch::message>},
      {"/host/step_us", "us", 1.0, 20'000.0, kDelay, hostOf<&HostLaunch::step>,
       setHost<&HostLaunch::step>},
      {"/host/sharded_step_us", "us", 1.0, 20'000.0, kDelay,
       hostOf<&HostLaunch::shardedStep>, setHost<&HostLaunch::shardedStep>},
  };
  return kFigures;
}

template <double planner::FrameworkMemory::*Figure>
SoftwareFigure memoryFigure(const char *name, const char *unit, double width,
                            double usual, double limit = kBytes) {
  return {name,
          unit,
          width,
          usual,
          limit,
          [](const Software &s) { return s.memory.*Figure; },
          [](Software &s, double v) { s.memory.*Figure = v; }};
}

const std::vector<SoftwareFigure> &figuresOfMemory() {
  using planner::FrameworkMemory;
  static const std::vector<SoftwareFigure> kFigures = {
      {"/attention/copy_kept_bytes", "bytes per element", 1.0, 8.0, kBytes,
       [](const Software &s) { return s.attention.copyKept; },
       [](Software &s, double v) { s.attention.copyKept = v; }},
      memoryFigure<&FrameworkMemory::crossEntropy>(
          "/memory/cross_entropy_bytes", "bytes per logit", 1.0, 4.0),
      memoryFigure<&FrameworkMemory::buckets>("/memory/bucket_bytes",
                                              "bytes per parameter", 0.5, 2.0),
      memoryFigure<&FrameworkMemory::cached>(
          "/memory/cached_share", "of the bytes in use", 1.0, 0.03, 1.0),
  };
  return kFigures;
}

} // namespace

const std::vector<SoftwareFigure> &softwareFigures(Quantity quantity) {
  return quantity == Quantity::stepTime ? figuresOfTime() : figuresOfMemory();
}

bool SoftwareFigure::changes(const std::string &pointer) const {
  const std::string own = name;
  return pointer == own || pointer.starts_with(own + '/') ||
         (own == kPassesName && pointer.starts_with("/attention/copy_"));
}

SoftwareFit fitSoftware(const Software &base,
                        const std::vector<const FixedRun *> &runs,
                        const std::vector<double> &measured,
                        Quantity quantity) {
  const std::vector<SoftwareFigure> &figures = softwareFigures(quantity);
  std::vector<planner::FitUnknown> unknowns;
  std::vector<double> bases;
  for (const SoftwareFigure &figure : figures) {
    bases.push_back(figure.get(base));
    const bool isNew = bases.back() == 0;
    const double start = baseOf(figure, base);
    unknowns.push_back(
        {isNew ? 0.0 : start / kMostChange,
         std::min(start * kMostChange, figure.limit),
         {start},
         isNew ? planner::FitScale::root : planner::FitScale::logarithmic});
  }
  auto with = [&](const std::vector<double> &values) {
    Software software = base;
    for (std::size_t f = 0; f < figures.size(); ++f)
      figures[f].set(software, values[f]);
    return software;
  };
  auto errorsOf = [&](const std::vector<double> &values) {
    const Software software = with(values);
    std::vector<double> errors;
    for (std::size_t r = 0; r < runs.size(); ++r)
      errors.push_back(robust(
          std::log(runs[r]->valueWith(software, quantity) / measured[r]) /
          scatterOf(*runs[r], quantity)));
    for (std::size_t f = 0; f < figures.size(); ++f)
      errors.push_back((bases[f] == 0 ? values[f] / figures[f].usual
                                      : std::log(values[f] / bases[f])) /
                       figures[f].width);
    return errors;
  };
  const planner::LeastSquares found =
      planner::solveLeastSquares(unknowns, errorsOf);

  SoftwareFit fit;
  fit.quantity = quantity;
  fit.software = base;
  for (double error : found.errors)
    fit.cost += error * error;
  double ofRuns = 0.0;
  for (std::size_t r = 0; r < runs.size(); ++r)
    ofRuns += found.errors[r] * found.errors[r];
  const double scale =
      std::max(1.0, std::sqrt(ofRuns / static_cast<double>(runs.size())));
  const planner::Slopes slopes = slopesOf(with(found.values), runs, quantity);
  const std::vector<double> deviations = planner::deviationsAfter(slopes);
  for (std::size_t f = 0; f < figures.size(); ++f) {
    FittedSoftwareFigure figure;
    figure.base = figures[f].get(base);
    figure.isDetermined =
        std::ranges::any_of(slopes, [&](const std::vector<double> &run) {
          return std::fabs(run[f]) > 1e-6;
        });
    figure.value = figure.isDetermined ? found.values[f] : figure.base;
    figure.deviation = std::min(1.0, scale * deviations[f]) * figures[f].width;
    if (figure.isDetermined)
      figures[f].set(fit.software, figure.value);
    fit.figures.push_back(figure);
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    fit.before.push_back(runs[r]->valueWith(base, quantity) / measured[r] - 1);
    fit.after.push_back(
        runs[r]->valueWith(fit.software, quantity) / measured[r] - 1);
  }
  return fit;
}

std::string nearestSoftware(const std::vector<const FixedRun *> &runs,
                            const std::vector<double> &measured) {
  constexpr std::size_t kFitted = 3;
  std::vector<std::pair<double, std::string>> presets;
  for (const std::string &name : planner::softwareNames()) {
    const Software software = planner::loadSoftware(name);
    double sum = 0.0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const double error =
          std::log(runs[r]->stepWith(software).value / measured[r]);
      sum += error * error;
    }
    presets.emplace_back(sum, name);
  }
  std::ranges::sort(presets);
  presets.resize(std::min(presets.size(), kFitted));
  for (auto &[cost, name] : presets)
    cost = fitSoftware(planner::loadSoftware(name), runs, measured).cost;
  return std::ranges::min_element(presets)->second;
}

std::vector<std::size_t> suggestRuns(const Software &base,
                                     const std::vector<const FixedRun *> &runs,
                                     const std::vector<std::size_t> &known,
                                     const std::vector<std::size_t> &offered,
                                     std::size_t count, Quantity quantity) {
  constexpr double kHostSpeeds[] = {1.0 / 3, 1.0, 3.0};
  if (count == 0)
    return {};
  std::vector<planner::Slopes> scenarios;
  if (quantity == Quantity::peakMemory) // memory does not depend on the host
    scenarios.push_back(slopesOf(base, runs, quantity));
  else
    for (double speed : kHostSpeeds) {
      Software software = base;
      for (const SoftwareFigure &figure : softwareFigures(quantity))
        if (std::string_view(figure.name).starts_with("/host/"))
          figure.set(software, speed * baseOf(figure, base));
      scenarios.push_back(slopesOf(software, runs, quantity));
    }
  return planner::chooseMeasurements(scenarios, known, offered, count);
}

} // namespace mtplan::tools

//===- step_forms.cpp - Linear lower bounds of a one-stage step -----------===//

#include "planner/search/bound/step_forms.h"

#include <algorithm>

#include "planner/integers.h"
#include "planner/search/bound/replica_bounds.h"
#include "planner/search/segment/parameter_state.h"
#include "planner/search/segment/reshard_prices.h"

namespace mtplan::planner {

namespace {

/// Bounds min(compute, traffic), from below and for every traffic between the
/// least and the most, by slope * traffic + fixed.
struct Line {
  double slope = 0.0;
  Seconds fixed;
};

Line lineBelow(Seconds compute, Seconds least, Seconds most) {
  if (most <= compute)
    return {1.0, {}};
  if (compute <= least)
    return {0.0, compute};
  const double slope = (compute - least) / (most - least);
  return {slope, least - slope * least};
}

// Returns upper bounds of the time to all-gather a weight over the replicas,
// and of the time to reduce a gradient, for one layout in which the weight is
// used or the gradient made. If the layouts over tensor axes may change in
// between, a collective may move the whole tensor; there is at most one
// collective per axis (stepsBetweenReplicas()).
std::pair<Seconds, Seconds> mostPerUse(const Parameter &parameter,
                                       const ParameterState &state,
                                       const Setting &setting) {
  const Mesh &mesh = setting.mesh;
  const Layout accumulator = accumulatorLayout(state, mesh);
  if (!parametersMove(setting))
    return {stateReshardTime(state.stored, gathered(state.stored, mesh),
                             parameter.shape, parameter.elementBytes, setting),
            stateReshardTime(gradientLayout(state, mesh), accumulator,
                             parameter.shape, parameter.elementBytes, setting)};
  const double elements = elementsOf(parameter.shape);
  std::pair<Seconds, Seconds> most;
  for (int axis = 0; axis < tensorAxisOf(mesh); ++axis) {
    if (placementOf(state.stored, axis) >= 0)
      most.first += stateTime({StepKind::allGather, axis},
                              elements / mesh.axes[at(axis)].size,
                              parameter.elementBytes, setting);
    if (placementOf(accumulator, axis) >= 0)
      most.second += stateTime({StepKind::reduceScatter, axis}, elements,
                               parameter.elementBytes, setting);
  }
  return most;
}

// Returns the number of layouts in which the operators of a phase may read a
// tensor.
double usesIn(Phase phase, const SegmentGraph &graph, const Tensor &tensor,
              const Setting &setting) {
  const std::ptrdiff_t readers = readersIn(phase, graph, tensor);
  return static_cast<double>(
      parametersMove(setting) ? readers : std::min<std::ptrdiff_t>(readers, 1));
}

// Returns a slice with upper bounds of the traffic of one repeat over all
// plans; +infinity where they are not known. The bounds of traffic that
// runs once a step are always known: they are the largest times over the states
// that parameterStates() lists. The bounds of traffic in each micro-batch are
// known if weights are not tiled and not split with the data.
SliceTimes mostTraffic(const SegmentGraph &graph, const ModelGraph &model,
                       const Setting &setting, const Parallelism &config) {
  const Mesh &mesh = setting.mesh;
  const double gradientBytes = stateBytesOf(setting).gradient;
  bool isKnown = config.tiles == 1;
  PhaseTimes most;
  for (int t : graph.reported) {
    const Tensor &tensor = graph.tensors[at(t)];
    const Layout replicated = Layout::replicated(tensor.shape.size());
    Layout partial = replicated;
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      if (mesh.axes[axis].size > 1)
        partial = withPlacement(partial, static_cast<int>(axis), kPartial);
    most.reduceStep += reshardTime(partial, replicated, tensor.shape,
                                   kReportedBytes, mesh, *setting.machine);
  }
  std::vector<bool> seen(model.parameters.size(), false);
  for (const Tensor &tensor : graph.tensors) {
    if (tensor.kind != TensorKind::parameter)
      continue;
    const Parameter &parameter = model.parameters[at(tensor.parameter)];
    isKnown = isKnown && !splitsWithData(parameter);
    Seconds gather, reduce, gatherOnce, reduceOnce;
    for (const ParameterState &state :
         parameterStates(model, tensor.parameter, setting)) {
      const auto raise = [&](Seconds &time, const Layout &from,
                             const Layout &to, double bytes) {
        time = std::max(time, stateReshardTime(from, to, parameter.shape, bytes,
                                               setting, parameter.ofSegment));
      };
      const auto [oneGather, oneReduce] = mostPerUse(parameter, state, setting);
      gather = std::max(gather, oneGather);
      reduce = std::max(reduce, oneReduce);
      raise(gatherOnce, state.owned(), state.stored, parameter.elementBytes);
      raise(reduceOnce, accumulatorLayout(state, mesh), state.owned(),
            gradientBytes);
    }
    most.gatherForward +=
        usesIn(Phase::forward, graph, tensor, setting) * gather;
    most.gatherBackward +=
        usesIn(Phase::backward, graph, tensor, setting) * gather;
    for (const Accumulation &sum : graph.accumulations)
      if (sum.parameter == tensor.parameter)
        most.reduce += reduce;
    if (seen[at(tensor.parameter)])
      continue;
    seen[at(tensor.parameter)] = true;
    most.gatherStep += gatherOnce;
    most.reduceStep += reduceOnce;
  }
  SliceTimes slice = sliceWithoutTax(most, config);
  if (!isKnown && config.zeroStage > 2)
    slice.gather = {kInfinity};
  if (!isKnown && config.zeroStage > 1)
    slice.reduce = {kInfinity};
  return slice;
}

/// Counts the transfers between replicas in a step that may overlap compute.
struct Transfers {
  double gathers = 1.0;    ///< all-gathers of one weight
  double reductions = 1.0; ///< reductions of one gradient
};

Transfers transfersOf(const Parallelism &config) {
  const auto microBatches = static_cast<double>(config.microBatches());
  return {config.zeroStage > 2 ? 2.0 * microBatches : 1.0,
          config.zeroStage > 1 ? microBatches : 1.0};
}

// Returns whether a segment is repeated and reads a shared parameter, whose
// cost counts in some of the repeats only.
bool repeatsShared(const SegmentGraph &segment, const ModelGraph &model) {
  return segment.repeat > 1 &&
         std::ranges::any_of(segment.tensors, [&](const Tensor &tensor) {
           return tensor.kind == TensorKind::parameter &&
                  model.parameters[at(tensor.parameter)].shared;
         });
}

} // namespace

std::vector<SumWeights> StepForm::weights(int zeroStage) const {
  std::vector<SumWeights> all;
  for (const Segment &one : segments)
    all.push_back(
        overlapWeights(one.compute, one.gather, one.reduce, zeroStage));
  return all;
}

Seconds StepForm::of(const PricedParts &parts,
                     const Parallelism &config) const {
  const auto microBatches = static_cast<double>(config.microBatches());
  const Transfers transfers = transfersOf(config);
  Seconds time = fixed;
  for (const std::vector<PricedRun> &part : parts)
    for (const PricedRun &run : part) {
      const SliceTimes slice = sliceWithoutTax(*run.times, config);
      const Segment &one = segments[at(run.plan->segment)];
      time += run.count *
              (one.compute * microBatches * (slice.forward + slice.backward) +
               one.gather * transfers.gathers * slice.gather +
               one.reduce * transfers.reductions * slice.reduce +
               run.times->update);
    }
  return time;
}

StepForm mean(const StepForm &a, const StepForm &b, double share) {
  const auto between = [&](auto one, auto other) {
    return (1.0 - share) * one + share * other;
  };
  StepForm form;
  form.fixed = between(a.fixed, b.fixed);
  for (std::size_t s = 0; s < a.segments.size(); ++s) {
    const StepForm::Segment &one = a.segments[s], &other = b.segments[s];
    form.segments.push_back({between(one.compute, other.compute),
                             between(one.gather, other.gather),
                             between(one.reduce, other.reduce)});
  }
  return form;
}

// The least value is a concave function of the share: the least of several
// lines. It is largest at an end or where two lines intersect.
std::pair<double, Seconds> bestShare(const StepForm &a, const StepForm &b,
                                     const std::vector<PricedParts> &plans,
                                     const Parallelism &config) {
  struct Values {
    double start, rise;
  };
  std::vector<Values> lines;
  for (const PricedParts &parts : plans) {
    const double start = a.of(parts, config).value;
    lines.push_back({start, b.of(parts, config).value - start});
  }
  std::vector<double> shares{0.0, 1.0};
  for (const Values &one : lines)
    for (const Values &other : lines)
      if (one.rise != other.rise)
        shares.push_back(std::clamp(
            (other.start - one.start) / (one.rise - other.rise), 0.0, 1.0));
  std::pair<double, Seconds> best{0.0, {-kInfinity}};
  for (double share : shares) {
    double least = kInfinity;
    for (const Values &line : lines)
      least = std::min(least, line.start + share * line.rise);
    if (least > best.second.value)
      best = {share, {least}};
  }
  return best;
}

namespace {

/// Builds the forms of one configuration. A form is the length of a path
/// through the tasks of the step. The path has all compute, except that
///
///   - all-gathers of the first segments may replace the first micro-batch's
///     forward of these segments, which waits for them;
///   - reductions of the first segments may replace the last micro-batch's
///     backward of these segments, which does not wait for them;
///   - with ZeRO-2 and ZeRO-3, reductions may replace everything that follows
///     the first micro-batch's backward of the other segments.
///
/// The update comes last, with the tax of the traffic that runs once a step.
class FormsBuilder {
public:
  FormsBuilder(const ModelGraph &model, const std::vector<PhaseTimes> &least,
               const Setting &setting, const Parallelism &config,
               const Overlaps &theOverlaps)
      : overlaps(theOverlaps), tax(replicaTaxOf(setting, config)),
        zero(config.zeroStage),
        microBatches(static_cast<double>(config.microBatches())),
        gathers(transfersOf(config).gathers),
        reductions(transfersOf(config).reductions),
        sharing(sharingTime(setting, config)) {
    for (std::size_t s = 0; s < model.segments.size(); ++s) {
      const SegmentGraph &segment = model.segments[s];
      SliceTimes slice = sliceWithoutTax(least[s], config);
      SliceTimes most = mostTraffic(segment, model, setting, config);
      if (repeatsShared(segment, model)) {
        slice.gather = slice.reduce = {};
        most.gather = most.reduce = {kInfinity};
      }
      segments.push_back({static_cast<double>(segment.repeat),
                          {slice.forward, slice.gather,
                           taxOn(slice.forward, slice.gather, most.gather)},
                          {slice.backward, slice.reduce,
                           taxOn(slice.backward, slice.reduce, most.reduce)}});
    }
  }

  std::vector<StepForm> build() const {
    std::vector<StepForm> forms;
    for (const Place &gathered : placesOf(overlaps.gather))
      for (const Place &reduced : placesOf(overlaps.reduce)) {
        forms.push_back(form(gathered, reduced, false));
        if (zero > 1 && overlaps.reduce)
          forms.push_back(form(gathered, reduced, true));
      }
    if (zero > 2 && overlaps.gather)
      forms.push_back(byGathers());
    return forms;
  }

private:
  /// Says where a path changes between traffic and compute. The traffic covers
  /// the segments before `segment`, and the compute those after `segment`. The
  /// path changes within one repeat of `segment`, which both cover.
  struct Place {
    std::size_t segment = 0;
    /// Says whether the traffic covers all repeats of `segment`, and the
    /// compute one of them; otherwise the traffic covers one, and the compute
    /// all.
    bool all = false;

    bool computes(std::size_t s) const {
      return s > segment || (s == segment && !all);
    }
  };

  struct Overlap {
    Seconds compute, traffic; ///< least times of one repeat
    Line tax;                 ///< of one transfer
  };
  struct Segment {
    double repeats = 1.0;
    Overlap forward, backward;
  };

  Line taxOn(Seconds compute, Seconds least, Seconds most) const {
    const Line line = lineBelow(compute, least, most);
    return {tax * line.slope, tax * line.fixed};
  }

  std::vector<Place> placesOf(bool overlapped) const {
    std::vector<Place> places{{}};
    for (std::size_t s = 0; overlapped && s < segments.size(); ++s) {
      if (s > 0)
        places.push_back({s, false});
      if (segments[s].repeats > 1.0)
        places.push_back({s, true});
    }
    return places;
  }

  // \param fromFirst  whether reductions follow the first micro-batch
  StepForm form(const Place &gathered, const Place &reduced,
                bool fromFirst) const {
    StepForm form;
    form.fixed = sharing;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const Segment &one = segments[s];
      StepForm::Segment &weights = form.segments.emplace_back();
      addCompute(s, gathered, reduced, fromFirst, weights, form);
      if (!overlaps.gather) {
        // With ZeRO-3, these all-gathers may run beside reductions.
        weights.gather = zero < 3 || !fromFirst ? 1.0 : 0.0;
      } else {
        // With ZeRO-3, both phases pay the tax of all-gathers.
        const int left = !gathered.computes(s) + !reduced.computes(s);
        const double share = zero < 3    ? 1.0
                             : fromFirst ? 0.0
                                         : 1.0 - left / gathers;
        addTax(gathers * one.repeats, one.forward.tax, share, weights.gather,
               form);
        addTraffic(s, gathered, one.forward, gathers, weights.gather, form);
      }
      if (!overlaps.reduce) {
        weights.reduce = 1.0;
        continue;
      }
      const double share = zero < 2              ? 1.0
                           : fromFirst           ? 0.0
                           : reduced.computes(s) ? 1.0
                                                 : 1.0 - 1.0 / reductions;
      addTax(reductions * one.repeats, one.backward.tax, share, weights.reduce,
             form);
      addTraffic(s, reduced, one.backward, reductions, weights.reduce, form);
      if (fromFirst)
        addTaxed(reductions * one.repeats, one.backward.tax,
                 1.0 - 1.0 / reductions, weights.reduce, form);
    }
    return form;
  }

  // Adds the compute of segment `s`. The compute of the phases that traffic may
  // replace is not known, so the least times bound the rest of that
  // micro-batch.
  void addCompute(std::size_t s, const Place &gathered, const Place &reduced,
                  bool fromFirst, StepForm::Segment &weights,
                  StepForm &form) const {
    const Segment &one = segments[s];
    if (!fromFirst && gathered.computes(s) && reduced.computes(s)) {
      weights.compute = 1.0;
      return;
    }
    weights.compute = fromFirst ? 0.0 : 1.0 - 1.0 / microBatches;
    const auto addPhase = [&](const Place &place, Seconds compute) {
      if (place.computes(s))
        form.fixed += one.repeats * compute;
      else if (s == place.segment)
        form.fixed += compute;
    };
    addPhase(gathered, one.forward.compute);
    addPhase(reduced, one.backward.compute);
  }

  // Adds a share of a line, which bounds the tax of `transfers` transfers.
  static void addTax(double transfers, const Line &line, double share,
                     double &weight, StepForm &form) {
    weight += share * line.slope;
    form.fixed += share * transfers * line.fixed;
  }

  // Adds a share of overlapped transfers, which the tax makes longer.
  static void addTaxed(double transfers, const Line &line, double share,
                       double &weight, StepForm &form) {
    weight += share;
    addTax(transfers, line, share, weight, form);
  }

  // Adds the traffic of segment `s` that is on the path. Repeats may differ, so
  // only the least time of a single repeat is known.
  void addTraffic(std::size_t s, const Place &place, const Overlap &phase,
                  double times, double &weight, StepForm &form) const {
    const double repeats = segments[s].repeats;
    if (s < place.segment ||
        (s == place.segment && (place.all || repeats == 1.0)))
      addTaxed(times * repeats, phase.tax, 1.0 / times, weight, form);
    else if (s == place.segment)
      form.fixed += (1.0 + phase.tax.slope) * phase.traffic + phase.tax.fixed;
  }

  // Returns the all-gathers that overlap compute with ZeRO-3.
  StepForm byGathers() const {
    StepForm form;
    form.fixed = sharing;
    for (const Segment &one : segments) {
      StepForm::Segment &weights = form.segments.emplace_back();
      weights.compute = 0.0;
      addTaxed(gathers * one.repeats, one.forward.tax, 1.0, weights.gather,
               form);
      if (overlaps.reduce) // on the same stream
        addTaxed(reductions * one.repeats, one.backward.tax, 1.0,
                 weights.reduce, form);
    }
    return form;
  }

  const Overlaps &overlaps;
  const double tax;
  const int zero;
  const double microBatches;
  const double gathers, reductions; ///< see Transfers
  const Seconds sharing;
  std::vector<Segment> segments;
};

} // namespace

std::vector<StepForm> stepFormsOf(const ModelGraph &model,
                                  const std::vector<PhaseTimes> &least,
                                  const Setting &setting,
                                  const Parallelism &config,
                                  const Overlaps &overlaps) {
  return FormsBuilder(model, least, setting, config, overlaps).build();
}

} // namespace mtplan::planner

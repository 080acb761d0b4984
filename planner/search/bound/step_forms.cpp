//===- step_forms.cpp - Lower bounds of a step with one stage -------------===//

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
  bool isKnown = config.tiles == 1;
  PhaseTimes most;
  for (int t : graph.reported) {
    const Tensor &tensor = graph.tensors[at(t)];
    Layout partial = Layout::replicated(tensor.shape.size());
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      if (mesh.axes[axis].size > 1)
        partial = withPlacement(partial, static_cast<int>(axis), kPartial);
    most.reduceStep += reportedReduction(tensor, partial, setting);
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
      const auto [oneGather, oneReduce] = mostPerUse(parameter, state, setting);
      gather = std::max(gather, oneGather);
      reduce = std::max(reduce, oneReduce);
      const OnceTraffic once = onceTraffic(parameter, state, setting);
      gatherOnce = std::max(gatherOnce, once.gather);
      reduceOnce = std::max(reduceOnce, once.reduce);
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

// Returns whether a segment is repeated and reads a shared parameter, whose
// cost counts in some of the repeats only.
bool repeatsShared(const SegmentGraph &segment, const ModelGraph &model) {
  return segment.repeat > 1 &&
         std::ranges::any_of(segment.tensors, [&](const Tensor &tensor) {
           return tensor.kind == TensorKind::parameter &&
                  model.parameters[at(tensor.parameter)].shared;
         });
}

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
      : overlaps(theOverlaps), taxShare(replicaTaxOf(setting, config)),
        zero(config.zeroStage),
        microBatches(static_cast<double>(config.microBatches())),
        transfers(transfersOf(config)), sharing(sharingTime(setting, config)) {
    for (std::size_t s = 0; s < model.segments.size(); ++s) {
      const SegmentGraph &segment = model.segments[s];
      SliceTimes slice = sliceWithoutTax(least[s], config);
      SliceTimes most = mostTraffic(segment, model, setting, config);
      const bool shares = repeatsShared(segment, model);
      if (shares) {
        slice.gather = slice.reduce = {};
        most.gather = most.reduce = {kInfinity};
      }
      const bool isKnown =
          slice.gather == most.gather && slice.reduce == most.reduce;
      addPieces(s, segment.repeat, isKnown || shares,
                overlapOf(slice.forward, slice.gather, most.gather,
                          zero < 3 && !shares),
                overlapOf(slice.backward, slice.reduce, most.reduce,
                          zero < 2 && !shares));
    }
  }

  std::vector<StepForm> build() const {
    std::vector<StepForm> forms;
    for (const Place &gathered : placesOf(overlaps.gather))
      for (const Place &reduced : placesOf(overlaps.reduce)) {
        forms.push_back(formOf(
            [&](std::size_t p) { return termsOf(p, gathered, reduced); }));
        if (zero > 1 && overlaps.reduce)
          forms.push_back(formOf([&](std::size_t p) {
            return termsByReductions(p, gathered, reduced);
          }));
      }
    if (zero > 2 && overlaps.gather)
      forms.push_back(formOf([&](std::size_t p) { return termsByGathers(p); }));
    return forms;
  }

private:
  /// Says where a path changes between traffic and compute. The traffic covers
  /// the pieces before `piece`, and the compute those after `piece`. The path
  /// changes within one repeat of `piece`, which both cover.
  struct Place {
    std::size_t piece = 0;
    /// Says whether the traffic covers all repeats of `piece`, and the compute
    /// one of them; otherwise the traffic covers one, and the compute all.
    bool all = false;

    bool computes(std::size_t p) const {
      return p > piece || (p == piece && !all);
    }
  };

  struct Overlap {
    Seconds compute, traffic; ///< least times of one repeat
    /// The tax of one transfer is at least `tax` and limitedTax * min(compute,
    /// traffic) together; one of the two is 0.
    Line tax;
    double limitedTax = 0.0;
  };
  /// Describes consecutive repeats of a segment that have the same weights.
  struct Piece {
    std::size_t segment = 0;
    bool isFirst = true;  ///< whether the piece has the first repeat
    bool isOthers = true; ///< whether the piece has the other repeats
    double repeats = 1.0;
    Overlap forward, backward;
  };

  /// Bounds the part of a path that has one kind of work of a piece, by
  /// weight * W + tax * min(W, compute) + fixed, where W is this work in the
  /// step.
  struct Term {
    double weight = 0.0, tax = 0.0;
    Seconds fixed;

    Term operator+(const Term &other) const {
      return {weight + other.weight, tax + other.tax, fixed + other.fixed};
    }
  };
  /// Holds the terms of one piece.
  struct Terms {
    Term compute, gather, reduce;
  };

  // Adds the pieces of a segment. A path may change within the first repeat.
  // Unless the traffic of a repeat is known, the first repeat is a piece of its
  // own, so that its traffic counts as the plan has it.
  void addPieces(std::size_t segment, int repeats, bool isKnown,
                 const Overlap &forward, const Overlap &backward) {
    const bool alone = repeats > 1 && !isKnown;
    if (alone)
      pieces.push_back({segment, true, false, 1.0, forward, backward});
    pieces.push_back({segment, !alone, true,
                      static_cast<double>(repeats - (alone ? 1 : 0)), forward,
                      backward});
  }

  // Returns the overlap of one repeat's compute with one transfer.
  // \param least, most  bounds of the transfer's time over all plans
  // \param isOnce  whether the transfer runs once a step, so that the solver
  // may compare its time with `compute`
  Overlap overlapOf(Seconds compute, Seconds least, Seconds most,
                    bool isOnce) const {
    if (isOnce && least < compute && compute < most)
      return {compute, least, {}, taxShare};
    const Line line = lineBelow(compute, least, most);
    return {
        compute, least, {taxShare * line.slope, taxShare * line.fixed}, 0.0};
  }

  std::vector<Place> placesOf(bool overlapped) const {
    std::vector<Place> places{{}};
    for (std::size_t p = 0; overlapped && p < pieces.size(); ++p) {
      if (p > 0)
        places.push_back({p, false});
      if (pieces[p].repeats > 1.0)
        places.push_back({p, true});
    }
    return places;
  }

  template <typename TermsOf> StepForm formOf(TermsOf of) const {
    StepForm form;
    form.fixed = sharing;
    form.segments.resize(pieces.back().segment + 1);
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const Terms terms = of(p);
      const StepForm::Weights weights{terms.compute.weight, terms.gather.weight,
                                      terms.reduce.weight, terms.gather.tax,
                                      terms.reduce.tax};
      StepForm::Segment &segment = form.segments[pieces[p].segment];
      segment.gatherLimit = pieces[p].forward.compute;
      segment.reduceLimit = pieces[p].backward.compute;
      if (pieces[p].isFirst)
        segment.first = weights;
      if (pieces[p].isOthers)
        segment.others = weights;
      form.fixed +=
          terms.compute.fixed + terms.gather.fixed + terms.reduce.fixed;
    }
    return form;
  }

  // Returns the terms of a path that leaves compute for the first all-gathers
  // and for the last reductions only.
  Terms termsOf(std::size_t p, const Place &gathered,
                const Place &reduced) const {
    const Piece &one = pieces[p];
    const int replaced = !gathered.computes(p) + !reduced.computes(p);
    Terms terms;
    if (replaced == 0)
      terms.compute.weight = 1.0;
    else
      terms.compute = computeOf(p, gathered, reduced, 1.0 - 1.0 / microBatches);
    terms.gather.weight = 1.0;
    if (overlaps.gather) {
      // With ZeRO-3, both phases pay the tax of all-gathers.
      const double share = zero < 3 ? 1.0 : 1.0 - replaced / transfers.gathers;
      terms.gather = taxOf(one, one.forward, transfers.gathers, share) +
                     trafficOf(p, gathered, one.forward, transfers.gathers);
    }
    terms.reduce.weight = 1.0;
    if (overlaps.reduce) {
      const double share = zero < 2 || reduced.computes(p)
                               ? 1.0
                               : 1.0 - 1.0 / transfers.reductions;
      terms.reduce = taxOf(one, one.backward, transfers.reductions, share) +
                     trafficOf(p, reduced, one.backward, transfers.reductions);
    }
    return terms;
  }

  // Returns the terms of a path with the reductions of all micro-batches, which
  // follow the first micro-batch. The reductions overlap compute.
  Terms termsByReductions(std::size_t p, const Place &gathered,
                          const Place &reduced) const {
    const Piece &one = pieces[p];
    Terms terms;
    terms.compute = computeOf(p, gathered, reduced, 0.0);
    const bool isOnce = zero < 3; // otherwise they may run beside reductions
    if (overlaps.gather)
      terms.gather =
          trafficOf(p, gathered, one.forward, transfers.gathers) +
          taxOf(one, one.forward, transfers.gathers, isOnce ? 1.0 : 0.0);
    else
      terms.gather.weight = isOnce ? 1.0 : 0.0;
    terms.reduce = trafficOf(p, reduced, one.backward, transfers.reductions) +
                   taxed(one, one.backward, transfers.reductions,
                         1.0 - 1.0 / transfers.reductions);
    return terms;
  }

  // Returns the terms of a path with all all-gathers of ZeRO-3, which overlap
  // compute, and with reductions on the same stream.
  Terms termsByGathers(std::size_t p) const {
    const Piece &one = pieces[p];
    Terms terms;
    terms.gather = taxed(one, one.forward, transfers.gathers, 1.0);
    if (overlaps.reduce)
      terms.reduce = taxed(one, one.backward, transfers.reductions, 1.0);
    return terms;
  }

  // Returns the compute of all micro-batches but one, with `weight`, and of
  // that one as far as `gathered` and `reduced` say. The compute of one phase
  // is not known, so the least times bound that micro-batch.
  Term computeOf(std::size_t p, const Place &gathered, const Place &reduced,
                 double weight) const {
    const auto phaseOf = [&](const Place &place, Seconds compute) {
      return place.computes(p)  ? pieces[p].repeats * compute
             : p == place.piece ? compute
                                : Seconds{};
    };
    return {weight, 0.0,
            phaseOf(gathered, pieces[p].forward.compute) +
                phaseOf(reduced, pieces[p].backward.compute)};
  }

  // Returns a share of the tax of `count` transfers.
  static Term taxOf(const Piece &one, const Overlap &phase, double count,
                    double share) {
    return {share * phase.tax.slope, share * phase.limitedTax,
            share * count * one.repeats * phase.tax.fixed};
  }

  // Returns a share of `count` overlapped transfers, which the tax makes
  // longer.
  static Term taxed(const Piece &one, const Overlap &phase, double count,
                    double share) {
    return Term{share, 0.0, {}} + taxOf(one, phase, count, share);
  }

  // Returns the traffic of piece `p` that is on the path, one of `count`
  // transfers. Repeats may differ, so only the least time of one repeat of
  // several is known.
  Term trafficOf(std::size_t p, const Place &place, const Overlap &phase,
                 double count) const {
    if (p > place.piece)
      return {};
    if (p == place.piece && !place.all && pieces[p].repeats > 1.0)
      return {0.0, 0.0,
              (1.0 + phase.tax.slope + phase.limitedTax) * phase.traffic +
                  phase.tax.fixed};
    return taxed(pieces[p], phase, count, 1.0 / count);
  }

  const Overlaps &overlaps;
  const double taxShare; ///< see replicaTaxOf()
  const int zero;
  const double microBatches;
  const Transfers transfers;
  const Seconds sharing;
  std::vector<Piece> pieces;
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

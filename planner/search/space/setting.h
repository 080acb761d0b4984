//===- setting.h - Options of a search, setting of a solver -----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H
#define MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/strategy.h"
#include "planner/machine/software_json.h"
#include "planner/search/space/parallelism.h"
#include "planner/simulate/step.h"

namespace mtplan::planner {

/// Holds pins by the indices of the graph for which they are resolved.
struct Pins {
  /// Says, by [segment][op], how the tensor axes are used, as wordOf() does;
  /// empty means free.
  std::vector<std::vector<std::string>> ops;
  /// Names, by [parameter], the axes that shard each dimension: "tp", "tp2",
  /// "tp+tp2", or "" for none.
  std::vector<std::optional<std::vector<std::string>>> parameters;
};

/// If set, holds the placements, by tensor axis, of all values between
/// segments: the dimension that the axis splits, or kReplicated.
using Boundary = std::optional<std::vector<int>>;

/// Returns whether no tensor axis splits the values between segments.
inline bool isReplicated(const Boundary &boundary) {
  return boundary && std::ranges::all_of(*boundary, [](int placement) {
           return placement == kReplicated;
         });
}

/// Holds the weights of one segment's times in the sum that the solver
/// minimises. If compute overlaps the traffic of parameters and gradients
/// between replicas, the sum with all weights 1 may exceed the step, and sums
/// with other weights bound the step instead.
struct SumWeights {
  double compute = 1.0; ///< everything that has no member below
  /// Scales slices and masks of weights and gradients in each micro-batch.
  double local = 1.0;
  double gather = 1.0, reduce = 1.0;         ///< in each micro-batch
  double gatherOnce = 1.0, reduceOnce = 1.0; ///< once a step
  double update = 1.0;                       ///< on the device and on the host
  /// StageSolver also adds min(gatherTax * all-gathers, gatherLimit) and
  /// min(reduceTax * reductions, reduceLimit) of each repeat's traffic once a
  /// step. The limits are in seconds.
  double gatherTax = 0.0, reduceTax = 0.0;
  double gatherLimit = 0.0, reduceLimit = 0.0;

  bool operator==(const SumWeights &) const = default;

  /// Appends the weights to the key of a cache.
  void appendTo(std::vector<std::int64_t> &key) const {
    for (double one : {compute, local, gather, reduce, gatherOnce, reduceOnce,
                       update, gatherTax, reduceTax, gatherLimit, reduceLimit})
      key.push_back(std::bit_cast<std::int64_t>(one));
  }
};

/// Returns weights that scale the overlappable traffic between replicas:
/// all-gathers by `gather`, reductions by `reduce`. Traffic that runs once a
/// step can overlap compute; in each micro-batch, all-gathers can under ZeRO-3,
/// and reductions under ZeRO-2 and ZeRO-3. Traffic that cannot overlap compute
/// is scaled by `compute`.
inline SumWeights overlapWeights(double compute, double gather, double reduce,
                                 int zeroStage) {
  SumWeights weights;
  weights.compute = weights.local = compute;
  weights.gatherOnce = gather;
  weights.reduceOnce = reduce;
  weights.gather = zeroStage > 2 ? gather : compute;
  weights.reduce = zeroStage > 1 ? reduce : compute;
  return weights;
}

/// Holds one configuration for the solver: a mesh, a micro-batch, and every
/// other value on which prices depend. Members that occur in SearchOptions or
/// Parallelism, too, are explained there.
struct Setting {
  Mesh mesh;
  std::vector<AxisRule> rules; ///< by axis
  Choices<StepKind> collectives;
  std::int64_t microBatches = 1; ///< per step and replica
  int devices = 1;               ///< of all stages
  int zeroStage = 0;
  bool padsShards = false;
  bool sumsPerUse = false;
  bool scattersEarly = false;
  bool gathersAhead = false;
  Recompute recompute = Recompute::none; ///< applies to repeated segments
  /// Holds the share of a segment's repeats that recompute; the other repeats
  /// save all values. Prices are averages over the repeats.
  double recomputeShare = 1.0;
  std::vector<SumWeights> sumWeights; ///< by segment; empty: all are 1
  /// Holds, by segment, the weights of the first repeat on a stage, whose
  /// traffic cannot overlap the compute of an earlier repeat; empty:
  /// `sumWeights`.
  std::vector<SumWeights> firstWeights;
  /// Holds the share of the micro-batches whose gradients of weights count in
  /// the minimised sum. The share is below 1 in the bound of a zero-bubble
  /// schedule, which postpones some of these gradients
  /// (StageBound::lastBackward).
  double weightsShare = 1.0;
  Offload offload = Offload::none;
  int tiles = 1;
  /// These say whether the device's update, and the host's work for the
  /// optimizer, run in sequence with the traffic between replicas.
  bool updateAddsUp = true, hostAddsUp = true;
  double inFlight = 1.0; ///< see inFlightOf()
  int parts = 1;         ///< virtual stages per stage
  Boundary boundary;
  /// If set, holds the index into parameterStates() of the state that every
  /// shared parameter has, so that stages that are solved separately choose the
  /// same state.
  std::optional<int> sharedState;
  const Machine *machine = nullptr;
  const Software *software = &defaultSoftware();
  Precision precision = Precision::bf16;
  const Pins *pins = nullptr; ///< null: nothing is pinned

  SumWeights weightsOf(int segment) const {
    return sumWeights.empty() ? SumWeights{}
                              : sumWeights[static_cast<std::size_t>(segment)];
  }
  SumWeights firstWeightsOf(int segment) const {
    return firstWeights.empty()
               ? weightsOf(segment)
               : firstWeights[static_cast<std::size_t>(segment)];
  }
};

/// Returns how `strategy` uses the tensor axes, in the format of Pins::ops:
/// "column", or "column+row" if two axes are used differently. `tensorAxis` is
/// the first tensor axis.
std::string wordOf(const Op &op, const Strategy &strategy, int tensorAxis);

/// Counts the bytes per element of training state. Mixed precision takes 2
/// bytes for the gradient and 12 for the optimizer's state, in addition to 2
/// for the weight (Rajbhandari et al. 2020, section 3.1).
struct StateBytes {
  double gradient = 2;
  double optimizer = 12;
  double traffic = 28; ///< read and written by one update, per owned element
  double sweep = 0;    ///< read and written per stored element
  double host = 0;     ///< stored in the host's memory, per owned element
};
/// Returns the usual bytes of AdamW in `precision`; `sweep` and `host` are 0.
StateBytes stateBytesOf(Precision precision);
/// Returns the bytes with the setting's software and offload.
StateBytes stateBytesOf(const Setting &setting);

/// Describes a dimension whose size tp must divide for a split to be legal.
struct Divisor {
  std::string name; ///< "heads", "key/value heads"
  std::int64_t size = 0;
  Split split = Split::head; ///< matters only if tp may use this split
};

/// Describes the progress of a running search.
struct SearchState {
  std::int64_t open = 0; ///< number of configurations not decided yet
  /// Holds the step of the fastest plan so far.
  Seconds fastest{std::numeric_limits<double>::infinity()};
};

/// Holds the choices that are open to a search, and the limits of the search.
struct SearchOptions {
  int devices = 1; ///< dp * tp * pp * cp
  std::optional<int> dp, tp;
  std::optional<std::int64_t> microBatch;
  Choices<int> tp2{{1}}; ///< numbers that do not divide tp are left out
  Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}}, zeroStage{{0}};
  Choices<int> zeroRanks{{0}}; ///< 0: all replicas; open: see zeroRanksOf()
  Choices<ScheduleKind> schedule{{ScheduleKind::oneForwardOneBackward}};
  Choices<Recompute> recompute{{Recompute::none}};
  Choices<int> recomputeLayers{{-1}}; ///< for full recomputation
  /// Says whether `recomputeLayers` also holds for uneven cuts. Otherwise
  /// either all layers of an uneven cut recompute, or none.
  bool countsOfUnevenCuts = true;
  Choices<Offload> offload{{Offload::none}}; ///< requires a machine with hosts
  Choices<int> tiles{{1}}; ///< numbers above 1 only in ZeRO stage 3
  std::vector<int> layers; ///< by virtual stage; empty: evenly distributed
  /// Says whether pipelines with one chunk per stage may also be cut unevenly
  /// (unevenCuts()). The option is ignored if `layers` is set.
  bool unevenCuts = false;
  Overlaps overlaps{false, false, false, false, false, false};
  std::int64_t globalBatch = 1;
  Precision precision = Precision::bf16;
  const Software *software = &defaultSoftware();
  /// Says whether ZeRO pads dimensions that the number of shards does not
  /// divide. Trainers that flatten their state do so, but the IR cannot express
  /// padding.
  bool padsShards = false;
  /// Says whether each segment that does not repeat has its own gradient
  /// accumulator for a shared weight, such as a tied embedding. Then the order
  /// of micro-batches does not change the sums.
  bool sumsPerUse = false;
  /// Says whether ZeRO-1 reduce-scatters gradients during backward, into the
  /// accumulators of the next repeat. This needs memory for the shards of one
  /// more repeat.
  bool scattersEarly = false;
  /// Says whether ZeRO-3 all-gathers the weights of a segment while the
  /// previous segment computes. This needs memory for the weights of both
  /// segments.
  bool gathersAhead = false;
  std::vector<Split> tensorSplits; ///< the splits that tp may use
  /// Lists the splits that each of two tensor axes may use. With many splits, a
  /// segment has too many combinations of layouts.
  std::vector<Split> splitsOfTwoAxes;
  /// Lists the collectives that may change the layout of a value between
  /// operators. Weights and their gradients may use all collectives.
  Choices<StepKind> collectives;
  std::vector<Divisor> divisors;
  const Pins *pins = nullptr;
  int top = 1; ///< number of plans to return, best first
  /// Holds the share of the fastest plan's step by which the first plan may be
  /// slower if it is simpler (search/simplest.h).
  double tolerance = 0.0;
  /// Limits the step: slower plans are rejected.
  Seconds atMost{std::numeric_limits<double>::infinity()};
  /// The search calls `stop` between candidates, and between batches of lower
  /// bounds while it computes them. If `stop` returns true, the search stops.
  /// If there is no plan yet, the search first solves candidates that probably
  /// fit, until there is a plan. If `stop` is null, the search never stops
  /// early.
  std::function<bool()> stop;
  /// If set, the search calls `watch` between candidates, on the thread that
  /// started the search. An exception ends the search.
  std::function<void(const SearchState &)> watch;
};

Setting settingOf(const SearchOptions &options, const Machine &machine,
                  const Parallelism &config);

/// Returns whether some traffic of parameters and gradients overlaps compute.
bool hidesReplicaTraffic(const SearchOptions &options,
                         const Parallelism &config);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H

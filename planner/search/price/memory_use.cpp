//===- memory_use.cpp - Peak memory of one rank ---------------------------===//
//
// Parameters, training state and saved activations are summed over segments.
// The workspace is the peak, over the operators of a segment, of the other
// values that are alive at once, in the segment with the highest peak.
//
//===----------------------------------------------------------------------===//

#include "planner/search/price/memory_use.h"

#include <algorithm>

#include "planner/cost/compute_cost.h"
#include "planner/integers.h"
#include "planner/search/space/segment_runs.h"

namespace mtplan::planner {

namespace {

constexpr double kRounding = 1 + 1e-12;

/// The bytes alive at each operator of a segment.
class Liveness {
public:
  explicit Liveness(std::size_t ops) : change(ops + 2, 0.0) {}
  void add(std::size_t tensor, std::size_t from, std::size_t to, double bytes) {
    change[from] += bytes;
    change[to + 1] -= bytes;
    lives.push_back({tensor, from, to});
  }
  /// The most bytes alive at once, and the first operator with so many; -1 if
  /// nothing is alive.
  struct Peak {
    double bytes = 0.0;
    int op = -1;
  };
  Peak peak() const {
    Peak most;
    double alive = 0.0;
    for (std::size_t o = 0; o < change.size(); ++o) {
      alive += change[o];
      if (alive > most.bytes)
        most = {alive, static_cast<int>(o)};
    }
    return most;
  }
  /// Returns the tensors that are alive at an operator, possibly repeated.
  std::vector<int> aliveAt(int op) const {
    std::vector<int> tensors;
    for (const Life &life : lives)
      if (op >= 0 && life.from <= at(op) && at(op) <= life.to)
        tensors.push_back(static_cast<int>(life.tensor));
    return tensors;
  }

private:
  struct Life {
    std::size_t tensor, from, to;
  };
  std::vector<double> change;
  std::vector<Life> lives;
};

/// The transient values of one segment under one plan.
class Workspace {
public:
  Workspace(const ModelGraph &model, const SegmentPlan &p,
            const Setting &setting)
      : segment(model.segments[at(p.segment)]), plan(p), mesh(setting.mesh),
        overlap(setting.software->overlap),
        tiles(tilesOfTensors(model, segment, setting)),
        liveness(segment.ops.size()) {}

  Liveness::Peak peak() {
    // A collective over the tensor axis moves the full tensor in one message,
    // for any number of tiles.
    for (const PlannedConversion &conversion : plan.conversions)
      forEachMove(conversion.from, conversion.to, [&](const StepMove &step) {
        if (isCollective(step.kind) && isTensorAxis(step.axis))
          tiles[at(conversion.tensor)] = 1;
      });
    for (std::size_t t = 0; t < segment.tensors.size(); ++t)
      if (segment.tensors[t].kind == TensorKind::activation && plan.made[t])
        addVersion(t, *plan.made[t], segment.tensors[t].phase);
    for (const PlannedConversion &conversion : plan.conversions)
      addVersion(at(conversion.tensor), conversion.to, conversion.phase);
    for (Phase phase : {Phase::forward, Phase::backward})
      addMessageBuffers(phase);
    return liveness.peak();
  }

  // Returns the tensors whose layouts decide about the peak.
  std::vector<int> decisiveTensors(const Liveness::Peak &peak) const {
    std::vector<int> tensors = liveness.aliveAt(peak.op);
    // A message is buffered while the previous weight is in use, so the
    // buffers depend on the layouts of all weights.
    for (std::size_t t = 0; buffersMessages && t < segment.tensors.size(); ++t)
      if (segment.tensors[t].kind == TensorKind::parameter ||
          isAccumulated(segment, static_cast<int>(t)))
        tensors.push_back(static_cast<int>(t));
    return tensors;
  }

  // Returns the bytes of inputs, which are alive during the entire micro-batch.
  // Each input has one shard per layout in which operators read it. `known`
  // lists, by tensor, the layouts that earlier runs read; shards in these
  // layouts are not counted again. The call adds the layouts of this run.
  double inputs(std::vector<std::vector<Layout>> &known) const {
    known.resize(segment.tensors.size());
    double bytes = 0.0;
    for (std::size_t t = 0; t < segment.tensors.size(); ++t) {
      if (segment.tensors[t].kind != TensorKind::input)
        continue;
      std::vector<Layout> &layouts = known[t];
      for (std::size_t o = 0; o < segment.ops.size(); ++o)
        for (std::size_t i = 0; i < segment.ops[o].operands.size(); ++i) {
          if (at(segment.ops[o].operands[i].tensor) != t)
            continue;
          Layout layout =
              wanted(segment, plan, static_cast<int>(o), static_cast<int>(i));
          if (contains(layouts, layout))
            continue;
          layouts.push_back(layout);
          bytes += localBytes(segment.tensors[t].shape, layout,
                              segment.tensors[t].elementBytes, mesh);
        }
    }
    return bytes;
  }

private:
  /// A range of operators, both ends included; empty if first > last.
  struct Span {
    std::size_t first, last;
    bool empty() const { return first > last; }
  };

  Span spanOf(Phase phase) const {
    Span span{segment.ops.size(), 0};
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      if (segment.ops[o].phase == phase)
        span = {std::min(span.first, o), o};
    return span;
  }

  // Returns the live range: from the producer to the last operator of the phase
  // that uses the value. A value from a neighbouring segment is alive from the
  // start of the phase. A value for a neighbouring segment is alive until the
  // end of the phase.
  Span lifeOf(std::size_t t, const Layout &layout, Phase phase) const {
    Span all = spanOf(phase), life{segment.ops.size(), 0};
    if (all.empty())
      return life;
    for (std::size_t o = all.first; o <= all.last; ++o)
      if (segment.ops[o].phase == phase && touches(segment.ops[o], t))
        life = {std::min(life.first, o), o};
    bool forward = phase == Phase::forward;
    if (forward ? crosses(segment.carriedIn, plan.carriedIn, t, layout)
                : crosses(segment.gradientIn, plan.gradientIn, t, layout))
      life.first = all.first;
    if (forward ? crosses(segment.carriedOut, plan.carriedOut, t, layout)
                : crosses(segment.gradientOut, plan.gradientOut, t, layout))
      life.last = all.last;
    return life;
  }

  double tileBytes(std::size_t t, const Layout &layout) const {
    const Tensor &tensor = segment.tensors[t];
    return localBytes(tensor.shape, layout, tensor.elementBytes, mesh) *
           largestTileOf(tensor.shape, layout, mesh, tiles[t]);
  }

  void addVersion(std::size_t t, const Layout &layout, Phase phase) {
    if (plan.saved[t] && *plan.saved[t] == layout)
      return;
    if (Span life = lifeOf(t, layout, phase); !life.empty())
      liveness.add(t, life.first, life.last, tileBytes(t, layout));
  }

  /// An all-gathered weight, or a gradient to reduce.
  struct Exchanged {
    std::size_t tensor;
    Span life;
    double bytes; ///< bytes of one message
    bool inTiles;
  };

  // Returns the weights or gradients that replicas exchange, in order of time.
  std::vector<Exchanged> exchangedIn(Phase phase, bool weights) const {
    std::vector<Exchanged> all;
    for (const PlannedConversion &conversion : plan.conversions) {
      std::size_t t = at(conversion.tensor);
      bool ofState = weights ? segment.tensors[t].kind == TensorKind::parameter
                             : isAccumulated(segment, conversion.tensor);
      bool sent = false;
      forEachMove(conversion.from, conversion.to, [&](const StepMove &step) {
        sent |= isCollective(step.kind) && !isTensorAxis(step.axis);
      });
      const Layout &held = weights ? conversion.to : conversion.from;
      Span life = lifeOf(t, held, phase);
      if (conversion.phase == phase && ofState && sent && !life.empty())
        all.push_back({t, life, tileBytes(t, held), tiles[t] > 1});
    }
    std::ranges::stable_sort(all, {}, [&](const Exchanged &one) {
      return weights ? one.life.first : one.life.last;
    });
    return all;
  }

  // Adds the buffers of overlapped messages. A weight, or its next tile, is
  // received while the previous one is in use, and a gradient is sent while the
  // next one is computed; the first weight and the last gradient of a repeat
  // overlap with a neighbouring repeat.
  void addMessageBuffers(Phase phase) {
    Span all = spanOf(phase);
    auto add = [&](const Exchanged &one, std::size_t from, std::size_t end) {
      if (from < end)
        liveness.add(one.tensor, from, end - 1, one.bytes);
    };
    std::vector<Exchanged> weights, gradients;
    if (overlap.gather)
      weights = exchangedIn(phase, true);
    if (overlap.reduce)
      gradients = exchangedIn(phase, false);
    buffersMessages = buffersMessages || !weights.empty() || !gradients.empty();
    for (std::size_t i = 0; i < weights.size(); ++i)
      add(weights[i], i > 0 ? weights[i - 1].life.first : all.first,
          weights[i].life.first);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      add(gradients[i], gradients[i].life.last + 1,
          (i + 1 < gradients.size() ? gradients[i + 1].life.last : all.last) +
              1);
    if (plan.count > 1 && !weights.empty())
      add(weights.front(), weights.back().life.first, all.last + 1);
    if (plan.count > 1 && !gradients.empty())
      add(gradients.back(), all.first, gradients.front().life.last + 1);
    for (const std::vector<Exchanged> *list : {&weights, &gradients})
      for (const Exchanged &one : *list)
        if (one.inTiles)
          liveness.add(one.tensor, one.life.first, one.life.last, one.bytes);
  }

  bool isTensorAxis(int axis) const {
    return roleOf(mesh.axes[at(axis)]) == AxisRole::tensor;
  }

  static bool touches(const Op &op, std::size_t t) {
    auto is = [&](const Use &use) { return at(use.tensor) == t; };
    return std::ranges::any_of(op.operands, is) ||
           std::ranges::any_of(op.results, is);
  }

  static bool crosses(const std::vector<int> &tensors,
                      const std::vector<Layout> &layouts, std::size_t t,
                      const Layout &layout) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (at(tensors[i]) == t && layouts[i] == layout)
        return true;
    return false;
  }

  const SegmentGraph &segment;
  const SegmentPlan &plan;
  const Mesh &mesh;
  const OverlapRules &overlap;
  std::vector<int> tiles; ///< by tensor
  Liveness liveness;
  bool buffersMessages = false; ///< whether a message is overlapped
};

// Returns the bytes of recomputed values of a repeat, except the segment's
// inputs. They are alive only during the repeat's backward.
// `tensors` and `ops` are recomputedTensors() and recomputedOps().
double recomputedBytesOf(const SegmentGraph &segment, const SegmentPlan &plan,
                         const Setting &setting,
                         const std::vector<bool> &tensors,
                         const std::vector<bool> &ops) {
  double bytes = 0.0;
  for (std::size_t t = 0; t < plan.saved.size(); ++t)
    if (plan.saved[t] && tensors[t] &&
        !contains(segment.carriedIn, static_cast<int>(t)))
      bytes += localBytes(segment.tensors[t].shape, *plan.saved[t],
                          segment.tensors[t].elementBytes, setting.mesh);
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    if (ops[o])
      bytes += savedBeside(segment.ops[o], plan.strategies[o], segment.tensors,
                           setting.mesh, *setting.software, setting.precision)
                   .value;
  return bytes;
}

// Returns whether `plan` and the run before it share one saved copy of a
// carried value.
bool keepSame(const SegmentPlan *before, const SegmentPlan &plan,
              std::size_t tensor) {
  return before && before->segment == plan.segment &&
         before->saved[tensor] == plan.saved[tensor] &&
         before->made[tensor] == plan.made[tensor];
}

int repeatsOf(const std::vector<SegmentPlan> &plans, int segment) {
  int repeats = 0;
  for (const SegmentPlan &plan : plans)
    repeats += plan.segment == segment ? plan.count : 0;
  return repeats;
}

} // namespace

Bytes MemoryUse::total() const {
  return parameters + gradients + optimizer + activations + workspace + spare +
         reserved;
}

void MemoryUse::reserveWorkspace(Bytes room) {
  spare = std::max(Bytes{}, room - workspace);
}

bool MemoryUse::hostIsFull() const {
  return host.value > hostLimit.value * kRounding;
}

bool MemoryUse::fits() const {
  return total().value <= limit.value * kRounding && !hostIsFull();
}

RepeatWorkspace workspaceOf(const ModelGraph &model, const SegmentPlan &plan,
                            const Setting &setting) {
  const SegmentGraph &segment = model.segments[at(plan.segment)];
  SegmentPlan one = plan;
  one.count = 1;
  Workspace workspace(model, one, setting);
  const Liveness::Peak peak = workspace.peak();
  std::vector<std::vector<Layout>> known;
  const std::vector<bool> recomputed =
      recomputedTensors(segment, setting.recompute, *setting.software);
  const std::vector<bool> repeated =
      recomputedOps(segment, setting.recompute, *setting.software);
  RepeatWorkspace result{
      {peak.bytes +
       recomputedBytesOf(segment, one, setting, recomputed, repeated) +
       workspace.inputs(known)},
      workspace.decisiveTensors(peak)};
  for (std::size_t t = 0; t < segment.tensors.size(); ++t)
    if (recomputed[t] || segment.tensors[t].kind == TensorKind::input)
      result.tensors.push_back(static_cast<int>(t));
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    if (repeated[o])
      for (const Use &use : segment.ops[o].results)
        result.tensors.push_back(use.tensor);
  std::ranges::sort(result.tensors);
  result.tensors.erase(
      std::unique(result.tensors.begin(), result.tensors.end()),
      result.tensors.end());
  return result;
}

MemoryUse memoryOf(const ModelGraph &model,
                   const std::vector<SegmentPlan> &plans,
                   const Setting &setting) {
  MemoryUse use;
  use.reserved = setting.machine->device.reserved;
  use.limit = setting.machine->device.memory;
  use.hostLimit = hostShareOf(*setting.machine, setting.devices);
  StateBytes perElement = stateBytesOf(setting);
  Bytes inputs;
  std::vector<std::vector<std::vector<Layout>>> inputLayouts(
      model.segments.size()); // by segment and tensor
  std::vector<bool> paid(model.parameters.size(), false);
  const SegmentPlan *before = nullptr;
  for (const SegmentPlan &plan : plans) {
    const SegmentGraph &segment = model.segments[at(plan.segment)];
    double repeats = plan.count;
    for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
      const Parameter &parameter = model.parameters[p];
      if (!plan.parameters[p])
        continue;
      const ParameterState &state = *plan.parameters[p];
      if (parameter.shared && paid[p]) {
        if (setting.sumsPerUse && segment.repeat == 1)
          use.gradients += Bytes{sumBytes(parameter, state, setting)};
        continue;
      }
      paid[p] = true;
      double held = parameter.shared ? 1.0 : repeats;
      double stored =
          held * localBytes(parameter.shape, state.stored, 1, setting.mesh);
      double accumulated =
          held * localBytes(parameter.shape,
                            accumulatorLayout(state, setting.mesh), 1,
                            setting.mesh);
      double owned =
          held * localBytes(parameter.shape, state.owned(), 1, setting.mesh);
      use.parameters += Bytes{stored * parameter.elementBytes};
      use.optimizer += Bytes{owned * perElement.optimizer};
      use.host += Bytes{owned * perElement.host};
      // Each virtual stage has its own space for an early reduce-scatter.
      const double chunks = std::min<double>(setting.parts, plan.count);
      use.gradients +=
          Bytes{accumulated * perElement.gradient +
                chunks * earlyScatterBytes(parameter, state, setting)};
    }
    std::vector<bool> tensorRecomputed =
        recomputedTensors(segment, setting.recompute, *setting.software);
    double share = setting.recomputeShare;
    for (std::size_t t = 0; t < plan.saved.size(); ++t) {
      if (!plan.saved[t])
        continue;
      double bytes = localBytes(segment.tensors[t].shape, *plan.saved[t],
                                segment.tensors[t].elementBytes, setting.mesh);
      bool isRecomputed = tensorRecomputed[t] &&
                          !contains(segment.carriedIn, static_cast<int>(t));
      double kept = repeats;
      if (isCarriedOut(segment, static_cast<int>(t)) &&
          plan.saved[t] == plan.made[t])
        kept = keepSame(before, plan, t)
                   ? 0.0
                   : std::min<double>(setting.parts,
                                      repeatsOf(plans, plan.segment));
      use.activations += Bytes{setting.inFlight * kept * bytes *
                               (isRecomputed ? 1.0 - share : 1.0)};
    }
    before = &plan;
    std::vector<bool> opRecomputed =
        recomputedOps(segment, setting.recompute, *setting.software);
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      Bytes kept =
          savedBeside(segment.ops[o], plan.strategies[o], segment.tensors,
                      setting.mesh, *setting.software, setting.precision);
      use.activations += setting.inFlight * repeats *
                         (opRecomputed[o] ? 1.0 - share : 1.0) * kept;
    }
    Workspace workspace(model, plan, setting);
    const Liveness::Peak peak = workspace.peak();
    if (Bytes bytes{peak.bytes + recomputedBytesOf(segment, plan, setting,
                                                   tensorRecomputed,
                                                   opRecomputed)};
        bytes > use.workspace) {
      use.workspace = bytes;
      use.peakSegment = plan.segment;
      use.peakOp = peak.op;
    }
    inputs += Bytes{workspace.inputs(inputLayouts[at(plan.segment)])};
  }
  use.workspace += inputs;
  return use;
}

} // namespace mtplan::planner

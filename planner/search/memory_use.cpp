//===- memory_use.cpp - What one rank holds at the peak -------------------===//
//
// Static classes and saved activations add up. The workspace is read off the
// program: values alive at once beside the saved ones, operator by operator,
// in the segment where that is most.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include "planner/cost/compute_cost.h"
#include "planner/search/ledger.h"
#include "planner/search/recompute.h"
#include "planner/search/tiling.h"

namespace mtplan::planner {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Bytes alive between two operators of a segment, both included.
class Liveness {
public:
  explicit Liveness(std::size_t ops) : change(ops + 2, 0.0) {}
  void add(std::size_t from, std::size_t to, double bytes) {
    change[from] += bytes;
    change[to + 1] -= bytes;
  }
  double peak() const {
    double alive = 0.0, most = 0.0;
    for (double delta : change) {
      alive += delta;
      most = std::max(most, alive);
    }
    return most;
  }

private:
  std::vector<double> change;
};

/// Transient values of one segment under one plan.
class Workspace {
public:
  Workspace(const ModelGraph &model, const SegmentPlan &p,
            const Setting &setting)
      : segment(model.segments[at(p.segment)]), plan(p), mesh(setting.mesh),
        tiles(tilesOfTensors(model, segment, setting)),
        liveness(segment.ops.size()) {}

  double peak() {
    for (std::size_t t = 0; t < segment.tensors.size(); ++t)
      if (segment.tensors[t].kind == TensorKind::activation && plan.made[t])
        addVersion(t, *plan.made[t], segment.tensors[t].phase);
    for (const PlannedConversion &conversion : plan.conversions)
      addVersion(at(conversion.tensor), conversion.to, conversion.phase);
    return liveness.peak();
  }

  // Inputs stay for the whole micro-batch, a piece per layout they are read in.
  double inputs() const {
    double bytes = 0.0;
    for (std::size_t t = 0; t < segment.tensors.size(); ++t) {
      if (segment.tensors[t].kind != TensorKind::input)
        continue;
      std::vector<Layout> layouts;
      for (std::size_t o = 0; o < segment.ops.size(); ++o)
        for (std::size_t i = 0; i < segment.ops[o].operands.size(); ++i) {
          if (at(segment.ops[o].operands[i].tensor) != t)
            continue;
          Layout layout =
              wanted(segment, plan, static_cast<int>(o), static_cast<int>(i));
          if (std::ranges::find(layouts, layout) == layouts.end())
            layouts.push_back(layout);
        }
      for (const Layout &layout : layouts)
        bytes += localBytes(segment.tensors[t].shape, layout,
                            segment.tensors[t].elementBytes, mesh);
    }
    return bytes;
  }

private:
  // Alive from its maker to the last operator of the phase that touches it.
  // What a neighbour hands over is there from the start of the phase, what is
  // handed to one lives to the end.
  void addVersion(std::size_t t, const Layout &layout, Phase phase) {
    if (plan.saved[t] && *plan.saved[t] == layout)
      return;
    std::size_t begin = segment.ops.size(), end = 0; // of the phase
    std::size_t first = begin, last = end;           // of the version
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      if (segment.ops[o].phase != phase)
        continue;
      begin = std::min(begin, o);
      end = o;
      if (touches(segment.ops[o], t)) {
        first = std::min(first, o);
        last = o;
      }
    }
    if (begin > end)
      return;
    bool forward = phase == Phase::forward;
    if (forward ? crosses(segment.carriedIn, plan.carriedIn, t, layout)
                : crosses(segment.gradientIn, plan.gradientIn, t, layout))
      first = begin;
    if (forward ? crosses(segment.carriedOut, plan.carriedOut, t, layout)
                : crosses(segment.gradientOut, plan.gradientOut, t, layout))
      last = end;
    if (first <= last)
      liveness.add(first, last,
                   localBytes(segment.tensors[t].shape, layout,
                              segment.tensors[t].elementBytes, mesh) /
                       tiles[t]);
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
  std::vector<int> tiles; ///< by tensor
  Liveness liveness;
};

// Whether `plan` keeps the very value that the run before it does, which hands
// it on.
bool keepSame(const SegmentPlan *before, const SegmentPlan &plan,
              std::size_t tensor) {
  return before && before->segment == plan.segment &&
         before->saved[tensor] == plan.saved[tensor] &&
         before->made[tensor] == plan.made[tensor];
}

int copiesOf(const std::vector<SegmentPlan> &plans, int segment) {
  int copies = 0;
  for (const SegmentPlan &plan : plans)
    copies += plan.segment == segment ? plan.count : 0;
  return copies;
}

} // namespace

Bytes MemoryUse::total() const {
  return parameters + gradients + optimizer + activations + workspace +
         reserved;
}

bool MemoryUse::fits() const {
  constexpr double kRounding = 1 + 1e-12;
  return total().value <= limit.value * kRounding &&
         host.value <= hostLimit.value * kRounding;
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
  std::vector<bool> paid(model.parameters.size(), false);
  const SegmentPlan *before = nullptr;
  for (const SegmentPlan &plan : plans) {
    const SegmentGraph &segment = model.segments[at(plan.segment)];
    double copies = plan.count;
    for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
      const Parameter &parameter = model.parameters[p];
      if (!plan.parameters[p] || (parameter.shared && paid[p]))
        continue;
      paid[p] = true;
      const ParameterState &state = *plan.parameters[p];
      double held = parameter.shared ? 1.0 : copies;
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
      use.gradients += Bytes{accumulated * perElement.gradient};
    }
    // Made a second time, all but what the segment is handed lives while one
    // copy's backward runs.
    double again = 0.0;
    std::vector<bool> remade =
        tensorsAgain(segment, setting.recompute, *setting.software);
    double recomputed = setting.recomputeShare;
    for (std::size_t t = 0; t < plan.saved.size(); ++t) {
      if (!plan.saved[t])
        continue;
      double bytes = localBytes(segment.tensors[t].shape, *plan.saved[t],
                                segment.tensors[t].elementBytes, setting.mesh);
      bool twice = remade[t] &&
                   std::ranges::find(segment.carriedIn, static_cast<int>(t)) ==
                       segment.carriedIn.end();
      if (twice)
        again += bytes;
      double kept = copies;
      if (isHandedOn(segment, static_cast<int>(t)) &&
          plan.saved[t] == plan.made[t])
        kept = keepSame(before, plan, t)
                   ? 0.0
                   : std::min<double>(setting.parts,
                                      copiesOf(plans, plan.segment));
      use.activations += Bytes{setting.inFlight * kept * bytes *
                               (twice ? 1.0 - recomputed : 1.0)};
    }
    before = &plan;
    std::vector<bool> redone =
        operatorsAgain(segment, setting.recompute, *setting.software);
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      Bytes kept =
          savedBeside(segment.ops[o], plan.strategies[o], segment.tensors,
                      setting.mesh, *setting.software, setting.precision);
      if (redone[o])
        again += kept.value;
      use.activations += setting.inFlight * copies *
                         (redone[o] ? 1.0 - recomputed : 1.0) * kept;
    }
    Workspace workspace(model, plan, setting);
    use.workspace = std::max(use.workspace, Bytes{workspace.peak() + again});
    inputs += Bytes{workspace.inputs()};
  }
  use.workspace += inputs;
  return use;
}

} // namespace mtplan::planner

//===- segment_problem.cpp - A segment as a choice problem ----------------===//

#include "planner/search/segment/segment_problem.h"

#include <algorithm>
#include <functional>

#include "planner/cost/compute_cost.h"
#include "planner/integers.h"
#include "planner/search/space/segment_runs.h"

namespace mtplan::planner {

namespace {

class Builder {
public:
  Builder(const ModelGraph &graph, int segmentIndex, const Setting &s,
          const std::vector<bool> &ownerOf, bool apart,
          bool weightGradients = true)
      : model(graph), segment(graph.segments[at(segmentIndex)]),
        index(segmentIndex), setting(s), weights(s.weightsOf(segmentIndex)),
        tensorAxis(tensorAxisOf(s.mesh)), owner(ownerOf), phasesApart(apart),
        hasWeightGradients(weightGradients),
        opRecomputed(recomputedOps(segment, s.recompute, *s.software)),
        tensorRecomputed(recomputedTensors(segment, s.recompute, *s.software)),
        runs(opRunsOf(graph, segment, s)),
        tiles(tilesOfTensors(graph, segment, s)),
        likeOf(segment.tensors.size(), -1) {}

  SegmentProblem build() {
    result.computeWeight = weights.compute;
    addOperators();
    addBoundary();
    addParameters();
    addReported();
    for (std::size_t t = 0; t < segment.tensors.size(); ++t)
      if (segment.tensors[t].kind != TensorKind::input)
        addTensor(static_cast<int>(t));
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      if (runs[o].savedPasses > 0 && isCounted(segment.ops[o]))
        addUnfused(o);
    return std::move(result);
  }

private:
  int addVariable(std::size_t domain) {
    result.link.problem.domains.push_back(static_cast<int>(domain));
    return static_cast<int>(result.link.problem.domains.size()) - 1;
  }

  void addOperators() {
    std::size_t tensors = segment.tensors.size();
    result.domains.resize(tensors);
    result.savedVariables.assign(tensors, -1);
    makers.resize(tensors);
    forwardReaders = backwardReaders = std::vector<std::vector<Port>>(tensors);
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const Op &op = segment.ops[o];
      std::vector<Strategy> strategies = legalStrategies(op, isPinned(o));
      keepPinned(op, o, strategies);
      int variable = addVariable(strategies.size());
      addCompute(op, o, strategies, variable);
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        addReader(op.operands[i].tensor, op.phase, variable, strategies.size(),
                  [&](std::size_t v) {
                    return operandLayout(op, strategies[v],
                                         static_cast<int>(i));
                  });
      for (std::size_t i = 0; i < op.results.size(); ++i)
        makers[at(op.results[i].tensor)] =
            port(op.results[i].tensor, variable, strategies.size(),
                 [&](std::size_t v) {
                   return resultLayout(op, strategies[v], static_cast<int>(i));
                 });
      result.strategies.push_back(std::move(strategies));
    }
  }

  void addCompute(const Op &op, std::size_t o,
                  const std::vector<Strategy> &strategies, int variable) {
    CostTable compute{{variable}, {}, {}}, saved{{variable}, {}, {}};
    bool keeps = false;
    for (const Strategy &strategy : strategies) {
      compute.time.push_back(computeTime(op, runs[o], strategy, segment.tensors,
                                         setting.mesh, *setting.machine,
                                         *setting.software)
                                 .value);
      saved.memory.push_back(savedBeside(op, strategy, segment.tensors,
                                         setting.mesh, *setting.software,
                                         setting.precision)
                                 .value);
      keeps |= saved.memory.back() > 0.0;
    }
    if (!isCounted(op))
      std::ranges::fill(compute.time, 0.0);
    addTimed(std::move(compute), op.phase, opRecomputed[o],
             makesWeightGradients(segment, op));
    if (keeps)
      addSaved(std::move(saved), opRecomputed[o]);
  }

  bool isCounted(const Op &op) const {
    return hasWeightGradients || !makesWeightGradients(segment, op);
  }

  // Adds a table of seconds of one micro-batch. A `recomputed` forward operator
  // also runs in backward, in the repeats that recompute.
  void addTimed(CostTable table, Phase phase, bool recomputed,
                bool ofWeights = false, bool isWeighted = false) {
    bool backward = phase == Phase::backward;
    double share = backward ? 1.0 : recomputed ? setting.recomputeShare : 0.0;
    if (phasesApart) {
      table.memory.assign(table.time.size(), 0.0);
      for (std::size_t i = 0; i < table.time.size(); ++i) {
        if (table.time[i] == kInfinity)
          continue;
        table.memory[i] = table.time[i] * share;
        if (backward)
          table.time[i] = 0.0;
      }
    }
    add(std::move(table),
        {CostScale::perMicroBatch, recomputed, -1, ofWeights, isWeighted});
  }

  // Adds a table of saved bytes. Repeats that recompute do not save a
  // `recomputed` value, which is then alive only in the repeat's backward.
  void addSaved(CostTable table, bool recomputed,
                CostScale scale = CostScale::perMicroBatch) {
    table.time.assign(table.memory.size(), 0.0);
    if (!phasesApart)
      add(std::move(table), {scale, recomputed});
  }

  void add(CostTable table, TableScale scale) {
    result.link.problem.tables.push_back(std::move(table));
    result.scales.push_back(scale);
  }

  // Returns the legal strategies of `op`. Unless the operator is pinned, a
  // product or attention keeps only the strategies that split it over a tensor
  // axis, if there are any.
  std::vector<Strategy> legalStrategies(const Op &op, bool pinned) const {
    std::vector<Strategy> strategies =
        strategiesOf(op, setting.mesh, setting.rules);
    if (op.opClass == OpClass::memory || pinned)
      return strategies;
    auto isSplit = [&](const Strategy &strategy) {
      return std::any_of(strategy.axes.begin() + tensorAxis,
                         strategy.axes.end(),
                         [](int choice) { return choice >= 0; });
    };
    if (std::ranges::any_of(strategies, isSplit))
      std::erase_if(strategies, std::not_fn(isSplit));
    return strategies;
  }

  bool isPinned(std::size_t o) const {
    return setting.pins && !setting.pins->ops[at(index)][o].empty();
  }

  // Removes the strategies that a pin forbids. Values may still be saved in the
  // layouts of the removed strategies.
  void keepPinned(const Op &op, std::size_t o,
                  std::vector<Strategy> &strategies) {
    if (!isPinned(o) || tensorRanksOf(setting.mesh) == 1)
      return;
    for (const Strategy &strategy : legalStrategies(op, false)) {
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        result.domains[at(op.operands[i].tensor)].add(
            operandLayout(op, strategy, static_cast<int>(i)));
      for (std::size_t i = 0; i < op.results.size(); ++i)
        result.domains[at(op.results[i].tensor)].add(
            resultLayout(op, strategy, static_cast<int>(i)));
    }
    const std::string &word = setting.pins->ops[at(index)][o];
    std::erase_if(strategies, [&](const Strategy &strategy) {
      return word != wordOf(op, strategy, tensorAxis);
    });
  }

  void addBoundary() {
    auto &link = result.link;
    link.repeat = segment.repeat;
    auto enter = [&](const std::vector<int> &tensors, std::vector<int> &side,
                     bool makes, Phase phase) {
      for (int tensor : tensors) {
        std::vector<Layout> layouts =
            boundaryLayouts(segment.tensors[at(tensor)], setting);
        int variable = addVariable(layouts.size());
        side.push_back(variable);
        result.boundary.push_back(layouts);
        auto layoutAt = [&](std::size_t v) { return layouts[v]; };
        if (makes)
          makers[at(tensor)] = port(tensor, variable, layouts.size(), layoutAt);
        else
          addReader(tensor, phase, variable, layouts.size(), layoutAt);
      }
    };
    // Both sides of a boundary list forward values first, then gradients.
    enter(segment.carriedIn, link.in, true, Phase::forward);
    enter(segment.gradientOut, link.in, false, Phase::backward);
    enter(segment.carriedOut, link.out, false, Phase::forward);
    enter(segment.gradientIn, link.out, true, Phase::backward);
  }

  void addParameters() {
    result.parameterVariables.assign(model.parameters.size(), -1);
    result.parameterStates.resize(model.parameters.size());
    for (std::size_t t = 0; t < segment.tensors.size(); ++t)
      if (segment.tensors[t].kind == TensorKind::parameter)
        addParameter(static_cast<int>(t), segment.tensors[t].parameter);
    for (const Accumulation &sum : segment.accumulations) {
      const auto &states = result.parameterStates[at(sum.parameter)];
      int variable = result.parameterVariables[at(sum.parameter)];
      addReader(sum.tensor, Phase::backward, variable, states.size(),
                [&](std::size_t v) {
                  return accumulatorLayout(states[v], setting.mesh);
                });
      if (!phasesApart)
        add({{variable}, std::vector<double>(states.size(), 0.0), {}},
            {CostScale::accumulation, false, sum.parameter, true});
    }
  }

  void addReported() {
    if (phasesApart)
      return;
    for (int t : segment.reported) {
      const Tensor &tensor = segment.tensors[at(t)];
      CostTable table{{makers[at(t)].variable}, {}, {}};
      for (int layout : makers[at(t)].layouts)
        table.time.push_back(
            weights.reduceOnce *
            reportedReduction(tensor, result.domains[at(t)].layouts[at(layout)],
                              setting)
                .value);
      add(std::move(table), {CostScale::perStep});
    }
  }

  // Makes the parameter's variable, which may be new, the producer of `tensor`.
  void addParameter(int tensor, int parameter) {
    int &variable = result.parameterVariables[at(parameter)];
    auto &states = result.parameterStates[at(parameter)];
    if (variable < 0) {
      states = planner::parameterStates(model, parameter, setting);
      variable = addVariable(states.size());
      const Parameter &what = model.parameters[at(parameter)];
      const bool pays = !what.shared || owner[at(parameter)];
      if (what.shared)
        result.link.shared.emplace_back(variable, parameter);
      if (!phasesApart &&
          (pays || (setting.sumsPerUse && segment.repeat == 1))) {
        CostTable table{{variable}, {}, {}}, behind = table;
        for (const ParameterState &state : states) {
          behind.memory.push_back(earlyScatterBytes(what, state, setting));
          Cost cost = parameterCost(what, state, setting, pays, weights);
          table.time.push_back(cost.time);
          table.memory.push_back(cost.memory);
        }
        add(std::move(table),
            {what.shared ? CostScale::sharedByRepeats : CostScale::perStep});
        if (setting.scattersEarly)
          addSaved(std::move(behind), false, CostScale::perChunk);
      }
    }
    makers[at(tensor)] = port(tensor, variable, states.size(),
                              [&](std::size_t v) { return states[v].stored; });
  }

  template <typename LayoutAt>
  Port port(int tensor, int variable, std::size_t values, LayoutAt layoutAt) {
    Port made{variable, {}};
    made.layouts.reserve(values);
    for (std::size_t v = 0; v < values; ++v)
      made.layouts.push_back(result.domains[at(tensor)].add(layoutAt(v)));
    return made;
  }

  template <typename LayoutAt>
  void addReader(int tensor, Phase phase, int variable, std::size_t values,
                 LayoutAt layoutAt) {
    if (segment.tensors[at(tensor)].kind == TensorKind::input)
      return; // the data loader provides every rank's shard
    auto &readers = phase == Phase::forward ? forwardReaders[at(tensor)]
                                            : backwardReaders[at(tensor)];
    Port reader = port(tensor, variable, values, layoutAt);
    if (!contains(readers, reader))
      readers.push_back(std::move(reader));
  }

  // Adds layouts that are replicated over a tensor axis. A value can change its
  // split through such a layout, without all_to_all.
  void addReplicated(LayoutDomain &domain) const {
    for (int axis : tensorAxesOf(setting.mesh))
      for (int l = 0, known = domain.size(); l < known; ++l)
        domain.add(withPlacement(domain.layouts[at(l)], axis, kReplicated));
  }

  void addTensor(int t) {
    const Tensor &tensor = segment.tensors[at(t)];
    std::vector<Port> &forward = forwardReaders[at(t)];
    std::vector<Port> &backward = backwardReaders[at(t)];
    if (forward.empty() && backward.empty())
      return;
    LayoutDomain &domain = result.domains[at(t)];
    bool saved = tensor.kind == TensorKind::activation &&
                 tensor.phase == Phase::forward && !backward.empty();
    Port maker = makers[at(t)];
    Port backwardMaker = maker;
    if (saved) {
      backwardMaker = savedPort(t, domain);
      forward.push_back(backwardMaker);
    }
    const bool passed = isPassed(t);
    if (passed && !setting.collectives.only.empty())
      addReplicated(domain);
    price(t, passed);
    if (saved) {
      // A repeat that recomputes saves only those values that are the segment's
      // inputs.
      bool recomputed =
          tensorRecomputed[at(t)] && !contains(segment.carriedIn, t);
      CostTable memory{{backwardMaker.variable}, {}, {}};
      for (int layout : backwardMaker.layouts)
        memory.memory.push_back(domain.bytes[at(layout)]);
      if (setting.software->memory.savesAsProduced)
        add(savedAsProduced(maker, backwardMaker, domain),
            {CostScale::perStep});
      if (isCarriedOut(segment, t))
        addCarried(maker, backwardMaker, memory, recomputed);
      else
        addSaved(std::move(memory), recomputed);
    }
    if (!forward.empty())
      addConversions({t, Phase::forward, maker, forward, -1, {}});
    if (!backward.empty())
      addConversions({t, Phase::backward, backwardMaker, backward, -1, {}});
  }

  // Prices the layout changes of a tensor; equal tensors are priced once.
  void price(int t, bool passed) {
    const Tensor &tensor = segment.tensors[at(t)];
    LayoutDomain &domain = result.domains[at(t)];
    StateScales scales{weights.reduce, weights.local, weights.compute};
    if (tensor.kind == TensorKind::parameter)
      scales.betweenReplicas = weights.gather;
    const std::vector<StepKind> kinds = stepsBetweenReplicas(model, segment, t);
    auto isLike = [&](const Priced &other) {
      const Tensor &known = segment.tensors[at(other.tensor)];
      return other.passed == passed && other.scales == scales &&
             other.kinds == kinds && known.shape == tensor.shape &&
             known.elementBytes == tensor.elementBytes &&
             tiles[at(other.tensor)] == tiles[at(t)] &&
             result.domains[at(other.tensor)].layouts == domain.layouts;
    };
    if (auto like = std::ranges::find_if(priced, isLike);
        like != priced.end()) {
      likeOf[at(t)] = like->tensor;
      domain = result.domains[at(like->tensor)];
      return;
    }
    likeOf[at(t)] = t;
    priced.push_back({t, passed, scales, kinds});
    domain.price(tensor.shape, tensor.elementBytes, passed, setting,
                 tiles[at(t)], scales);
    if (!passed && !parametersMove(setting))
      for (int axis : tensorAxesOf(setting.mesh))
        domain.keepInPlace(axis);
    if (!kinds.empty())
      domain.restrictBetweenReplicas(kinds, tensor.shape, setting.mesh);
  }

  // A carried value is saved once for all repeats of a virtual stage if its
  // saved layout is the layout in which it is passed on. Otherwise the value is
  // saved once per repeat.
  void addCarried(const Port &carried, const Port &saved,
                  const CostTable &memory, bool recomputed) {
    CostTable together{{carried.variable, saved.variable}, {}, {}};
    CostTable apart = together;
    for (int from : carried.layouts)
      for (std::size_t i = 0; i < saved.layouts.size(); ++i) {
        bool same = from == saved.layouts[i];
        together.memory.push_back(same ? memory.memory[i] : 0.0);
        apart.memory.push_back(same ? 0.0 : memory.memory[i]);
      }
    addSaved(std::move(together), recomputed, CostScale::carriedOut);
    addSaved(std::move(apart), recomputed);
  }

  // Returns a saved value's port, which has all layouts that are not partial.
  Port savedPort(int t, LayoutDomain &domain) {
    Port saved;
    for (int i = 0; i < domain.size(); ++i)
      if (domain.layouts[at(i)].partial.empty())
        saved.layouts.push_back(i);
    if (saved.layouts.empty()) { // the value has only partial layouts
      for (int i = 0; i < domain.size(); ++i)
        saved.layouts.push_back(i);
    }
    saved.variable = addVariable(saved.layouts.size());
    result.savedVariables[at(t)] = saved.variable;
    return saved;
  }

  void addConversions(Conversions conversions) {
    const LayoutDomain &domain = result.domains[at(conversions.tensor)];
    const int number = likeOf[at(conversions.tensor)];
    if (domain.size() > 1) {
      const bool again = isRecomputed(conversions);
      const bool isWeighted = !isPassed(conversions.tensor);
      if (!hasLargeTable(conversions)) {
        addTimed(tables.directTable(conversions, domain, number),
                 conversions.phase, again, false, isWeighted);
      } else {
        chooseSets(conversions);
        conversions.setVariable = addVariable(conversions.sets.size());
        addTimed(tables.setTable(conversions, domain, number),
                 conversions.phase, again, false, isWeighted);
        for (const Port &reader : conversions.readers)
          add(membershipTable(conversions, reader), {CostScale::perStep});
      }
    }
    result.conversions.push_back(std::move(conversions));
  }

  void addUnfused(std::size_t o) {
    const Op &op = segment.ops[o];
    const int t = op.operands[at(op.fusedOperand)].tensor;
    CostTable apart{{makers[at(t)].variable, static_cast<int>(o)}, {}, {}};
    for (int made : makers[at(t)].layouts)
      for (const Strategy &strategy : result.strategies[o])
        apart.time.push_back(
            unfusedTime(op, runs[o], strategy,
                        result.domains[at(t)].layouts[at(made)],
                        segment.tensors, setting.mesh, *setting.machine,
                        *setting.software)
                .value);
    addTimed(std::move(apart), op.phase, opRecomputed[o],
             makesWeightGradients(segment, op));
  }

  // Returns whether a tensor is an activation that passes between operators.
  bool isPassed(int t) const {
    return segment.tensors[at(t)].kind == TensorKind::activation &&
           !isAccumulated(segment, t);
  }

  bool isRecomputed(const Conversions &conversions) const {
    return conversions.phase == Phase::forward &&
           tensorRecomputed[at(conversions.tensor)];
  }

  const ModelGraph &model;
  const SegmentGraph &segment;
  int index;
  const Setting &setting;
  const SumWeights weights;
  int tensorAxis;
  const std::vector<bool> &owner;
  bool phasesApart, hasWeightGradients;
  std::vector<bool> opRecomputed, tensorRecomputed;
  std::vector<OpRun> runs; ///< by operator
  std::vector<int> tiles;  ///< by tensor
  std::vector<int> likeOf; ///< by tensor: the first with equal prices
  /// Describes a tensor whose layout changes have prices.
  struct Priced {
    int tensor;
    bool passed; ///< an activation that passes between operators
    StateScales scales;
    std::vector<StepKind> kinds; ///< stepsBetweenReplicas()
  };
  std::vector<Priced> priced;
  ConversionTables tables;
  SegmentProblem result;
  std::vector<Port> makers;
  std::vector<std::vector<Port>> forwardReaders, backwardReaders;
};

} // namespace

SegmentProblem unitProblem(const ModelGraph &model, int segment,
                           const Setting &setting,
                           const std::vector<bool> &owner) {
  return Builder(model, segment, setting, owner, false).build();
}

SegmentProblem phaseProblem(const ModelGraph &model, int segment,
                            const Setting &setting, bool weightGradients) {
  std::vector<bool> noOwner(model.parameters.size(), false);
  return Builder(model, segment, setting, noOwner, true, weightGradients)
      .build();
}

} // namespace mtplan::planner

//===- relaxation.cpp - Lower bounds from independent segments ------------===//

#include "planner/search/bound/relaxation.h"

#include <algorithm>
#include <set>

#include "planner/integers.h"
#include "planner/search/on_threads.h"

namespace mtplan::planner {

namespace {

Seconds computeOf(const StageTimes &stage, int microBatches) {
  Seconds work;
  for (const ChunkTimes &chunk : stage.chunks)
    for (const SliceTimes &slice : chunk.slices)
      work += microBatches * slice.count * (slice.forward + slice.backward);
  return work;
}

} // namespace

Relaxation::Relaxation(const ModelGraph &theModel, const Machine &theMachine,
                       const SearchOptions &theOptions)
    : model(theModel), machine(theMachine), options(theOptions),
      replicas(theModel) {}

bool Relaxation::mayDivide() const {
  return options.schedule.allows(ScheduleKind::zeroBubble) &&
         options.pp.only != std::vector{1};
}

MicroBatchBound Relaxation::solve(const Parallelism &config,
                                  Recompute recompute, const Boundary &boundary,
                                  SolverCache &solvers) const {
  // Within a micro-batch only replicas that share a set of experts communicate.
  Parallelism alone = config;
  alone.dp = config.ep;
  alone.pp = alone.virtualStages = 1;
  alone.zeroStage = 0;
  alone.offload = Offload::none;
  alone.tiles = 1; // no other number of tiles is faster
  alone.zeroRanks = 1;
  alone.globalBatch = config.microBatch * config.ep;
  alone.recompute = recompute;
  alone.recomputeLayers = -1;
  alone.layers.clear();
  Setting setting = settingOf(options, machine, alone);
  // ReplicaBounds bounds the traffic. With ZeRO-2 and ZeRO-3, weights and
  // gradients need other slices and masks.
  setting.sumWeights.assign(model.segments.size(), {1, 0, 0, 0, 0, 0, 0});
  setting.boundary = boundary;
  ModelGraph graph = withBatch(model, config.microBatch * config.ep);
  ChainProblem chain;
  MicroBatchBound bound;
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    chain.links.push_back(
        phaseProblem(graph, static_cast<int>(s), setting).link);
    for (int domain : chain.links.back().problem.domains)
      bound.isLegal = bound.isLegal && domain > 0;
  }
  if (!bound.isLegal)
    return bound;
  ChainSolver &solver = solvers.solverOf(chain);
  std::vector<LeastCost> least =
      solver.least(chain, {{1.0, 0.0}, {0.0, 1.0}, {1.0, 1.0}});
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    bound.forward.push_back({least[0].byLink[s]});
    bound.backward.push_back({least[1].byLink[s]});
    bound.both.push_back({least[2].byLink[s]});
  }
  bound.all = {least[2].total};
  bound.isLegal = least[2].total < kInfinity;
  if (!bound.isLegal || !mayDivide())
    return bound;
  chain.links.clear();
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    const auto segment = static_cast<int>(s);
    chain.links.push_back(phaseProblem(graph, segment, setting, false).link);
    bound.weightGradient.push_back(
        leastWeightGradients(graph, segment, setting));
  }
  least = solvers.solverOf(chain).least(chain, {{0.0, 1.0}, {1.0, 1.0}});
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    bound.inputGradient.push_back({least[0].byLink[s]});
    bound.withoutWeights.push_back({least[1].byLink[s]});
  }
  return bound;
}

std::vector<Recompute> Relaxation::kindsOf(const Parallelism &config) {
  double share = recomputeShareOf(config);
  if (config.recompute == Recompute::none || share == 1.0)
    return {config.recompute};
  return {Recompute::none, config.recompute};
}

void Relaxation::prepare(const std::vector<Parallelism> &candidates,
                         const std::vector<Boundary> &boundaries) {
  struct Missing {
    const Parallelism *config;
    Recompute recompute;
    Boundary boundary;
    MicroBatchBound *place;
  };
  std::vector<Missing> missing;
  for (const Parallelism &config : candidates)
    for (const Boundary &boundary : boundaries)
      for (Recompute kind : kindsOf(config))
        if (auto [entry, isNew] =
                microBatches.try_emplace(keyOf(config, kind, boundary));
            isNew)
          missing.push_back({&config, kind, boundary, &entry->second});
  const std::vector<Seconds> none(model.segments.size());
  const std::vector<Seconds> divided(mayDivide() ? none.size() : 0);
  for (const Missing &one : missing)
    *one.place = {true, none, none, divided, divided, divided, none, {}};
  auto find = [&](const Missing &one, std::size_t thread) {
    try {
      *one.place =
          solve(*one.config, one.recompute, one.boundary, solversOf[thread]);
    } catch (const TooLarge &) {
      return; // the bounds remain 0
    }
  };
  constexpr std::size_t kAtOnce = 32;
  for (std::size_t first = 0; first < missing.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, missing.size() - first);
    if (first > 0 && options.stop && options.stop())
      return;
    onThreads(solversOf.size(), count, [&](std::size_t i, std::size_t thread) {
      find(missing[first + i], thread);
    });
  }
}

Bytes Relaxation::carriedBytes(const std::vector<int> &tensors,
                               const SegmentGraph &segment,
                               const Parallelism &config,
                               const Boundary &boundary) const {
  double ranks = config.cp;
  const std::vector<int> sizes =
      config.tp2 == 1 ? std::vector{config.tp}
                      : std::vector{config.tp / config.tp2, config.tp2};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (!boundary || (*boundary)[axis] != kReplicated)
      ranks *= sizes[axis];
  double bytes = 0.0;
  for (int t : tensors) {
    const Tensor &tensor = segment.tensors[at(t)];
    double one = tensor.elementBytes;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d)
      one *= static_cast<int>(d) == tensor.batchDim
                 ? static_cast<double>(config.microBatch)
                 : static_cast<double>(tensor.shape[d]);
    bytes += one / ranks;
  }
  return {bytes};
}

Bytes Relaxation::tied(const Setting &setting,
                       const std::vector<PipelinePart> &parts,
                       int stages) const {
  Bytes bytes;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    if (!model.parameters[p].shared)
      continue;
    std::set<std::size_t> holders;
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (const RepeatRange &range : parts[part])
        if (std::ranges::any_of(model.segments[at(range.segment)].tensors,
                                [&](const Tensor &one) {
                                  return one.parameter == static_cast<int>(p);
                                }))
          holders.insert(part % at(stages));
    if (holders.size() < 2)
      continue;
    double least = kInfinity;
    for (const ParameterState &state :
         parameterStates(model, static_cast<int>(p), setting))
      least = std::min(
          least, tiedGradientBytes(model.parameters[p], state, setting).value);
    if (least < kInfinity)
      bytes += Bytes{least};
  }
  return bytes;
}

MicroBatchBound Relaxation::boundOf(const Parallelism &config, double share,
                                    const Boundary &boundary) const {
  std::vector<Recompute> kinds = kindsOf(config);
  MicroBatchBound bound =
      microBatches.at(keyOf(config, kinds.front(), boundary));
  if (kinds.size() == 1 || !bound.isLegal)
    return bound;
  const MicroBatchBound &recomputed =
      microBatches.at(keyOf(config, kinds.back(), boundary));
  auto mix = [&](Seconds &once, Seconds more) {
    once = (1.0 - share) * once + share * more;
  };
  for (std::size_t s = 0; s < bound.forward.size(); ++s) {
    mix(bound.forward[s], recomputed.forward[s]);
    mix(bound.backward[s], recomputed.backward[s]);
    mix(bound.both[s], recomputed.both[s]);
  }
  for (std::size_t s = 0; s < bound.inputGradient.size(); ++s) {
    mix(bound.inputGradient[s], recomputed.inputGradient[s]);
    mix(bound.weightGradient[s], recomputed.weightGradient[s]);
    mix(bound.withoutWeights[s], recomputed.withoutWeights[s]);
  }
  mix(bound.all, recomputed.all);
  return bound;
}

Seconds Relaxation::microBatchOf(const Parallelism &config,
                                 const Boundary &boundary) const {
  MicroBatchBound bound =
      boundOf(config, leastRecomputeShareOf(config), boundary);
  return bound.isLegal ? bound.all : Seconds{kInfinity};
}

LayerTimes Relaxation::layerTimes(const Parallelism &config) const {
  const MicroBatchBound &bound =
      microBatches.at(keyOf(config, kindsOf(config)[0], {}));
  LayerTimes times;
  int layers = layersOf(model);
  for (const PipelinePart &layer :
       pipelineParts(model, std::vector(at(layers), 1))) {
    Seconds forward, both;
    for (const RepeatRange &range : layer) {
      forward += bound.forward[at(range.segment)] * range.count;
      both += (bound.forward[at(range.segment)] +
               bound.backward[at(range.segment)]) *
              range.count;
    }
    times.forward.push_back(forward);
    times.both.push_back(both);
  }
  return times;
}

std::vector<std::vector<PhaseTimes>>
Relaxation::leastTimes(const Parallelism &config, const Setting &setting,
                       const std::vector<PipelinePart> &parts, bool isDivided) {
  const ReplicaBounds::Times &replica = replicas.of(config, setting);
  std::vector<std::vector<PipelinePart>> heldBy(at(config.pp));
  for (std::size_t part = 0; part < parts.size(); ++part)
    heldBy[part % heldBy.size()].push_back(parts[part]);
  std::vector<std::vector<PhaseTimes>> timesOf;
  double before = -1.0;
  MicroBatchBound micro;
  for (int stage = 0; stage < config.pp; ++stage) {
    const double share = recomputeShareOf(config, stage);
    if (share != before)
      micro = boundOf(config, share, setting.boundary);
    before = share;
    std::vector<PhaseTimes> times =
        replicas.inStage(replica, heldBy[at(stage)]);
    for (std::size_t s = 0; s < times.size(); ++s) {
      times[s].forward.compute += micro.forward[s];
      if (isDivided) {
        times[s].weightGradient =
            times[s].backward.compute + micro.weightGradient[s];
        times[s].backward.compute +=
            micro.inputGradient[s] + micro.weightGradient[s];
      } else {
        times[s].backward.compute += micro.backward[s];
      }
    }
    timesOf.push_back(std::move(times));
  }
  return timesOf;
}

StepProblem
Relaxation::relaxedStep(const Parallelism &config, const Setting &setting,
                        const std::vector<PipelinePart> &parts,
                        const std::vector<std::vector<PhaseTimes>> &times) {
  const Boundary &boundary = setting.boundary;
  std::vector<StepPart> relaxed;
  for (const PipelinePart &held : parts) {
    StepPart part;
    const std::vector<PhaseTimes> &ofStage =
        times[relaxed.size() % at(config.pp)];
    for (const RepeatRange &range : held)
      part.runs.push_back({ofStage[at(range.segment)], range.count});
    const SegmentGraph &last = model.segments[at(held.back().segment)];
    const SegmentGraph &first = model.segments[at(held.front().segment)];
    part.sentForward = carriedBytes(last.carriedOut, last, config, boundary);
    part.sentBackward =
        carriedBytes(first.gradientOut, first, config, boundary);
    relaxed.push_back(std::move(part));
  }
  return stepProblemOf(relaxed, tied(setting, parts, config.pp), setting,
                       config, options.overlaps);
}

void Relaxation::setCompute(LeastStep &least, const Parallelism &config,
                            const Setting &setting,
                            const std::vector<PipelinePart> &parts) {
  const std::vector<PhaseTimes> &replica =
      replicas.of(config, setting).together;
  const bool isDivided = least.problem.shape.kind == ScheduleKind::zeroBubble &&
                         least.problem.shape.stages > 1;
  std::map<double, MicroBatchBound> microBatch; // by share of recomputation
  int part = 0;
  for (const PipelinePart &held : parts) {
    const double share = recomputeShareOf(config, part++ % config.pp);
    auto [entry, isNew] = microBatch.try_emplace(share);
    const MicroBatchBound &one = entry->second;
    if (isNew)
      entry->second = boundOf(config, share, setting.boundary);
    Seconds compute, withoutWeights;
    for (const auto [segment, first, count] : held) {
      compute += count * (one.both[at(segment)] +
                          replica[at(segment)].backward.compute);
      if (isDivided)
        withoutWeights += count * one.withoutWeights[at(segment)];
    }
    least.compute.push_back(compute);
    if (isDivided)
      least.withoutWeights.push_back(withoutWeights);
  }
}

Relaxation::StepBound Relaxation::stepOf(const Parallelism &config,
                                         const Boundary &boundary) {
  Setting setting = settingOf(options, machine, config);
  setting.boundary = boundary;
  const std::vector<PipelinePart> parts = pipelineParts(model, config.layers);
  std::vector<std::vector<PhaseTimes>> times =
      leastTimes(config, setting, parts, false);
  StepProblem problem = relaxedStep(config, setting, parts, times);
  StepBound bound;
  bound.stages = stageBounds(problem);
  if (config.pp == 1) {
    bound.quick = sequentialWork(replicas.of(config, setting).together,
                                 microBatchOf(config, boundary), config);
    bound.times = std::move(times.front());
  }
  std::vector<Seconds> work;
  for (const StageTimes &stage : problem.stages)
    work.push_back(computeOf(stage, problem.shape.microBatches));
  // A zero-bubble schedule runs the two parts of backward separately. The
  // simulation uses the least time of each part; the bounds by work use the
  // least time of both phases together, which is larger.
  if (config.schedule == ScheduleKind::zeroBubble && config.pp > 1) {
    bound.least.problem = relaxedStep(config, setting, parts,
                                      leastTimes(config, setting, parts, true));
    addZeroBubbleBounds(bound.least.problem, bound.stages);
  } else {
    bound.quick = std::max(bound.quick, stepLowerBound(problem));
    bound.least.problem = std::move(problem);
  }
  setCompute(bound.least, config, setting, parts);
  const auto count = static_cast<double>(config.microBatches());
  std::vector<Seconds> together(work.size());
  for (std::size_t part = 0; part < bound.least.compute.size(); ++part)
    together[part % work.size()] += count * bound.least.compute[part];
  for (std::size_t stage = 0; stage < work.size(); ++stage)
    work[stage] = std::max(work[stage], together[stage]);
  bound.quick = std::max(bound.quick, ofAllStages(bound.stages, work, count));
  return bound;
}

// Returns a lower bound of a step with one stage: the sum of all micro-batches,
// of gradient accumulation, of the update, and of the work that runs once a
// step and does not overlap. `microBatch` is the least time of one micro-batch.
Seconds Relaxation::sequentialWork(const std::vector<PhaseTimes> &replica,
                                   Seconds microBatch,
                                   const Parallelism &config) const {
  auto microBatchCount = static_cast<double>(config.microBatches());
  Seconds work = microBatch * microBatchCount;
  for (std::size_t s = 0; s < replica.size(); ++s) {
    const PhaseTimes &times = replica[s];
    Seconds one = times.update + times.backward.compute * microBatchCount;
    if (!options.overlaps.down)
      one += times.host.down;
    if (!options.overlaps.hostUpdate)
      one += times.host.update;
    if (!options.overlaps.up)
      one += times.host.up;
    if (!options.overlaps.reduce && config.zeroStage < 2)
      one += times.reduceStep;
    if (!options.overlaps.gather && config.zeroStage < 3)
      one += times.gatherStep;
    work += one * model.segments[s].repeat;
  }
  return work;
}

} // namespace mtplan::planner

//===- floors.cpp - The least that segments take, whatever the plan -------===//

#include "planner/search/floors.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>

#include "planner/index.h"
#include "planner/search/pipeline_parts.h"
#include "planner/search/segment_problem.h"
#include "planner/search/together.h"
#include "planner/simulate/step_floor.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The least of each of several times; nothing yet: +infinity.
struct Least {
  Seconds value{kNever};
  void add(Seconds other) { value = std::min(value, other); }
  Seconds orNone() const { return value.value == kNever ? Seconds{} : value; }
};

bool isRead(const SegmentGraph &segment, const Tensor &tensor, Phase phase) {
  auto index = static_cast<int>(&tensor - segment.tensors.data());
  return std::ranges::any_of(segment.ops, [&](const Op &op) {
    return op.phase == phase &&
           std::ranges::any_of(op.operands, [&](const Use &use) {
             return use.tensor == index;
           });
  });
}

// Whether a dimension may be split as samples, positions or experts are.
bool splitsWithData(const Parameter &parameter) {
  return std::ranges::any_of(parameter.splits, [](Split split) {
    return split == Split::batch || split == Split::sequence ||
           split == Split::expert;
  });
}

// What is stored split over the replicas, brought together for use; over the
// tensor axis it stays as it is.
Layout gathered(Layout layout, const Mesh &mesh) {
  for (int axis = 0; axis < tensorAxisOf(mesh); ++axis)
    layout = withPlacement(layout, axis, kWhole);
  return layout;
}

// What a stage does of the update when all is computed: of one chunk all that
// the host does, of several what does not run beside it.
Seconds afterCompute(const StageTimes &stage, const Overlaps &overlaps) {
  Seconds onHost, inRow = stage.update;
  for (const ChunkTimes &chunk : stage.chunks) {
    onHost += chunk.down + chunk.hostUpdate + chunk.up;
    inRow += overlaps.down ? Seconds{} : chunk.down;
    inRow += overlaps.hostUpdate ? Seconds{} : chunk.hostUpdate;
    inRow += overlaps.up ? Seconds{} : chunk.up;
  }
  return stage.chunks.size() == 1 ? std::max(onHost, inRow) : inRow;
}

// A micro-batch goes through the stages before forward first and backward last
// (where zero-bubble leaves open how much of backward that is); in the meantime
// of the latter the stage may be updated.
std::vector<Seconds> timesAround(const StepProblem &problem) {
  std::vector<Seconds> around;
  Seconds before, after;
  for (const StageTimes &stage : problem.stages) {
    around.push_back(before +
                     std::max(after, afterCompute(stage, problem.overlap)));
    const ChunkTimes &chunk = stage.chunks.front();
    for (const SliceTimes &slice : chunk.slices) {
      before += slice.count * slice.forward;
      if (problem.shape.kind != ScheduleKind::zeroBubble)
        after += slice.count * slice.backward;
    }
    before += chunk.sendForward;
  }
  return around;
}

Seconds computeOf(const StageTimes &stage, int microBatches) {
  Seconds work;
  for (const ChunkTimes &chunk : stage.chunks)
    for (const SliceTimes &slice : chunk.slices)
      work += microBatches * slice.count * (slice.forward + slice.backward);
  return work;
}

} // namespace

Floors::Floors(const ModelGraph &theModel, const Machine &theMachine,
               const SearchOptions &theOptions)
    : model(theModel), machine(theMachine), options(theOptions) {}

MicroBatchFloor Floors::solve(const Parallelism &how, Recompute recompute,
                              SolverCache &solvers) const {
  // Those that share a set of experts work together, other replicas do not.
  Parallelism alone = how;
  alone.dp = how.ep;
  alone.pp = alone.virtualStages = 1;
  alone.zeroStage = 0;
  alone.offload = Offload::none;
  alone.tiles = 1; // which takes no longer than several
  alone.zeroRanks = 1;
  alone.globalBatch = how.microBatch * how.ep;
  alone.recompute = recompute;
  alone.recomputeLayers = -1;
  alone.layers.clear();
  Setting setting = settingOf(options, machine, alone);
  setting.besideWeight = 0.0; // has floors of its own
  ModelGraph graph = withBatch(model, how.microBatch * how.ep);
  ChainProblem chain;
  MicroBatchFloor floor;
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    chain.links.push_back(
        phaseProblem(graph, static_cast<int>(s), setting).link);
    for (int domain : chain.links.back().problem.domains)
      floor.isLegal = floor.isLegal && domain > 0;
  }
  if (!floor.isLegal)
    return floor;
  ChainSolver &solver = solvers.solverOf(chain);
  std::vector<LeastCost> least =
      solver.least(chain, {{1.0, 0.0}, {0.0, 1.0}, {1.0, 1.0}});
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    floor.forward.push_back({least[0].byLink[s]});
    floor.backward.push_back({least[1].byLink[s]});
  }
  floor.all = {least[2].whole};
  floor.isLegal = least[2].whole < kNever;
  return floor;
}

std::vector<Recompute> Floors::kindsOf(const Parallelism &how) {
  double share = recomputeShareOf(how);
  if (how.recompute == Recompute::none || share == 1.0)
    return {how.recompute};
  return {Recompute::none, how.recompute};
}

void Floors::prepare(const std::vector<Parallelism> &candidates) {
  struct Missing {
    const Parallelism *how;
    Recompute recompute;
    MicroBatchFloor *place;
  };
  std::vector<Missing> missing;
  for (const Parallelism &how : candidates)
    for (Recompute kind : kindsOf(how))
      if (auto [entry, isNew] = microBatches.try_emplace(keyOf(how, kind));
          isNew)
        missing.push_back({&how, kind, &entry->second});
  auto work = [&](std::size_t thread) {
    for (std::size_t i = thread; i < missing.size(); i += solversOf.size())
      *missing[i].place =
          solve(*missing[i].how, missing[i].recompute, solversOf[thread]);
  };
  together(std::min(solversOf.size(), missing.size()), work);
}

// Each time on its own, the least over all states that a parameter may be in.
PhaseTimes Floors::replicaTimes(const SegmentGraph &segment,
                                const Setting &setting,
                                std::vector<bool> &paid) const {
  PhaseTimes times;
  StateBytes perElement = stateBytesOf(setting);
  const Mesh &mesh = setting.mesh;
  std::vector<bool> seen(model.parameters.size(), false);
  for (const Tensor &tensor : segment.tensors) {
    if (tensor.kind != TensorKind::parameter || seen[at(tensor.parameter)])
      continue;
    seen[at(tensor.parameter)] = true;
    const Parameter &parameter = model.parameters[at(tensor.parameter)];
    Least gather, reduce, gatherStep, reduceStep, update, accumulation;
    Least down, hostUpdate, up;
    bool splitsOverTensor = false;
    for (const ParameterState &state :
         parameterStates(model, tensor.parameter, setting)) {
      Layout accumulator = accumulatorLayout(state, mesh);
      Layout whole = gathered(state.stored, mesh);
      splitsOverTensor |= placementOf(whole, tensorAxisOf(mesh)) >= 0;
      Layout made = whole; // of the gradient, by every micro-batch
      for (int axis = 0; axis < tensorAxisOf(mesh); ++axis)
        if (mesh.axes[at(axis)].size > 1)
          made = withPlacement(made, axis, kPartial);
      if (state.reduceOncePerStep)
        made = withPlacement(made, tensorAxisOf(mesh), kPartial);
      auto between = [&](const Layout &from, const Layout &to, double bytes,
                         double ofSegment = 1.0) {
        return stateReshardTime(from, to, parameter.shape, bytes, setting,
                                ofSegment);
      };
      gather.add(between(state.stored, whole, parameter.elementBytes));
      reduce.add(between(made, accumulator, parameter.elementBytes));
      reduceStep.add(between(accumulator, state.owned(), perElement.gradient,
                             parameter.ofSegment));
      gatherStep.add(between(state.owned(), state.stored,
                             parameter.elementBytes, parameter.ofSegment));
      update.add(updateTime(parameter, state, setting));
      HostTimes host = hostTimes(parameter, state, setting);
      down.add(host.down);
      hostUpdate.add(host.update);
      up.add(host.up);
      accumulation.add(accumulationTime(parameter, state, setting) /
                       static_cast<double>(setting.microBatches));
    }
    // A reader may take it split over positions, or it may be sliced over the
    // tensor axis first: how much moves is then the plan's affair.
    double moved = splitsWithData(parameter) ? 0.0
                   : splitsOverTensor        ? 1.0
                                             : 1.0 / mesh.axes.back().size;
    if (isRead(segment, tensor, Phase::forward))
      times.gatherForward += moved * gather.orNone();
    if (isRead(segment, tensor, Phase::backward))
      times.gatherBackward += moved * gather.orNone();
    for (const Accumulation &sum : segment.accumulations)
      if (sum.parameter == tensor.parameter) {
        times.reduce += moved * reduce.orNone();
        times.backward.compute += accumulation.orNone();
      }
    if (parameter.shared && paid[at(tensor.parameter)])
      continue;
    paid[at(tensor.parameter)] = true;
    // What copies share they pay together.
    const double share = parameter.shared ? 1.0 / segment.repeat : 1.0;
    times.reduceStep += reduceStep.orNone() * share;
    times.gatherStep += gatherStep.orNone() * share;
    times.update += update.orNone() * share;
    times.host.down += down.orNone() * share;
    times.host.update += hostUpdate.orNone() * share;
    times.host.up += up.orNone() * share;
  }
  return times;
}

// By segment, as if one stage held all.
const std::vector<PhaseTimes> &Floors::replicaFloor(const Parallelism &how,
                                                    const Setting &setting) {
  auto [entry, isNew] = replicas.try_emplace(
      {how.tp, how.cp, how.ep, how.dp, how.zeroStage, how.zeroRanks,
       how.microBatches(), static_cast<std::int64_t>(how.offload)});
  if (isNew) {
    std::vector<bool> paid(model.parameters.size(), false);
    for (const SegmentGraph &segment : model.segments)
      entry->second.push_back(replicaTimes(segment, setting, paid));
  }
  return entry->second;
}

Bytes Floors::handed(const std::vector<int> &tensors,
                     const SegmentGraph &segment,
                     const Parallelism &how) const {
  double bytes = 0.0;
  for (int t : tensors) {
    const Tensor &tensor = segment.tensors[at(t)];
    double one = tensor.elementBytes;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d)
      one *= static_cast<int>(d) == tensor.batchDim
                 ? static_cast<double>(how.microBatch)
                 : static_cast<double>(tensor.shape[d]);
    bytes += one / how.tp / how.cp;
  }
  return {bytes};
}

// Of what several stages hold.
Bytes Floors::tied(const Setting &setting,
                   const std::vector<PipelinePart> &parts, int stages) const {
  Bytes bytes;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    if (!model.parameters[p].shared)
      continue;
    std::set<std::size_t> holders;
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (const CopyRange &range : parts[part])
        if (std::ranges::any_of(model.segments[at(range.segment)].tensors,
                                [&](const Tensor &one) {
                                  return one.parameter == static_cast<int>(p);
                                }))
          holders.insert(part % at(stages));
    if (holders.size() < 2)
      continue;
    double least = kNever;
    for (const ParameterState &state :
         parameterStates(model, static_cast<int>(p), setting))
      least = std::min(
          least, localBytes(model.parameters[p].shape, state.stored,
                            stateBytesOf(setting).gradient, setting.mesh));
    if (least < kNever)
      bytes += Bytes{least};
  }
  return bytes;
}

MicroBatchFloor Floors::floorOf(const Parallelism &how, double share) const {
  std::vector<Recompute> kinds = kindsOf(how);
  MicroBatchFloor floor = microBatches.at(keyOf(how, kinds.front()));
  if (kinds.size() == 1 || !floor.isLegal)
    return floor;
  const MicroBatchFloor &again = microBatches.at(keyOf(how, kinds.back()));
  auto mix = [&](Seconds &once, Seconds more) {
    once = (1.0 - share) * once + share * more;
  };
  for (std::size_t s = 0; s < floor.forward.size(); ++s) {
    mix(floor.forward[s], again.forward[s]);
    mix(floor.backward[s], again.backward[s]);
  }
  mix(floor.all, again.all);
  return floor;
}

Seconds Floors::microBatchOf(const Parallelism &how) const {
  MicroBatchFloor floor = floorOf(how, leastRecomputeShareOf(how));
  return floor.isLegal ? floor.all : Seconds{kNever};
}

Floors::LayerTimes Floors::layerTimes(const Parallelism &how) const {
  const MicroBatchFloor &floor = microBatches.at(keyOf(how, kindsOf(how)[0]));
  LayerTimes times;
  int layers = layersOf(model);
  for (const PipelinePart &layer :
       pipelineParts(model, std::vector(at(layers), 1))) {
    Seconds forward, both;
    for (const CopyRange &range : layer) {
      forward += floor.forward[at(range.segment)] * range.count;
      both += (floor.forward[at(range.segment)] +
               floor.backward[at(range.segment)]) *
              range.count;
    }
    times.forward.push_back(forward);
    times.both.push_back(both);
  }
  return times;
}

Floors::StepFloor Floors::stepOf(const Parallelism &how) {
  Setting setting = settingOf(options, machine, how);
  const std::vector<PhaseTimes> &replica = replicaFloor(how, setting);
  std::deque<std::vector<PhaseTimes>> made;
  std::vector<const std::vector<PhaseTimes> *> timesOf; // by stage; by segment
  double before = -1.0;
  for (int stage = 0; stage < how.pp; ++stage) {
    double share = recomputeShareOf(how, stage);
    if (share != before) {
      MicroBatchFloor micro = floorOf(how, share);
      std::vector<PhaseTimes> &times = made.emplace_back(replica);
      for (std::size_t s = 0; s < times.size(); ++s) {
        times[s].forward.compute += micro.forward[s];
        times[s].backward.compute += micro.backward[s];
      }
    }
    before = share;
    timesOf.push_back(&made.back());
  }
  std::vector<PipelinePart> allHeld = pipelineParts(model, how.layers);
  std::vector<StepPart> parts;
  for (const PipelinePart &held : allHeld) {
    StepPart part;
    const std::vector<PhaseTimes> &times = *timesOf[parts.size() % at(how.pp)];
    for (const CopyRange &range : held)
      part.runs.push_back({times[at(range.segment)], range.count});
    const SegmentGraph &last = model.segments[at(held.back().segment)];
    const SegmentGraph &first = model.segments[at(held.front().segment)];
    part.handedOn = handed(last.carriedOut, last, how);
    part.handedBack = handed(first.gradientOut, first, how);
    parts.push_back(std::move(part));
  }
  StepProblem problem = stepProblemOf(parts, tied(setting, allHeld, how.pp),
                                      setting, how, options.overlaps);
  StepFloor floor;
  floor.around = timesAround(problem);
  if (how.pp == 1)
    floor.quick = rowOfWork(replica, microBatchOf(how), how);
  // What zero-bubble puts off is the plan's affair: of its backward only the
  // sum is known.
  if (how.schedule == ScheduleKind::zeroBubble && how.pp > 1) {
    for (std::size_t stage = 0; stage < problem.stages.size(); ++stage)
      floor.quick =
          std::max(floor.quick,
                   floor.around[stage] + computeOf(problem.stages[stage],
                                                   problem.shape.microBatches));
  } else {
    floor.quick = std::max(floor.quick, stepFloor(problem));
    floor.problem = std::move(problem);
  }
  return floor;
}

// With one stage all its work stands in a row, and is that of one plan.
Seconds Floors::rowOfWork(const std::vector<PhaseTimes> &replica,
                          Seconds microBatch, const Parallelism &how) const {
  auto microBatchCount = static_cast<double>(how.microBatches());
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
    if (!options.overlaps.reduce && how.zeroStage < 2)
      one += times.reduceStep;
    if (!options.overlaps.gather && how.zeroStage < 3)
      one += times.gatherStep;
    work += one * model.segments[s].repeat;
  }
  return work;
}

} // namespace mtplan::planner

//===- memory_use.cpp - Peak memory of one rank ---------------------------===//
//
// Parameters, training state and saved activations are summed over segments.
// The workspace holds all other values. Its size is the largest number of bytes
// that are alive at one operator of any segment, plus the bytes of all inputs.
//
//===----------------------------------------------------------------------===//

#include "planner/search/price/memory_use.h"

#include <algorithm>

#include "planner/cost/compute_cost.h"
#include "planner/integers.h"
#include "planner/search/price/workspace.h"
#include "planner/search/space/segment_runs.h"

namespace mtplan::planner {

namespace {

constexpr double kRounding = 1 + 1e-12;

// Returns the bytes of the values that a repeat recomputes, except the
// segment's inputs. These values are alive only during the repeat's backward.
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

// Returns whether `plan` and the run before it share one saved copy of a value.
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

// Returns, by run, the largest block of weights that is gathered while a
// segment of the run computes. The block belongs to the next segment or, in
// backward, to the previous one, in the same run or in the neighbouring run.
std::vector<BlockBytes> blocksAhead(const ModelGraph &model,
                                    const std::vector<SegmentPlan> &plans,
                                    const Setting &setting) {
  std::vector<BlockBytes> own(plans.size()), ahead(plans.size());
  if (!gathersAhead(setting))
    return ahead;
  for (std::size_t run = 0; run < plans.size(); ++run)
    own[run] = Workspace(model, plans[run], setting).block();
  for (std::size_t run = 0; run < plans.size(); ++run) {
    if (plans[run].count > 1)
      ahead[run] = own[run];
    if (run + 1 < plans.size())
      ahead[run].forward = std::max(ahead[run].forward, own[run + 1].forward);
    if (run > 0)
      ahead[run].backward =
          std::max(ahead[run].backward, own[run - 1].backward);
  }
  return ahead;
}

} // namespace

Bytes MemoryUse::allocated() const {
  return parameters + gradients + optimizer + activations + workspace;
}

Bytes MemoryUse::total() const { return allocated() + spare + reserved; }

void MemoryUse::reserveWorkspace(Bytes room) {
  const Bytes before = spare;
  spare = std::max(Bytes{}, room - workspace);
  reserved += cached * (spare - before);
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

Bytes roomOf(const Setting &setting) {
  const Device &device = setting.machine->device;
  const double cached = setting.software->memory.cached;
  // The product of the room and 1 + cached may be rounded up.
  return (device.memory - device.reserved) *
         (cached > 0 ? kRounding / (1.0 + cached) : 1.0);
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
  const std::vector<BlockBytes> ahead = blocksAhead(model, plans, setting);
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
      // Each virtual stage has its own buffer for an early reduce-scatter.
      const double chunks = std::min<double>(setting.parts, plan.count);
      use.gradients +=
          Bytes{accumulated * perElement.gradient +
                held * bucketBytes(parameter, state, setting) +
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
    Workspace workspace(model, plan, setting,
                        ahead[static_cast<std::size_t>(&plan - plans.data())]);
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
  use.cached = setting.software->memory.cached;
  use.reserved += use.cached * use.allocated();
  return use;
}

} // namespace mtplan::planner

//===- row_price.cpp - What mtplan says a published run takes -------------===//

#include "tools/validate/row_price.h"

#include <algorithm>

#include "planner/search/pins.h"
#include "planner/search/pipeline_parts.h"
#include "planner/search/software_overlaps.h"
#include "tools/validate/row_model.h"
#include "tools/validate/surroundings.h"

namespace mtplan::tools {

using planner::Parallelism;
using planner::Split;

namespace {

std::string str(std::int64_t number) { return std::to_string(number); }

// What contradicts itself; empty if nothing does.
std::string contradictionOf(const RunRow &row, const Parallelism &how) {
  if (std::int64_t product = std::int64_t(how.tp) * how.pp * how.cp * how.dp;
      product != row.gpus)
    return "tp times pp times cp times dp is " + str(product) + ", not the " +
           str(row.gpus) + " GPUs";
  std::int64_t samples = how.microBatch * how.dp;
  if (row.globalBatch % samples != 0)
    return "a batch of " + str(row.globalBatch) + " does not divide by " +
           str(how.microBatch) + " samples on each of " + str(how.dp) +
           " replicas";
  if (row.heads % how.tp != 0)
    return str(row.heads) + " heads do not divide by tp " + str(how.tp);
  if (row.hidden % row.heads != 0)
    return "hidden size " + str(row.hidden) + " does not divide by " +
           str(row.heads) + " heads";
  if (how.pp * how.virtualStages > row.layers)
    return str(row.layers) + " layers do not fill " +
           str(std::int64_t(how.pp) * how.virtualStages) + " parts";
  if (how.virtualStages > 1 && how.microBatches() % how.pp != 0)
    return str(how.microBatches()) +
           " micro-batches interleave only in multiples of pp " + str(how.pp);
  return {};
}

Parallelism parallelismOf(const RunRow &row, const planner::Machine &machine,
                          const std::string &software) {
  Parallelism how;
  how.tp = static_cast<int>(row.tp);
  how.pp = static_cast<int>(row.pp);
  how.cp = static_cast<int>(row.cp);
  how.dp = static_cast<int>(row.dp.value_or(
      std::max<std::int64_t>(1, row.gpus / row.tp / row.pp / row.cp)));
  how.virtualStages = row.pp > 1 ? static_cast<int>(row.chunks) : 1;
  if (how.virtualStages > 1)
    how.schedule = planner::ScheduleKind::interleaved;
  how.microBatch = microBatchOf(row);
  how.globalBatch = row.globalBatch;
  how.zeroStage = how.dp * how.cp > 1 ? row.zeroStage : 0;
  how.zeroRanks = how.zeroStage > 0 ? how.dp : 1;
  bool inNode = row.notesHave("; HSDP;") ||
                (software == "internevo" && !row.notesHave("zero1=-1"));
  if (how.zeroStage > 0 && inNode && how.dp % machine.devicesPerNode == 0)
    how.zeroRanks = machine.devicesPerNode;
  how.recompute = row.recompute == "full"        ? planner::Recompute::full
                  : row.recompute == "selective" ? planner::Recompute::selective
                                                 : planner::Recompute::none;
  how.sequenceParallel = row.sequenceParallel;
  return how;
}

// What trainers that publish runs split products by.
constexpr std::pair<const char *, const char *> kSplitsOf[] = {
    {"h.*.attn.q", "column"},  {"h.*.attn.k", "column"},
    {"h.*.attn.v", "column"},  {"h.*.attn.core", "head"},
    {"h.*.attn.proj", "row"},  {"h.*.mlp.gate", "column"},
    {"h.*.mlp.up", "column"},  {"h.*.mlp.down", "row"},
    {"h.*.mlp.fc1", "column"}, {"h.*.mlp.fc2", "row"},
    {"lm_head", "vocab"}};

// With the sequence among the splits weights might be brought together instead,
// and positions kept apart all the way: none of them did.
planner::Pins pinsOf(const planner::ModelGraph &graph, const RunRow &row) {
  std::vector<std::string> texts, errors;
  for (const auto &[label, word] : kSplitsOf)
    for (const planner::SegmentGraph &segment : graph.segments)
      for (const planner::Op &op : segment.ops)
        if (row.tp > 1 && row.sequenceParallel && op.name == label)
          texts.push_back(op.name + '=' + word);
  return planner::resolvePins(
      graph, planner::parsePins(texts, errors),
      {{Split::column, Split::row, Split::head, Split::vocab, Split::sequence},
       static_cast<int>(row.tp)},
      errors);
}

} // namespace

PricedRow RowPricer::price(const RunRow &row) {
  PricedRow priced;
  priced.row = row;
  priced.excluded = exclusionOf(row);
  std::optional<FoundMachine> machine = machineOf(row, priced.error);
  if (!priced.isPriced() || !machine)
    return priced;
  priced.machine = machine->preset;
  priced.limit = machine->machine.device.memory;
  FoundSoftware software = softwareOf(row, machine->machine);
  priced.software = software.preset;
  priced.assumedSoftware = software.assumed;

  Parallelism how = parallelismOf(row, machine->machine, software.preset);
  priced.error = contradictionOf(row, how);
  if (!priced.isPriced())
    return priced;

  bool half = row.precision == "fp16";
  ir::Transformer model = transformerOf(row, software.preset);
  Shape shape = {model.sequence,
                 model.layers,
                 model.hidden,
                 model.inner,
                 model.heads,
                 model.kvHeads,
                 model.headDim,
                 model.vocabulary,
                 model.gated,
                 model.rms,
                 model.positionRows,
                 model.rotaryDim,
                 model.tied,
                 model.queryBias,
                 static_cast<int>(model.form),
                 model.residualDropout > 0,
                 half};
  auto known = graphs.find(shape);
  if (known == graphs.end()) {
    std::vector<std::string> errors;
    std::optional<planner::ModelGraph> graph = graphOf(model, half, errors);
    if (!graph) {
      priced.error = errors.empty() ? "no such model" : errors.front();
      return priced;
    }
    known = graphs.emplace(shape, std::move(*graph)).first;
  }

  planner::SearchOptions options;
  options.devices = how.devices();
  options.globalBatch = how.globalBatch;
  options.precision = half                     ? planner::Precision::fp16
                      : row.precision == "fp8" ? planner::Precision::fp8
                                               : planner::Precision::bf16;
  options.software = &software.software;
  options.overlaps = planner::overlapsOf(software.software, {});
  options.tensorSplits = {Split::column, Split::row, Split::head, Split::vocab};
  if (row.sequenceParallel)
    options.tensorSplits.push_back(Split::sequence);
  planner::Pins pins = pinsOf(known->second, row);
  options.pins = &pins;
  how.layers = planner::evenLayers(planner::layersOf(known->second),
                                   how.pp * how.virtualStages);
  // What it takes, whether it fits or not.
  planner::Machine endless = machine->machine;
  endless.device.memory = {1e300};
  planner::StageCache cache;
  planner::Rejection rejection;
  constexpr std::int64_t kManyPoints = 4'000'000;
  std::optional<planner::PlannedCandidate> planned = planner::solveCandidate(
      planner::withBatch(known->second, how.microBatch * how.dp), options,
      endless, how, {std::numeric_limits<double>::infinity(), kManyPoints},
      cache, rejection);
  if (!planned) {
    priced.error = "no operator may be split this way";
    return priced;
  }
  priced.time = planned->time;
  priced.modelFlops =
      planner::withBatch(known->second, how.globalBatch).modelFlops;
  priced.memory = planned->memory.total();
  return priced;
}

} // namespace mtplan::tools

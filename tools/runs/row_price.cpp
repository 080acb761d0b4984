//===- row_price.cpp - Predicted times of published runs ------------------===//

#include "tools/runs/row_price.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "mlir/Pass/PassManager.h"

#include "passes/layout/bridge.h"
#include "passes/passes.h"
#include "planner/search/planned_candidate.h"
#include "planner/search/price/price.h"
#include "planner/search/solve_candidate.h"
#include "planner/search/space/pins.h"
#include "planner/search/space/pipeline_parts.h"
#include "tools/driver/pipeline.h"
#include "tools/runs/stage_layers.h"
#include "tools/text/pin_text.h"

namespace mtplan::tools {

using planner::Parallelism;
using planner::Split;

namespace {

bool has(const std::string &text, std::initializer_list<const char *> words) {
  return std::ranges::any_of(words, [&](const char *word) {
    return text.find(word) != std::string::npos;
  });
}

// Returns whether the MLP is gated. For some models, the name decides. For
// other models, the MLP is gated if three matrices explain the stated number of
// parameters better than two matrices.
bool isGated(const RunRow &row, double inner, double headDim) {
  if (has(row.model, {"GPT", "gpt", "MPT", "Pythia", "BLOOM", "BERT"}))
    return false;
  double hidden = row.hidden, layers = row.layers;
  if (!row.parametersB || *row.parametersB == 0)
    return has(row.model, {"lama", "Intern", "Mistral", "Qwen", "Mixtral"});
  double keys = row.kvHeads.value_or(row.heads) * headDim;
  double queries = row.heads * headDim;
  double attention = layers * hidden * (2 * queries + 2 * keys);
  auto distance = [&](int matrices) {
    double least = INFINITY;
    for (int tables : {1, 2})
      least = std::min(
          least,
          std::fabs(std::log((attention + matrices * layers * hidden * inner +
                              tables * double(row.vocabulary) * hidden) /
                             (*row.parametersB * 1e9))));
    return least;
  };
  return distance(3) < distance(2);
}

ir::Transformer transformerOf(const RunRow &row, const std::string &software) {
  ir::Transformer model;
  model.sequence = row.sequence;
  model.layers = row.layers;
  model.hidden = row.hidden;
  model.heads = row.heads;
  model.kvHeads = row.kvHeads.value_or(row.heads);
  model.headDim = row.hidden / row.heads;
  model.inner = row.inner.value_or(4 * row.hidden);
  model.attentionScale = 1.0 / std::sqrt(double(model.headDim));
  // All software except llm-foundry pads the vocabulary, so that tp divides the
  // padded vocabulary.
  std::int64_t unit = software == "mosaic" ? 1 : 128 * row.tp;
  model.vocabulary = model.paddedVocabulary =
      (row.vocabulary + unit - 1) / unit * unit;

  bool neox = software == "gpt-neox" || has(row.model, {"Pythia"});
  bool nemotron = has(row.model, {"Nemotron", "emotron"});
  model.gated =
      !nemotron && isGated(row, double(model.inner), double(model.headDim));
  model.rms = model.gated;
  if (model.gated)
    model.activation = ir::Activation::Silu;
  bool rotary = model.gated || nemotron || neox;
  model.positionRows = rotary ? 0 : row.sequence;
  model.rotaryDim =
      neox ? std::max<std::int64_t>(2, model.headDim / 8 * 2) : model.headDim;
  if (neox)
    model.form = ir::BlockForm::parallelTwoNorms;
  model.tied = !rotary || row.sourceHas("nanotron");
  model.queryBias = model.projBias = model.mlpBias = !model.gated && !nemotron;
  if (has(software, {"megatron", "deepspeed-2021", "bloom", "vtrain"}))
    model.attentionDropout = model.residualDropout = model.embedDropout = 0.1;
  return model;
}

// Returns nothing, with errors, if the dimensions contradict each other.
std::optional<planner::ModelGraph>
buildGraph(const ir::Transformer &model, bool half,
           std::vector<std::string> &errors) {
  if (model.headDim * model.heads > model.hidden * 4 ||
      model.heads % model.kvHeads != 0) {
    errors.push_back(std::to_string(model.heads) + " heads do not divide by " +
                     std::to_string(model.kvHeads) + " key/value heads");
    return std::nullopt;
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.getOrLoadDialect<ir::MtpDialect>();
  CapturedDiagnostics captured(context, errors);
  mlir::Type element = mlir::BFloat16Type::get(&context);
  if (half)
    element = mlir::Float16Type::get(&context);
  ir::ModelBuilder builder(context, "row", element);
  ir::buildTransformer(builder, model);
  mlir::PassManager passes(&context);
  passes.addPass(passes::createDifferentiatePass());
  passes.addPass(passes::createVerifyGradientsPass());
  if (mlir::failed(passes.run(*builder.module)))
    return std::nullopt;
  return passes::buildModelGraph(*builder.module);
}

std::string str(std::int64_t number) { return std::to_string(number); }

std::string contradictionOf(const RunRow &row, const Parallelism &config) {
  if (std::int64_t product =
          std::int64_t(config.tp) * config.pp * config.cp * config.dp;
      product != row.gpus)
    return "tp times pp times cp times dp is " + str(product) + ", not the " +
           str(row.gpus) + " GPUs";
  std::int64_t samples = config.microBatch * config.dp;
  if (row.globalBatch % samples != 0)
    return "a batch of " + str(row.globalBatch) + " does not divide by " +
           str(config.microBatch) + " samples on each of " + str(config.dp) +
           " replicas";
  if (row.heads % config.tp != 0)
    return str(row.heads) + " heads do not divide by tp " + str(config.tp);
  if (row.hidden % row.heads != 0)
    return "hidden size " + str(row.hidden) + " does not divide by " +
           str(row.heads) + " heads";
  if (config.pp * config.virtualStages > row.layers)
    return str(row.layers) + " layers do not fill " +
           str(std::int64_t(config.pp) * config.virtualStages) + " parts";
  if (config.virtualStages > 1 && config.microBatches() % config.pp != 0)
    return str(config.microBatches()) +
           " micro-batches interleave only in multiples of pp " +
           str(config.pp);
  return {};
}

std::optional<double> notedNumber(const RunRow &row, const std::string &word) {
  std::size_t at = row.notes.find(word + ' ');
  if (at == std::string::npos)
    return std::nullopt;
  const char *start = row.notes.c_str() + at + word.size() + 1;
  char *end = nullptr;
  double value = std::strtod(start, &end);
  return end == start ? std::nullopt : std::optional(value);
}

// For some software, "selective" recomputation recomputes whole layers. Returns
// the share of layers that are recomputed in that case. The share is one half,
// or 3 (HFU / MFU - 1), because HFU counts recomputation, MFU does not, and
// forward has a third of the flops that MFU counts.
std::optional<double> recomputedShareOf(const RunRow &row,
                                        const std::string &software) {
  if (row.recompute != "selective")
    return std::nullopt;
  if (row.notesHave("by layer"))
    return 0.5;
  std::optional<double> model = notedNumber(row, "MFU");
  std::optional<double> hardware = notedNumber(row, "HFU");
  if (software != "fms" || !model || !hardware || *model <= 0)
    return std::nullopt;
  return std::clamp(3 * (*hardware / *model - 1), 0.0, 1.0);
}

Parallelism parallelismOf(const RunRow &row, const planner::Machine &machine,
                          const std::string &software) {
  Parallelism config;
  config.tp = static_cast<int>(row.tp);
  config.pp = static_cast<int>(row.pp);
  config.cp = static_cast<int>(row.cp);
  config.dp = static_cast<int>(row.dp.value_or(
      std::max<std::int64_t>(1, row.gpus / row.tp / row.pp / row.cp)));
  config.virtualStages = row.pp > 1 ? static_cast<int>(row.chunks) : 1;
  if (config.virtualStages > 1)
    config.schedule = planner::ScheduleKind::interleaved;
  config.microBatch = microBatchOf(row);
  config.globalBatch = row.globalBatch;
  config.zeroStage = config.dp * config.cp > 1 ? row.zeroStage : 0;
  config.zeroRanks = config.zeroStage > 0 ? config.dp : 1;
  bool inNode = row.notesHave("; HSDP;") ||
                (software == "internevo" && !row.notesHave("zero1=-1"));
  if (config.zeroStage > 0 && inNode && config.dp % machine.devicesPerNode == 0)
    config.zeroRanks = machine.devicesPerNode;
  config.recompute = row.recompute == "full" ? planner::Recompute::full
                     : row.recompute == "selective"
                         ? planner::Recompute::selective
                         : planner::Recompute::none;
  if (std::optional<double> share = recomputedShareOf(row, software)) {
    config.recompute = planner::Recompute::full;
    config.recomputeLayers =
        static_cast<int>(std::lround(*share * static_cast<double>(row.layers) /
                                     config.pp / config.virtualStages));
  }
  config.sequenceParallel = row.sequenceParallel;
  return config;
}

// All published runs split their products in this way.
constexpr std::pair<const char *, const char *> kSplitsOf[] = {
    {"h.*.attn.q", "column"},   {"h.*.attn.k", "column"},
    {"h.*.attn.v", "column"},   {"h.*.attn.core", "head"},
    {"h.*.attn.proj", "row"},   {"h.*.mlp.gate", "column"},
    {"h.*.mlp.up", "column"},   {"h.*.mlp.down", "row"},
    {"h.*.mlp.fc1", "column"},  {"h.*.mlp.fc2", "row"},
    {"lm_head", "vocab"},       {"h.*.ln_1", "sequence"},
    {"h.*.ln_2", "sequence"},   {"h.*.attn.add", "sequence"},
    {"h.*.mlp.add", "sequence"}};

// Pins the splits of a run with sequence parallelism. Otherwise a plan could
// all-gather weights and keep the sequence split, which no published run did.
planner::Pins pinsOf(const planner::ModelGraph &graph, const RunRow &row) {
  std::vector<std::string> texts, errors;
  for (const auto &[label, word] : kSplitsOf)
    for (const planner::SegmentGraph &segment : graph.segments)
      for (const planner::Op &op : segment.ops)
        if (row.tp > 1 && row.sequenceParallel && op.name == label)
          texts.push_back(op.name + '=' + word);
  return planner::resolvePins(
      graph, parsePins(texts, errors),
      {{Split::column, Split::row, Split::head, Split::vocab, Split::sequence},
       static_cast<int>(row.tp)},
      errors);
}

// Returns the bytes that `kind` counts. Runs of an unknown kind count allocated
// bytes.
planner::Bytes countedBytes(const planner::MemoryUse &use,
                            const std::string &kind,
                            const planner::Device &device) {
  const planner::Bytes held = use.allocated() * (1.0 + use.cached);
  if (kind == "reserved")
    return held;
  return kind == "nvidia-smi" ? held + device.reserved : use.allocated();
}

double peakGiBOf(const planner::ModelGraph &graph,
                 const planner::PlannedParts &parts,
                 const planner::Setting &setting, const RowCase &one) {
  constexpr double kGiB = 1 << 30;
  planner::Bytes peak;
  for (const planner::MemoryUse &use :
       planner::memoryByStage(graph, parts, setting, one.config)) {
    peak = std::max(peak,
                    countedBytes(use, one.memoryKind, setting.machine->device));
    if (one.statesFirstStage)
      break;
  }
  return peak.value / kGiB;
}

} // namespace

std::vector<const FixedRun *> pointersTo(const std::vector<FixedRun> &runs) {
  std::vector<const FixedRun *> pointers;
  for (const FixedRun &run : runs)
    pointers.push_back(&run);
  return pointers;
}

double PricedRow::deviation(Quantity quantity) const {
  return (quantity == Quantity::stepTime ? predicted() : peakGiB) /
             measuredOf(row, quantity) -
         1.0;
}

const planner::ModelGraph *RowPricer::graphOf(const ir::Transformer &model,
                                              bool half, std::string &error) {
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
  if (known != graphs.end())
    return &known->second;
  std::vector<std::string> errors;
  std::optional<planner::ModelGraph> graph = buildGraph(model, half, errors);
  if (!graph) {
    error = errors.empty() ? "no such model" : errors.front();
    return nullptr;
  }
  return &graphs.emplace(shape, std::move(*graph)).first->second;
}

std::unique_ptr<RowCase> RowPricer::caseOf(const RunRow &row, PricedRow &priced,
                                           Quantity quantity) {
  priced.row = row;
  priced.excluded = exclusionOf(row, quantity);
  std::optional<FoundMachine> machine =
      machineOf(row, priced.error, givenMachine);
  if (!priced.isPriced() || !machine)
    return nullptr;
  priced.machine = machine->preset;
  priced.limit = machine->machine.device.memory;
  auto made = std::make_unique<RowCase>();
  made->stated = std::move(machine->machine);
  // The row's own software says what the model and the layout are, even if
  // other software prices them.
  const FoundSoftware own = softwareOf(row, made->stated);
  FoundSoftware software = givenSoftware.value_or(own);
  made->reducesAfterBackward = reducesAfterBackward(row);
  made->statesFirstStage = row.sourceHas("nanotron");
  made->memoryKind = row.memoryKind;
  if (made->reducesAfterBackward)
    software.software.overlap.reduce = false;
  priced.software = software.preset;
  priced.assumedSoftware = software.assumed;
  made->software = std::move(software.software);
  made->machine = planner::machineUnder(made->software, made->stated);

  Parallelism &config = made->config;
  config = parallelismOf(row, made->machine, own.preset);
  priced.error = contradictionOf(row, config);
  if (!priced.isPriced())
    return nullptr;
  bool half = row.precision == "fp16";
  made->graph = graphOf(transformerOf(row, own.preset), half, priced.error);
  if (!made->graph)
    return nullptr;
  config.layers = stageLayersOf(row, planner::layersOf(*made->graph));
  // Stages that hold nothing are not simulated.
  config.pp = static_cast<int>(config.layers.size()) / config.virtualStages;
  made->pins = pinsOf(*made->graph, row);

  planner::SearchOptions &options = made->options;
  options.devices = config.devices();
  options.globalBatch = config.globalBatch;
  options.precision = half                     ? planner::Precision::fp16
                      : row.precision == "fp8" ? planner::Precision::fp8
                                               : planner::Precision::bf16;
  options.software = &made->software;
  options.overlaps = planner::overlapsOf(made->software, {});
  options.gathersAhead = options.overlaps.gather;
  options.tensorSplits = {Split::column, Split::row, Split::head, Split::vocab};
  if (row.sequenceParallel)
    options.tensorSplits.push_back(Split::sequence);
  options.pins = &made->pins;
  options.padsShards = true;
  return made;
}

RowPricer::RowPricer(const std::string &software, std::string hardware)
    : givenMachine(std::move(hardware)) {
  if (!software.empty())
    givenSoftware =
        FoundSoftware{software, planner::loadSoftware(software), false};
}

std::optional<planner::PlannedCandidate>
RowPricer::solve(const RowCase &one, Memory memory, PricedRow &priced) {
  planner::Machine machine = one.machine;
  if (memory == Memory::unlimited)
    machine.device.memory = {1e300};
  planner::StageCache cache;
  planner::Rejection rejection;
  constexpr std::int64_t kManyPoints = 4'000'000;
  std::optional<planner::PlannedCandidate> planned;
  const planner::ModelGraph graph =
      planner::withBatch(*one.graph, one.config.microBatch * one.config.dp);
  try {
    planned = planner::solveCandidate(
        graph, one.options, machine, one.config,
        {std::numeric_limits<double>::infinity(), kManyPoints}, cache,
        rejection);
  } catch (const planner::TooLarge &error) {
    priced.error = error.what();
    return std::nullopt;
  }
  if (!planned) {
    priced.error = memory == Memory::limited
                       ? "it does not fit"
                       : "no operator may be split this way";
    return std::nullopt;
  }
  priced.time = planned->time;
  priced.modelFlops =
      planner::withBatch(*one.graph, one.config.globalBatch).modelFlops;
  priced.memory = planned->memory.total();
  priced.peakGiB =
      peakGiBOf(graph, planned->parts,
                planner::settingOf(one.options, machine, one.config), one);
  return planned;
}

PricedRow RowPricer::price(const RunRow &row, Memory memory,
                           Quantity quantity) {
  PricedRow priced;
  if (std::unique_ptr<RowCase> one = caseOf(row, priced, quantity))
    solve(*one, memory, priced);
  return priced;
}

std::optional<FixedRun> RowPricer::fix(const RunRow &row, PricedRow &priced,
                                       Quantity quantity) {
  std::unique_ptr<RowCase> one = caseOf(row, priced, quantity);
  if (!one)
    return std::nullopt;
  std::optional<planner::PlannedCandidate> planned =
      solve(*one, Memory::unlimited, priced);
  if (!planned)
    return std::nullopt;
  planner::ModelGraph graph =
      planner::withBatch(*one->graph, one->config.microBatch * one->config.dp);
  return FixedRun(std::move(one), std::move(graph), std::move(planned->parts));
}

planner::Seconds FixedRun::stepWith(const planner::Software &software) const {
  planner::SearchOptions options = one->options;
  options.software = &software;
  options.overlaps = planner::overlapsOf(software, {});
  options.overlaps.reduce &= !one->reducesAfterBackward;
  options.gathersAhead = options.overlaps.gather;
  const planner::Machine machine = planner::machineUnder(software, one->stated);
  return planner::stepSecondsOf(planner::stepProblemOf(
      graph, parts, planner::settingOf(options, machine, one->config),
      one->config, options.overlaps));
}

double FixedRun::peakGiBWith(const planner::Software &software) const {
  planner::SearchOptions options = one->options;
  options.software = &software;
  return peakGiBOf(graph, parts,
                   planner::settingOf(options, one->machine, one->config),
                   *one);
}

} // namespace mtplan::tools

//===- pipeline.cpp - From a request to a plan ----------------------------===//

#include "tools/driver/pipeline.h"

#include <utility>

#include <fmt/format.h>

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include "passes/layout/bridge.h"
#include "passes/passes.h"
#include "passes/schedule/recompute.h"
#include "passes/schedule/stages.h"
#include "passes/verify/resize.h"
#include "planner/machine/machine_json.h"
#include "planner/search/space/pipeline_parts.h"
#include "tools/driver/imported_config.h"
#include "tools/driver/limits.h"
#include "tools/driver/prove_plan.h"
#include "tools/driver/repeated_work.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

using planner::Precision;

namespace {

const char *elementTypeOf(Precision precision) {
  switch (precision) {
  case Precision::fp32:
    return "f32";
  case Precision::fp16:
    return "f16";
  case Precision::bf16:
  case Precision::fp8:
    return "bf16";
  }
  return "?";
}

Precision precisionOf(const std::string &elementType) {
  for (Precision precision : {Precision::fp32, Precision::fp16})
    if (elementType == elementTypeOf(precision))
      return precision;
  return Precision::bf16;
}

/// Builds a Problem. Collects all violations, so that one run reports all of
/// them.
class Assembly {
public:
  Assembly(const PlanRequest &asked, std::vector<std::string> &findings)
      : request(asked), errors(findings) {}

  std::unique_ptr<Problem> run() {
    bool haveMachine = loadMachine();
    loadSoftware();
    if (haveMachine)
      widenGradients();
    bool haveModel = loadModel();
    bool haveOptions = haveModel && (haveMachine || request.gpus);
    if (haveOptions) {
      setOptions();
      if (!request.importFile.empty())
        importConfig();
      if (haveMachine)
        checkHost();
    }
    bool haveGraph = haveModel && differentiate();
    bool havePins = haveGraph && resolvePins();
    if (havePins)
      usePins();
    if (haveGraph && haveOptions) {
      closeContext();
      openRecomputedLayers();
    }
    // With the objective gpus, the request does not determine the number of
    // GPUs.
    if (haveOptions && request.objective != Objective::gpus)
      checkLimits(problem->options, haveGraph ? &problem->graph : nullptr,
                  errors);
    if (haveOptions && haveGraph && request.sequenceParallel)
      checkSequenceParallel(problem->options, problem->graph.sequence, errors);
    if (!havePins || !errors.empty())
      return nullptr;
    problem->options.software = &problem->software;
    problem->options.sumsPerUse = true;
    problem->options.scattersEarly = problem->options.overlaps.reduce;
    problem->options.gathersAhead = problem->options.overlaps.gather;
    return std::move(problem);
  }

private:
  std::optional<std::string> textOf(const std::string &given,
                                    const std::string &file) {
    return given.empty() ? readTextFile(file, errors) : given;
  }

  bool loadMachine() {
    try {
      problem->machineText = request.machineText;
      if (problem->machineText.empty())
        problem->machineText = planner::machineText(request.hardware);
      problem->machine = planner::parseMachine(problem->machineText);
    } catch (const planner::MachineError &error) {
      addLines(error.what(), request.hardware, errors);
      return false;
    }
    planner::Machine &machine = problem->machine;
    scaleNetwork(machine);
    if (request.memory)
      machine.device.memory = *request.memory;
    precision = request.precision.value_or(machine.defaultPrecision);
    if (machine.device.peak(precision))
      return true;
    std::string has;
    for (Precision other : {Precision::bf16, Precision::fp16, Precision::fp32})
      if (machine.device.peak(other))
        has += (has.empty() ? "" : " and ") + std::string(nameOf(other));
    errors.push_back(machine.name + " has no " + nameOf(precision) +
                     "; --precision may be " + has);
    return true;
  }

  void scaleNetwork(planner::Machine &machine) const {
    if (request.networkScale == 1.0)
      return;
    for (std::size_t l = machine.levels.size() > 1 ? 1 : 0;
         l < machine.levels.size(); ++l) {
      machine.levels[l].bandwidth =
          machine.levels[l].bandwidth * request.networkScale;
      machine.levels[l].reductionBandwidth =
          machine.levels[l].reductionBandwidth * request.networkScale;
    }
    problem->notes.push_back(fmt::format("rates of {} are multiplied by {}",
                                         machine.levels.size() > 1
                                             ? "the network between nodes"
                                             : "the machine's only network",
                                         request.networkScale));
  }

  void loadSoftware() {
    try {
      problem->softwareText = request.softwareText;
      if (problem->softwareText.empty() && request.software.empty())
        return;
      if (problem->softwareText.empty())
        problem->softwareText = planner::softwareText(request.software);
      problem->software = planner::parseSoftware(problem->softwareText);
      problem->machine =
          planner::machineUnder(problem->software, problem->machine);
    } catch (const planner::SoftwareError &error) {
      addLines(error.what(), request.software, errors);
    }
  }

  // Prices gradients in single precision, because compiled plans accumulate
  // gradients in single precision. Other software, if requested, keeps its own
  // precision.
  void widenGradients() {
    planner::ParameterTraffic &traffic = problem->software.parameters;
    constexpr double kSingle = 4.0;
    const bool isOurs =
        request.software.empty() || request.software == "mtplan";
    if (!isOurs || precision == planner::Precision::fp32 ||
        traffic.gradient >= kSingle)
      return;
    traffic.optimizer +=
        kSingle - traffic.gradient; // the update reads the gradient
    traffic.gradient = traffic.accumulation = kSingle;
  }

  bool loadModel() {
    std::optional<std::string> text = textOf(request.modelText, request.model);
    if (!text)
      return false;
    problem->context = std::make_unique<mlir::MLIRContext>(
        mlir::MLIRContext::Threading::DISABLED);
    problem->context->getOrLoadDialect<ir::MtpDialect>();
    ir::ShapeOverrides overrides;
    overrides.sequence = request.sequence;
    overrides.layers = request.layers;
    overrides.elementType =
        elementTypeOf(request.precision.value_or(precision));
    overrides.elementTypeAsked = request.precision.has_value();
    std::optional<ir::LoadedModel> loaded = ir::loadModel(
        *problem->context, *text, request.model, overrides, errors);
    if (!loaded)
      return false;
    problem->model = std::move(*loaded);
    // The model's element type is the precision. A bf16 model may also have fp8
    // products, because their operands are stored in bf16.
    if (Precision held = precisionOf(problem->model.elementType);
        !problem->model.elementType.empty() &&
        !(precision == Precision::fp8 && held == Precision::bf16))
      precision = held;
    problem->notes.insert(problem->notes.begin(), problem->model.notes.begin(),
                          problem->model.notes.end());
    return true;
  }

  void setOptions() {
    planner::SearchOptions &options = problem->options;
    auto narrow = [](std::optional<std::int64_t> value) {
      return value ? std::optional<int>(static_cast<int>(*value))
                   : std::nullopt;
    };
    options.devices =
        narrow(request.gpus).value_or(problem->machine.devicesPerNode);
    options.tp = narrow(request.tp);
    setTensorAxes(request, options, errors);
    options.dp = narrow(request.dp);
    options.pp = request.pp;
    options.cp = request.cp;
    // If the request fixes tp and dp, pp and cp default to 1.
    if (options.tp && options.dp)
      for (planner::Choices<int> *rest : {&options.pp, &options.cp})
        if (rest->only.empty())
          rest->only = {1};
    options.ep = request.ep;
    options.zeroRanks = request.zeroRanks;
    options.recomputeLayers = request.recomputeLayers;
    options.virtualStages = request.virtualStages;
    options.zeroStage = request.zeroStage;
    options.schedule = request.schedule;
    options.recompute = request.recompute;
    options.offload = request.offload;
    options.tiles = request.tiles;
    if (request.overlaps)
      options.overlaps = *request.overlaps;
    else if (!request.software.empty())
      options.overlaps =
          planner::overlapsOf(problem->software, options.overlaps);
    options.layers = request.stageLayers;
    options.unevenCuts =
        request.unevenCuts && options.layers.empty() &&
        (request.asksForCuts || errorOfUnevenCuts(options).empty());
    options.microBatch = request.microBatch;
    options.globalBatch =
        request.globalBatch.value_or(problem->model.globalBatch.value_or(512));
    if (options.globalBatch > kMostSamples)
      errors.push_back(request.model + ": global_batch_size is " +
                       std::to_string(options.globalBatch) + "; at most " +
                       std::to_string(kMostSamples) +
                       " samples can be planned");
    if (request.verify)
      checkProvable(options.devices, errors);
    options.precision = precision;
    options.tensorSplits = options.splitsOfTwoAxes = request.splits;
    if (!request.asksForSplits)
      std::erase(options.splitsOfTwoAxes, planner::Split::sequence);
    options.collectives = request.collectives;
    options.top = static_cast<int>(request.top);
    options.tolerance = request.tolerance;
    if (problem->model.heads)
      options.divisors.push_back(
          {"heads", *problem->model.heads, planner::Split::head});
    if (problem->model.kvHeads &&
        problem->model.kvHeads != problem->model.heads)
      options.divisors.push_back(
          {"key/value heads", *problem->model.kvHeads, planner::Split::head});
  }

  void importConfig() {
    if (std::optional<std::string> text =
            textOf(request.importText, request.importFile))
      applyTrainerConfig(request.importFile, *text, problem->model,
                         problem->options, problem->notes, errors);
  }

  // If the machine file describes no host, offloading is removed from the
  // choices. An error results if no choice is left.
  void checkHost() {
    planner::Choices<planner::Offload> &offload = problem->options.offload;
    if (problem->machine.host)
      return;
    if (!offload.allows(planner::Offload::none))
      errors.push_back(
          "offload: " + problem->machine.name +
          " does not describe its host; a machine file with "
          "\"host\" does (docs/machine-format.md), as the preset " +
          nearestWithHost());
    offload.only = {planner::Offload::none};
  }

  // Returns the name of a preset that describes a host, preferably a preset
  // with the same device.
  std::string nearestWithHost() const {
    std::string nearest;
    for (const std::string &name : planner::presetNames()) {
      planner::Machine preset = planner::loadMachine(name);
      if (preset.host && preset.device.name == problem->machine.device.name)
        return name;
      if (preset.host && nearest.empty())
        nearest = name;
    }
    return nearest;
  }

  bool differentiate() {
    CapturedDiagnostics captured(*problem->context, errors);
    problem->differentiated = problem->model.module.get().clone();
    mlir::PassManager passes(problem->context.get());
    passes.addPass(passes::createDifferentiatePass());
    passes.addPass(passes::createVerifyGradientsPass());
    return mlir::succeeded(passes.run(*problem->differentiated));
  }

  bool resolvePins() {
    problem->graph = passes::buildModelGraph(*problem->differentiated);
    std::vector<std::vector<int>> cuts =
        planner::pinCuts(problem->graph, request.pins);
    llvm::SmallVector<ir::SegmentOp> segments(
        problem->differentiated->getOps<ir::SegmentOp>());
    bool cut = false;
    for (auto [segment, at] : llvm::zip_equal(segments, cuts)) {
      cut = cut || !at.empty();
      passes::splitSegment(segment, at);
    }
    if (cut)
      problem->graph = passes::buildModelGraph(*problem->differentiated);
    problem->graph.name = problem->model.name;
    if (!checkRanks())
      return false;
    std::size_t before = errors.size();
    // With two tensor axes, one axis may leave a dimension unsplit.
    const planner::SearchOptions &options = problem->options;
    const bool isOneAxis = options.tp2.only == std::vector{1};
    problem->pins = planner::resolvePins(
        problem->graph, request.pins,
        {options.tp2.allows(1) ? request.splits : options.splitsOfTwoAxes,
         isOneAxis ? options.tp : std::nullopt, !isOneAxis},
        errors);
    return errors.size() == before;
  }

  void closeContext() {
    if (!request.cpNeedsDenseModel || !request.importFile.empty() ||
        !problem->options.cp.only.empty() || problem->options.devices == 1 ||
        planner::expertsOf(problem->graph) == 1)
      return;
    problem->options.cp.only = {1};
    problem->notes.emplace_back(
        "cp is 1, because a search over cp and ep takes "
        "long; --cp any opens it");
  }

  // Implements PlanRequest::opensCounts. The objective gpus is excluded,
  // because its search tries many numbers of GPUs.
  void openRecomputedLayers() {
    planner::SearchOptions &options = problem->options;
    if (!request.opensCounts || request.objective == Objective::gpus ||
        !request.importFile.empty() || planner::expertsOf(problem->graph) > 1)
      return;
    options.recomputeLayers.only.clear();
    options.countsOfUnevenCuts = options.devices <= kFewGpus;
  }

  // Drops the requirement that tp divides a dimension if pins decide about
  // every operator that could split the dimension.
  void usePins() {
    planner::SearchOptions &options = problem->options;
    options.pins = request.pins.empty() ? nullptr : &problem->pins;
    std::erase_if(options.divisors, [&](const planner::Divisor &divisor) {
      const auto &segments = problem->graph.segments;
      for (std::size_t s = 0; s < segments.size(); ++s)
        for (std::size_t o = 0; o < segments[s].ops.size(); ++o)
          if (problem->pins.ops[s][o].empty() &&
              std::ranges::any_of(segments[s].ops[o].factors,
                                  [&](const planner::Factor &factor) {
                                    return factor.split == divisor.split;
                                  }))
            return false;
      return true;
    });
  }

  // Rejects tensors with many dimensions, because the number of layouts grows
  // steeply with the number of dimensions.
  bool checkRanks() {
    constexpr std::size_t kMostDims = 8;
    std::size_t before = errors.size();
    for (const planner::SegmentGraph &segment : problem->graph.segments)
      for (const planner::Tensor &tensor : segment.tensors)
        if (tensor.phase == planner::Phase::forward &&
            tensor.shape.size() > kMostDims)
          errors.push_back(request.model + ": " + tensor.name + " has " +
                           std::to_string(tensor.shape.size()) +
                           " dimensions; at most " + std::to_string(kMostDims) +
                           " can be planned: join those that stay together");
    return errors.size() == before;
  }

  const PlanRequest &request;
  std::vector<std::string> &errors;
  std::unique_ptr<Problem> problem = std::make_unique<Problem>();
  Precision precision = Precision::bf16;
};

} // namespace

std::unique_ptr<Problem> buildProblem(const PlanRequest &request,
                                      std::vector<std::string> &errors) {
  return Assembly(request, errors).run();
}

void finishOutcome(PlanOutcome &outcome) {
  const PlanRequest &request = outcome.asked;
  const planner::PlannedCandidate *best = outcome.best();
  std::vector<std::string> &notes = outcome.problem->notes;
  if (best && (request.emit || request.verify) && best->config.tiles > 1)
    notes.emplace_back("the IR shows each product untiled, because it cannot "
                       "express tiles yet");
  if (!request.pins.empty() && best && best->config.tp == 1)
    notes.emplace_back(
        "with tp 1 no tensor is split, so every pin is satisfied");
  if (best && !request.output.empty() && best->config.zeroStage > 0 &&
      (outcome.problem->options.overlaps.gather ||
       outcome.problem->options.overlaps.reduce))
    notes.push_back(fmt::format(
        "-o: traffic of ZeRO {} is priced beside all compute that it can be "
        "beside; what is compiled {}",
        best->config.zeroStage,
        best->config.zeroStage == 1
            ? "scatters gradients beside the backward, and gathers weights "
              "after the update"
        : best->config.zeroStage == 2
            ? "scatters gradients beside their own layer's backward alone, and "
              "gathers after the update"
        : outcome.problem->options.overlaps.gather
            ? "gathers a layer's weights while the layer before computes, and "
              "scatters its gradients after its backward"
            : "gathers a layer's weights before it computes, and scatters its "
              "gradients after its backward"));
  if (best)
    if (std::string note = repeatedWorkOf(outcome); !note.empty())
      notes.push_back(std::move(note));
}

PlanOutcome plan(const PlanRequest &request, std::vector<std::string> errors) {
  PlanOutcome outcome;
  outcome.asked = request;
  outcome.errors = std::move(errors);
  outcome.problem = buildProblem(request, outcome.errors);
  if (!outcome.problem)
    return outcome;
  searchProblem(outcome);
  finishOutcome(outcome);
  return outcome;
}

mlir::OwningOpRef<mlir::ModuleOp>
moduleOf(const Problem &problem, Stage stage,
         const planner::PlannedCandidate *candidate,
         std::vector<std::string> &errors) {
  if (stage == Stage::model)
    return mlir::OwningOpRef<mlir::ModuleOp>(
        mlir::ModuleOp(problem.model.module.get()).clone());
  mlir::OwningOpRef<mlir::ModuleOp> module(
      mlir::ModuleOp(problem.differentiated.get()).clone());
  if (stage == Stage::differentiated)
    return module;
  CapturedDiagnostics captured(*problem.context, errors);
  const planner::Parallelism &config = candidate->config;
  std::int64_t samples = config.microBatch * config.dp;
  passes::resizeBatch(*module, samples);
  passes::RecomputedRuns runs = passes::cutForRecompute(
      problem.graph, candidate->plans(), config.layers,
      config.recompute == planner::Recompute::none ? 0
                                                   : config.recomputeLayers);
  passes::applyPlan(*module, planner::withBatch(problem.graph, samples),
                    runs.plans, planner::meshOf(config));
  for (auto [segment, again] :
       llvm::zip_equal(module->getOps<ir::SegmentOp>(), runs.again))
    if (again)
      passes::recompute(segment, config.recompute);
  passes::placeOnStages(
      *module, planner::pipelineParts(problem.graph, config.layers), config.pp);
  mlir::PassManager gates(problem.context.get());
  gates.addPass(passes::createVerifyLayoutsPass());
  if (stage == Stage::partitioned) {
    gates.addPass(passes::createInsertCollectivesPass());
    gates.addPass(passes::createVerifyPartitionedPass());
    gates.addPass(passes::createSplitStagesPass());
    gates.addPass(passes::createVerifyStagesPass());
  }
  if (mlir::failed(mlir::verify(*module)) || mlir::failed(gates.run(*module)))
    return nullptr;
  return module;
}

} // namespace mtplan::tools

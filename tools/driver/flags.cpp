//===- flags.cpp - The flags of `mtplan`, a row each ----------------------===//

#include "tools/driver/flags.h"

#include <nlohmann/json.hpp>

#include "ir/model/fields.h"
#include "planner/search/space/enumerate.h"
#include "tools/driver/flag_values.h"
#include "tools/driver/read_flags.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Precision;
using planner::SearchOptions;
using planner::Split;
using planner::StepKind;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::int64_t kMostPlans = 100;

constexpr const char *kInput = "Input";
constexpr const char *kSearch = "Search";
constexpr const char *kOutput = "Output";
constexpr const char *kExchange = "Exchange";

constexpr StepKind kCollectives[] = {StepKind::allReduce, StepKind::allGather,
                                     StepKind::reduceScatter,
                                     StepKind::allToAll};
constexpr Precision kPrecisions[] = {Precision::bf16, Precision::fp16,
                                     Precision::fp32, Precision::fp8};
constexpr planner::ScheduleKind kSchedules[] = {
    planner::ScheduleKind::oneForwardOneBackward,
    planner::ScheduleKind::interleaved, planner::ScheduleKind::zeroBubble,
    planner::ScheduleKind::gpipe};
constexpr planner::Recompute kRecomputes[] = {planner::Recompute::none,
                                              planner::Recompute::selective,
                                              planner::Recompute::full};
constexpr planner::Offload kOffloads[] = {planner::Offload::none,
                                          planner::Offload::optimizer};
constexpr ExportKind kExports[] = {
    ExportKind::megatron,   ExportKind::deepspeed, ExportKind::torchtitan,
    ExportKind::accelerate, ExportKind::tpPlan,    ExportKind::jax,
    ExportKind::shardy,     ExportKind::dtensor,   ExportKind::meshTensorflow,
    ExportKind::constraints};
constexpr Objective kObjectives[] = {Objective::stepTime, Objective::memory,
                                     Objective::gpus};

struct ZeroStage {
  int stage = 0;
  operator int() const { return stage; }
};
const char *nameOf(ZeroStage zero) {
  constexpr const char *kNames[] = {"0", "1", "2", "3"};
  return kNames[zero.stage];
}
constexpr ZeroStage kZeroStages[] = {{0}, {1}, {2}, {3}};

Json jsonOf(std::int64_t value) { return value; }
Json jsonOf(int value) { return value; }
Json jsonOf(planner::Seconds value) { return value.value; }
Json jsonOf(const std::string &value) { return value; }
template <typename Named> Json jsonOf(Named value) { return nameOf(value); }

template <typename Value> Json jsonOf(const std::optional<Value> &value) {
  return value ? jsonOf(*value) : Json();
}

template <typename Value> Json jsonOf(const planner::Choices<Value> &choices) {
  if (choices.only.empty())
    return "any";
  if (choices.only.size() == 1)
    return jsonOf(choices.only.front());
  Json list = Json::array();
  for (Value value : choices.only)
    list.push_back(jsonOf(value));
  return list;
}

template <auto member>
Json asked(const PlanRequest &request, const SearchOptions &) {
  return jsonOf(request.*member);
}

template <auto member>
Json chosen(const PlanRequest &, const SearchOptions &options) {
  return jsonOf(options.*member);
}

std::vector<FlagRow> rowsOfInput() {
  return {
      {kInput, "MODEL", "",
       "Hugging Face config.json, mtplan's own JSON, or MLIR text",
       anyText(&PlanRequest::model)},
      {kInput, "--gpus", "N", "number of GPUs (default: one node)",
       count(&PlanRequest::gpus, kMostGpus), kConstraint,
       chosen<&SearchOptions::devices>},
      {kInput, "--hardware", "NAME|FILE",
       "machine preset or file (default: dgx-h100)",
       anyText(&PlanRequest::hardware), kConstraint | kReplaceable,
       asked<&PlanRequest::hardware>},
      {kInput, "--software", "NAME|FILE",
       "preset or file of kernels and overlaps (default: mtplan)",
       anyText(&PlanRequest::software), kConstraint | kReplaceable,
       [](const PlanRequest &request, const SearchOptions &) {
         return request.software.empty() ? Json() : Json(request.software);
       }},
      {kInput, "--scale-network", "FACTOR",
       "multiply the bandwidth between nodes by this",
       number(&PlanRequest::networkScale), kConstraint | kReplaceable,
       [](const PlanRequest &request, const SearchOptions &) {
         return request.networkScale == 1.0 ? Json()
                                            : Json(request.networkScale);
       }},
      {kInput, "--memory-gib", "GIB",
       "memory of a GPU, instead of the machine's",
       number(&PlanRequest::memory, kGiB), kConstraint,
       [](const PlanRequest &request, const SearchOptions &) {
         return request.memory ? Json(request.memory->value / kGiB) : Json();
       }},
      {kInput, "--precision", "WORD",
       "bf16, fp16, fp32, or fp8 for the products of layers with bf16 for the "
       "rest (default: the machine's)",
       word(&PlanRequest::precision, "precision", kPrecisions), kConstraint,
       chosen<&SearchOptions::precision>},
      {kInput, "--seq", "N", "tokens per sample, instead of the model's",
       count(&PlanRequest::sequence, ir::kSizeLimit - 1), kConstraint,
       asked<&PlanRequest::sequence>},
      {kInput, "--layers", "N",
       "number of repeated layers, instead of the model's",
       count(&PlanRequest::layers, ir::kMaxLayers), kConstraint,
       asked<&PlanRequest::layers>},
      {kInput, "--global-batch", "N",
       "samples per step (default: the model file's, or 512)",
       count(&PlanRequest::globalBatch, kMostSamples), kConstraint,
       chosen<&SearchOptions::globalBatch>},
      {kInput,
       "--constraints",
       "FILE",
       "read flags from JSON (docs/plan-files.md)",
       {}},
      {kInput, "--load", "FILE",
       "print a saved plan; with --hardware, --software or --scale-network, "
       "price it there",
       fileName(&PlanRequest::load)}};
}

std::vector<FlagRow> rowsOfParallelism() {
  constexpr unsigned kBoth = kConstraint | kImported;
  return {
      {kParallelism, "--micro-batch", "N", "samples per micro-batch",
       count(&PlanRequest::microBatch, kMostSamples), kConstraint,
       chosen<&SearchOptions::microBatch>},
      {kParallelism, "--tp", "N", "tensor-parallel ranks",
       count(&PlanRequest::tp, kMostGpus), kBoth, chosen<&SearchOptions::tp>},
      {kParallelism,
       "--tp-axes",
       "1|2|LIST",
       "axes of tensor ranks: with 2, or with two sizes such as 4,2, each "
       "operator chooses a split for each axis (default: 1)",
       {FlagKind::counts, readTensorAxes},
       kBoth,
       tensorAxesJson},
      {kParallelism, "--dp", "N", "data-parallel replicas",
       count(&PlanRequest::dp, kMostGpus), kBoth, chosen<&SearchOptions::dp>},
      {kParallelism, "--pp", "N|LIST|any", "pipeline stages (default: any)",
       counts(&PlanRequest::pp, kMostGpus), kBoth, chosen<&SearchOptions::pp>},
      {kParallelism, "--cp", "N|any",
       "context-parallel ranks, which split the sequence (default: any; with "
       "experts 1)",
       counts(&PlanRequest::cp, kMostGpus), kBoth, chosen<&SearchOptions::cp>},
      {kParallelism, "--ep", "N|any",
       "expert-parallel ranks, replicas that share the experts (default: any)",
       counts(&PlanRequest::ep, kMostGpus), kBoth, chosen<&SearchOptions::ep>},
      {kParallelism, "--schedule", "WORD|any",
       "pipeline schedule: 1f1b, interleaved, zero-bubble or gpipe (default: "
       "any; with -o not zero-bubble)",
       words(&PlanRequest::schedule, "schedule", kSchedules), kBoth,
       chosen<&SearchOptions::schedule>},
      {kParallelism, "--vp", "N|any",
       "virtual stages per rank of an interleaved schedule",
       counts(&PlanRequest::virtualStages, kMostGpus), kBoth,
       chosen<&SearchOptions::virtualStages>},
      {kParallelism,
       "--stage-layers",
       "LIST|even|any",
       "layers of each virtual stage (default: any)",
       {FlagKind::counts, readStageLayers},
       kBoth,
       stageLayersJson}};
}

std::vector<FlagRow> rowsOfMemory() {
  constexpr unsigned kBoth = kConstraint | kImported;
  return {
      {kMemory, "--zero", "N|any", "ZeRO stage, 0 to 3 (default: any)",
       words(&PlanRequest::zeroStage, "stage", kZeroStages, FlagKind::counts),
       kBoth, chosen<&SearchOptions::zeroStage>},
      {kMemory, "--zero-ranks", "N|all|any",
       "replicas that ZeRO shards over; any: all, or those of one node "
       "(default: any)",
       counts(&PlanRequest::zeroRanks, kMostGpus, "all"), kBoth,
       [](const PlanRequest &, const SearchOptions &options) {
         return options.zeroRanks.only == std::vector{0}
                    ? Json("all")
                    : jsonOf(options.zeroRanks);
       }},
      {kMemory, "--recompute", "WORD|any",
       "recomputation in backward: none, selective (attention's core) or full "
       "(whole layers) (default: any)",
       words(&PlanRequest::recompute, "kind", kRecomputes), kBoth,
       chosen<&SearchOptions::recompute>},
      {kMemory, "--recompute-layers", "N|any",
       "layers per virtual stage that recompute in full (default: all; without "
       "--recompute, any for dense models, but on more than 8 GPUs not in "
       "uneven stages)",
       counts(&PlanRequest::recomputeLayers, kMostGpus), kBoth,
       [](const PlanRequest &, const SearchOptions &options) {
         return planner::isCounted(options) ? jsonOf(options.recomputeLayers)
                                            : Json();
       }},
      {kMemory, "--offload", "WORD|any",
       "none, or optimizer: keep and update its state on the host (default: "
       "none, unless nothing else fits)",
       words(&PlanRequest::offload, "kind", kOffloads), kBoth,
       chosen<&SearchOptions::offload>},
      {kMemory, "--tiles", "N|LIST|any",
       "under ZeRO 3, gather and use the largest weight in this many tiles "
       "(default: 1)",
       counts(&PlanRequest::tiles, kMostGpus), kBoth,
       chosen<&SearchOptions::tiles>},
      {kParallelism,
       "--overlap",
       "LIST",
       "communication beside compute: on, off, or some of gather, reduce, "
       "sends and host (default: the --software's, else off)",
       {FlagKind::words, readOverlap},
       kBoth,
       overlapJson},
      {kParallelism,
       "--splits",
       "LIST",
       "factors that tp may split: column, row, head, vocab, sequence, "
       "expert, batch, hidden (default: all but batch and hidden; all: also "
       "batch)",
       {FlagKind::words, readSplits},
       kConstraint,
       splitsJson},
      {kParallelism, "--collectives", "LIST|any",
       "collectives that may change layouts between operators: all_reduce, "
       "all_gather, reduce_scatter, all_to_all (default: any); weights and "
       "gradients may use all",
       words(&PlanRequest::collectives, "collective", kCollectives),
       kConstraint, chosen<&SearchOptions::collectives>},
      {kParallelism,
       "--sequence-parallel",
       "on|off",
       "add sequence to the splits, or remove it",
       {FlagKind::word, {}},
       kConstraint},
      {kParallelism,
       "--pin",
       "PATTERN=VALUE",
       "fix the layout of an operator or a parameter; may be repeated",
       {FlagKind::list, {}}}};
}

std::vector<FlagRow> rowsOfSearch() {
  return {
      {kSearch, "--objective", "WORD",
       "minimize step-time (default), memory of a GPU, or gpus, up to --gpus",
       word(&PlanRequest::objective, "objective", kObjectives), kConstraint,
       [](const PlanRequest &request, const SearchOptions &) {
         return request.objective == Objective::stepTime
                    ? Json()
                    : Json(nameOf(request.objective));
       }},
      {kSearch, "--max-step-time", "SECONDS", "reject slower plans",
       number(&PlanRequest::maxStepTime), kConstraint,
       asked<&PlanRequest::maxStepTime>},
      {kSearch, "--budget-seconds", "SECONDS",
       "stop the search then, and print how far the plan may be from optimal",
       number(&PlanRequest::budget), kConstraint, asked<&PlanRequest::budget>},
      {kSearch,
       "--open",
       "LIST",
       "what the search chooses besides dp, tp and the micro-batch, unless a "
       "flag decides it: all (default), none, or some of pp, cp, ep, schedule, "
       "stages (uneven ones), zero, recompute and offload",
       {FlagKind::words, {}},
       kConstraint},
      {kSearch, "--tolerance", "PERCENT",
       "prefer the simplest plan that is at most so much slower than the "
       "fastest (default: 1; 0: the fastest)",
       number(&PlanRequest::tolerance, 0.01, true), kConstraint,
       [](const PlanRequest &, const SearchOptions &options) {
         return Json(100 * options.tolerance);
       }},
      {kSearch, "--top", "K", "number of plans to list (default: 5)",
       count(&PlanRequest::top, kMostPlans), kConstraint,
       chosen<&SearchOptions::top>},
      {kSearch, "--verify", "",
       "prove the plan: compare a small run on all ranks with one rank",
       isGiven(&PlanRequest::verify)},
      {kSearch, "--explain", "",
       "name the cost or limit that decided against each other mesh",
       isGiven(&PlanRequest::explain)},
      {kSearch,
       "--why",
       "'tp=8 zero=1'",
       "say why other choices lost: search with these flags, written without "
       "--, and print what their best plan costs more; may be repeated",
       {FlagKind::list, {}}}};
}

std::vector<FlagRow> rowsOfOutput() {
  return {
      {kOutput, "--json", "", "print JSON (docs/json-output.md)",
       isGiven(&PlanRequest::json)},
      {kOutput, "--timings", "", "print how long the search took",
       isGiven(&PlanRequest::timings)},
      {kOutput, "-o,--output", "FOLDER", "compile the plan for mtrun",
       fileName(&PlanRequest::output)},
      {kOutput,
       "--emit",
       "WORD",
       "mlir: print IR instead of the report; cuda: with -o, also write a "
       "stand-alone CUDA and NCCL program",
       {FlagKind::text, readEmit}},
      {kOutput,
       "--stage",
       "NAME",
       "IR that --emit mlir prints: model, differentiated, planned (default) "
       "or partitioned",
       {}},
      {kOutput, "--save", "FILE", "write the plan, for --load and --compare",
       fileName(&PlanRequest::save)},
      {kOutput,
       "--compare",
       "FILE FILE",
       "print how two saved plans differ, and which is faster",
       {FlagKind::pair, {}}},
      {kOutput, "--report", "FILE", "write the plan as a web page",
       fileName(&PlanRequest::report)},
      {kOutput,
       "--sweep",
       "LIST",
       "instead of the report, print a CSV with the best plan for each "
       "combination of some of dp, tp, pp, cp, ep, micro-batch, zero, vp, "
       "tiles, schedule, recompute and offload",
       {FlagKind::words, {}}},
      {kOutput, "--trace", "FILE",
       "write the simulated step for Perfetto or chrome://tracing",
       fileName(&PlanRequest::trace)},
      {kOutput, "--dot", "FILE", "write the operator graph for Graphviz",
       fileName(&PlanRequest::dot)},
      {kExchange, "--import", "FILE",
       "price a Megatron-LM command line, DeepSpeed JSON or torchtitan TOML",
       anyText(&PlanRequest::importFile)},
      {kExchange, "--export", "WORD",
       "print the plan as megatron, deepspeed, torchtitan, accelerate, "
       "hf-tp-plan, jax, shardy, dtensor, mesh-tensorflow or constraints",
       word(&PlanRequest::exportKind, "notation", kExports)}};
}

} // namespace

const std::string *Flags::find(const std::string &flag) const {
  const auto found = texts.find(flag);
  return found != texts.end() && found->second ? &*found->second : nullptr;
}

std::string Flags::text(const std::string &flag) const {
  const std::string *found = find(flag);
  return found ? *found : "";
}

bool Flags::isOn(const std::string &flag) const {
  const auto found = switches.find(flag);
  return found != switches.end() && found->second;
}

const std::vector<std::string> &Flags::list(const std::string &flag) const {
  static const std::vector<std::string> kNone;
  const auto found = lists.find(flag);
  return found != lists.end() ? found->second : kNone;
}

std::string FlagRow::shortName() const {
  const std::string names = name;
  return names.substr(0, names.find(','));
}

std::string FlagRow::key() const {
  std::string key = shortName().substr(2);
  std::ranges::replace(key, '-', '_');
  return key;
}

const std::vector<FlagRow> &flagRows() {
  static const std::vector<FlagRow> rows = [] {
    std::vector<FlagRow> all;
    for (auto part : {rowsOfInput, rowsOfParallelism, rowsOfMemory,
                      rowsOfSearch, rowsOfOutput})
      for (FlagRow &row : part())
        all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

} // namespace mtplan::tools

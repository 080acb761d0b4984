//===- request.cpp - What a person asked for ------------------------------===//

#include "tools/request.h"

#include <algorithm>
#include <charconv>

#include "ir/model/fields.h"

namespace mtplan::tools {

using planner::Precision;
using planner::Split;

namespace {

constexpr std::int64_t kMostGpus = std::int64_t{1} << 20;
constexpr std::int64_t kMostPlans = 100;
constexpr double kMostGib = 1e6;
constexpr double kMostScale = 1e6;
constexpr double kMostSeconds = 1e6;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

/// What `--splits` may name.
constexpr Split kSplits[] = {Split::column, Split::row,      Split::head,
                             Split::vocab,  Split::sequence, Split::batch,
                             Split::expert, Split::hidden};
constexpr Precision kPrecisions[] = {Precision::bf16, Precision::fp16,
                                     Precision::fp32, Precision::fp8};
/// A word of `--zero`.
struct ZeroStage {
  int stage = 0;
};
const char *nameOf(ZeroStage zero) {
  constexpr const char *kNames[] = {"0", "1", "2", "3"};
  return kNames[zero.stage];
}
constexpr ZeroStage kZeroStages[] = {{0}, {1}, {2}, {3}};
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
/// A word of `--overlap`: traffic that runs beside compute.
enum class Beside : std::uint8_t { gather, reduce, sends, host };
const char *nameOf(Beside beside) {
  constexpr const char *kNames[] = {"gather", "reduce", "sends", "host"};
  return kNames[static_cast<int>(beside)];
}
constexpr Beside kBesides[] = {Beside::gather, Beside::reduce, Beside::sends,
                               Beside::host};
constexpr Stage kStages[] = {Stage::model, Stage::differentiated,
                             Stage::planned, Stage::partitioned};

/// The words between commas, without blanks around them.
std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= text.size()) {
    std::size_t end = std::min(text.find(',', start), text.size());
    std::size_t first = text.find_first_not_of(' ', start);
    words.push_back(first < end ? text.substr(first, end - first)
                                : std::string());
    words.back().erase(words.back().find_last_not_of(' ') + 1);
    start = end + 1;
  }
  return words;
}

/// Of values to choose from: said again, one says nothing.
template <typename Value>
std::vector<Value> withoutRepeats(const std::vector<Value> &all) {
  std::vector<Value> first;
  for (const Value &value : all)
    if (std::ranges::find(first, value) == first.end())
      first.push_back(value);
  return first;
}

/// Judges flags one by one; the first fault of each is noted.
class Reader {
public:
  Reader(const Flags &theFlags, std::vector<std::string> &findings)
      : flags(theFlags), errors(findings) {}

  std::optional<std::int64_t> count(const char *flag, const Flags::Text &text,
                                    std::int64_t most) {
    if (!text)
      return std::nullopt;
    std::int64_t value = 0;
    const char *end = text->data() + text->size();
    auto [rest, problem] = std::from_chars(text->data(), end, value);
    if (problem == std::errc{} && rest == end && value >= 1 && value <= most)
      return value;
    bool whole = rest == end && problem != std::errc::invalid_argument;
    error(flag, "must be a whole number from 1 to " + std::to_string(most) +
                    ", but is " + (whole ? *text : '"' + *text + '"'));
    return std::nullopt;
  }

  std::optional<double> number(const char *flag, const Flags::Text &text,
                               double most) {
    if (!text)
      return std::nullopt;
    double value = 0;
    const char *end = text->data() + text->size();
    auto [rest, problem] = std::from_chars(text->data(), end, value);
    // NaN is not above 0 either.
    if (problem == std::errc{} && rest == end && value > 0 && value <= most)
      return value;
    error(flag, "must be a number above 0 and at most 1000000, but is \"" +
                    *text + '"');
    return std::nullopt;
  }

  /// One of the values whose names `nameOf` gives.
  template <typename Value, std::size_t N>
  std::optional<Value> oneOf(const char *flag, const char *what,
                             const std::string &word,
                             const Value (&values)[N]) {
    std::vector<std::string> known;
    for (Value value : values) {
      if (word == nameOf(value))
        return value;
      known.emplace_back(nameOf(value));
    }
    error(flag, ir::unknownName(what, word, known));
    return std::nullopt;
  }

  /// Words between commas, each one of `values`; said again, it says nothing.
  template <typename Value, std::size_t N>
  std::vector<Value> someOf(const char *flag, const char *what,
                            const std::string &text, const Value (&values)[N]) {
    std::vector<Value> named;
    for (const std::string &word : withoutRepeats(wordsOf(text)))
      if (std::optional<Value> value = oneOf(flag, what, word, values))
        named.push_back(*value);
    return named;
  }

  /// Whole numbers between commas.
  std::vector<int> counts(const char *flag, const std::string &text,
                          std::int64_t most) {
    std::vector<int> numbers;
    for (const std::string &word : wordsOf(text))
      if (auto number = count(flag, word, most))
        numbers.push_back(static_cast<int>(*number));
    return numbers;
  }

  void error(const char *flag, const std::string &what) {
    auto place = flags.places.find(flag);
    errors.push_back((place == flags.places.end() ? flag : place->second) +
                     ": " + what);
  }

private:
  const Flags &flags;
  std::vector<std::string> &errors;
};

// --sequence-parallel adds or removes the sequence split.
void applySequenceParallel(const Flags &flags, PlanRequest &request,
                           Reader &reader) {
  if (!flags.sequenceParallel)
    return;
  const std::string &word = *flags.sequenceParallel;
  if (word != "on" && word != "off") {
    reader.error("--sequence-parallel",
                 "must be on or off, but is \"" + word + '"');
    return;
  }
  if (word == "off" && flags.splits && request.splits.size() == 1 &&
      request.splits.front() == Split::sequence) {
    reader.error("--sequence-parallel",
                 "is off, but --splits names sequence only: nothing is left");
    return;
  }
  std::erase(request.splits, Split::sequence);
  if (word == "on")
    request.splits.push_back(Split::sequence);
}

void readEmit(const Flags &flags, PlanRequest &request, Reader &reader) {
  const std::string word = flags.emit.value_or("mlir");
  request.emitsCuda = word == "cuda";
  if (word != "mlir" && word != "cuda")
    reader.error("--emit", "knows mlir and cuda, but is \"" + word + '"');
  if (request.emitsCuda && !flags.output)
    reader.error("--emit", "cuda writes train.cu: needs -o FOLDER");
  if (flags.stage && (!flags.emit || request.emitsCuda))
    reader.error("--stage", "needs --emit mlir");
  if (!flags.emit || request.emitsCuda)
    return;
  if (flags.json)
    reader.error("--emit", "prints IR and --json prints JSON: give one");
  if (flags.verify)
    reader.error("--emit", "prints IR and --verify a proof: give one");
  const std::string stage = flags.stage.value_or("planned");
  if (flags.dot && (stage == "model" || stage == "differentiated"))
    reader.error("--dot",
                 "draws a plan, and there is none at --stage " + stage);
  request.emit = reader.oneOf("--stage", "stage", stage, kStages);
}

// Each fixes one choice, or names several; `any` leaves it to the search.
void readParallelism(const Flags &flags, PlanRequest &request, Reader &reader) {
  auto isOpen = [](const Flags::Text &text) { return text && *text == "any"; };
  auto number = [&](const char *flag, const Flags::Text &text,
                    planner::Choices<int> &choices) {
    if (isOpen(text))
      choices.only.clear();
    else if (text)
      if (auto numbers = withoutRepeats(reader.counts(flag, *text, kMostGpus));
          !numbers.empty())
        choices.only = numbers;
  };
  number("--pp", flags.pp, request.pp);
  number("--cp", flags.cp, request.cp);
  number("--ep", flags.ep, request.ep);
  number("--zero-ranks", flags.zeroRanks, request.zeroRanks);
  number("--recompute-layers", flags.recomputeLayers, request.recomputeLayers);
  number("--vp", flags.virtualStages, request.virtualStages);
  number("--tiles", flags.tiles, request.tiles);
  auto word = [&](const char *flag, const char *what, const Flags::Text &text,
                  auto &choices, const auto &values, auto meaning) {
    if (isOpen(text)) {
      choices.only.clear();
    } else if (text) {
      auto named = reader.someOf(flag, what, *text, values);
      if (named.empty())
        return;
      choices.only.clear();
      for (auto value : named)
        choices.only.push_back(meaning(value));
    }
  };
  auto itself = [](auto value) { return value; };
  word("--zero", "stage", flags.zero, request.zeroStage, kZeroStages,
       [](ZeroStage zero) { return zero.stage; });
  word("--schedule", "schedule", flags.schedule, request.schedule, kSchedules,
       itself);
  word("--recompute", "kind", flags.recompute, request.recompute, kRecomputes,
       itself);
  word("--offload", "kind", flags.offload, request.offload, kOffloads, itself);
  // Some layers can only recompute in full; open, they may also do without.
  if (flags.recomputeLayers && !flags.recompute) {
    request.recompute.only = {planner::Recompute::full};
    if (isOpen(flags.recomputeLayers))
      request.recompute.only.insert(request.recompute.only.begin(),
                                    planner::Recompute::none);
  }
  if (flags.recomputeLayers &&
      !request.recompute.allows(planner::Recompute::full))
    reader.error("--recompute-layers",
                 "counts layers that recompute in full, but --recompute is " +
                     *flags.recompute + ": give it full, or leave it out");
  request.unevenCuts = isOpen(flags.stageLayers);
  if (flags.stageLayers && !request.unevenCuts)
    request.stageLayers =
        reader.counts("--stage-layers", *flags.stageLayers, ir::kMaxLayers);
  // Chunks are what interleaving is about.
  if (!flags.schedule && flags.virtualStages &&
      request.virtualStages.only != std::vector<int>{1})
    request.schedule.only = {planner::ScheduleKind::interleaved};
  if (request.schedule.allows(planner::ScheduleKind::interleaved) &&
      !flags.virtualStages)
    request.virtualStages.only.clear();
}

void readOverlap(const Flags &flags, PlanRequest &request, Reader &reader) {
  if (!flags.overlap)
    return;
  if (*flags.overlap == "on") {
    request.overlaps = planner::Overlaps{};
    return;
  }
  planner::Overlaps &overlaps = request.overlaps.emplace(
      planner::Overlaps{false, false, false, false, false, false});
  if (*flags.overlap == "off")
    return;
  for (Beside beside : reader.someOf("--overlap", "traffic (or on, off)",
                                     *flags.overlap, kBesides))
    switch (beside) {
    case Beside::gather:
      overlaps.gather = true;
      break;
    case Beside::reduce:
      overlaps.reduce = true;
      break;
    case Beside::sends:
      overlaps.pointToPoint = true;
      break;
    case Beside::host:
      overlaps.down = overlaps.hostUpdate = overlaps.up = true;
      break;
    }
}

void readObjective(const Flags &flags, PlanRequest &request, Reader &reader) {
  if (flags.objective)
    request.objective =
        reader.oneOf("--objective", "objective", *flags.objective, kObjectives)
            .value_or(Objective::stepTime);
  if (auto most =
          reader.number("--max-step-time", flags.maxStepTime, kMostSeconds))
    request.maxStepTime = planner::Seconds{*most};
  if (auto budget =
          reader.number("--budget-seconds", flags.budgetSeconds, kMostSeconds))
    request.budget = planner::Seconds{*budget};
}

// What another file says is not said again.
void refuseBesideLoad(const Flags &flags, Reader &reader) {
  constexpr std::string_view kMayBeGiven[] = {"--hardware", "--software",
                                              "--scale-network"};
  const char *const kSaid = "is what --load says: give one of the two";
  for (const FlagKey &key : flagKeys())
    if (flags.*key.text &&
        std::ranges::find(kMayBeGiven, key.flag) == std::end(kMayBeGiven))
      reader.error(key.flag, kSaid);
  for (auto [flag, given] :
       {std::pair("--pin", !flags.pins.empty()),
        std::pair("--constraints", flags.constraints.has_value()),
        std::pair("--import", flags.importFile.has_value())})
    if (given)
      reader.error(flag, kSaid);
}

} // namespace

const std::vector<FlagKey> &flagKeys() {
  using Kind = FlagKey::Kind;
  static const std::vector<FlagKey> keys = {
      {"gpus", "--gpus", &Flags::gpus, Kind::count},
      {"hardware", "--hardware", &Flags::hardware, Kind::word},
      {"software", "--software", &Flags::software, Kind::word},
      {"scale_network", "--scale-network", &Flags::scaleNetwork, Kind::number},
      {"memory_gib", "--memory-gib", &Flags::memoryGib, Kind::number},
      {"precision", "--precision", &Flags::precision, Kind::word},
      {"seq", "--seq", &Flags::sequence, Kind::count},
      {"layers", "--layers", &Flags::layers, Kind::count},
      {"global_batch", "--global-batch", &Flags::globalBatch, Kind::count},
      {"micro_batch", "--micro-batch", &Flags::microBatch, Kind::count},
      {"tp", "--tp", &Flags::tp, Kind::count},
      {"dp", "--dp", &Flags::dp, Kind::count},
      {"pp", "--pp", &Flags::pp, Kind::counts},
      {"cp", "--cp", &Flags::cp, Kind::counts},
      {"ep", "--ep", &Flags::ep, Kind::counts},
      {"schedule", "--schedule", &Flags::schedule, Kind::words},
      {"vp", "--vp", &Flags::virtualStages, Kind::counts},
      {"stage_layers", "--stage-layers", &Flags::stageLayers, Kind::counts},
      {"zero", "--zero", &Flags::zero, Kind::counts},
      {"zero_ranks", "--zero-ranks", &Flags::zeroRanks, Kind::counts},
      {"recompute", "--recompute", &Flags::recompute, Kind::words},
      {"recompute_layers", "--recompute-layers", &Flags::recomputeLayers,
       Kind::counts},
      {"offload", "--offload", &Flags::offload, Kind::words},
      {"tiles", "--tiles", &Flags::tiles, Kind::counts},
      {"overlap", "--overlap", &Flags::overlap, Kind::words},
      {"splits", "--splits", &Flags::splits, Kind::words},
      {"sequence_parallel", "--sequence-parallel", &Flags::sequenceParallel,
       Kind::word},
      {"objective", "--objective", &Flags::objective, Kind::word},
      {"max_step_time", "--max-step-time", &Flags::maxStepTime, Kind::number},
      {"budget_seconds", "--budget-seconds", &Flags::budgetSeconds,
       Kind::number},
      {"top", "--top", &Flags::top, Kind::count}};
  return keys;
}

const char *nameOf(ExportKind kind) {
  constexpr const char *kNames[] = {
      "megatron", "deepspeed", "torchtitan", "accelerate",      "hf-tp-plan",
      "jax",      "shardy",    "dtensor",    "mesh-tensorflow", "constraints"};
  return kNames[static_cast<int>(kind)];
}

const char *nameOf(Objective objective) {
  constexpr const char *kNames[] = {"step-time", "memory", "gpus"};
  return kNames[static_cast<int>(objective)];
}

const char *nameOf(Stage stage) {
  switch (stage) {
  case Stage::model:
    return "model";
  case Stage::differentiated:
    return "differentiated";
  case Stage::planned:
    return "planned";
  case Stage::partitioned:
    return "partitioned";
  }
  return "?";
}

std::vector<Split> defaultSplits() {
  return {Split::column,   Split::row,   Split::head,  Split::vocab,
          Split::sequence, Split::batch, Split::expert};
}

PlanRequest readFlags(const Flags &flags, std::vector<std::string> &errors) {
  Reader reader(flags, errors);
  PlanRequest request;
  request.model = flags.model;
  request.hardware = flags.hardware.value_or("dgx-h100");
  request.networkScale =
      reader.number("--scale-network", flags.scaleNetwork, kMostScale)
          .value_or(1.0);
  request.gpus = reader.count("--gpus", flags.gpus, kMostGpus);
  request.tp = reader.count("--tp", flags.tp, kMostGpus);
  request.dp = reader.count("--dp", flags.dp, kMostGpus);
  readParallelism(flags, request, reader);
  readOverlap(flags, request, reader);
  request.microBatch =
      reader.count("--micro-batch", flags.microBatch, kMostSamples);
  request.globalBatch =
      reader.count("--global-batch", flags.globalBatch, kMostSamples);
  request.sequence = reader.count("--seq", flags.sequence, ir::kSizeLimit - 1);
  request.layers = reader.count("--layers", flags.layers, ir::kMaxLayers);
  request.top = reader.count("--top", flags.top, kMostPlans).value_or(5);
  if (auto gib = reader.number("--memory-gib", flags.memoryGib, kMostGib))
    request.memory = planner::Bytes{*gib * kGib};
  if (flags.precision)
    request.precision =
        reader.oneOf("--precision", "precision", *flags.precision, kPrecisions);
  request.splits = defaultSplits();
  if (flags.splits) {
    // What follows from splits that are malformed would only distract.
    std::size_t before = errors.size();
    std::vector<planner::Split> named =
        reader.someOf("--splits", "split", *flags.splits, kSplits);
    if (errors.size() == before)
      request.splits = std::move(named);
  }
  applySequenceParallel(flags, request, reader);
  request.pins = planner::parsePins(flags.pins, errors);
  readEmit(flags, request, reader);
  request.importFile = flags.importFile.value_or("");
  if (flags.importFile)
    for (auto [flag, given] :
         {std::pair("--tp", flags.tp.has_value()),
          std::pair("--dp", flags.dp.has_value()),
          std::pair("--pp", flags.pp.has_value()),
          std::pair("--cp", flags.cp.has_value()),
          std::pair("--ep", flags.ep.has_value()),
          std::pair("--vp", flags.virtualStages.has_value()),
          std::pair("--zero", flags.zero.has_value()),
          std::pair("--zero-ranks", flags.zeroRanks.has_value()),
          std::pair("--schedule", flags.schedule.has_value()),
          std::pair("--recompute", flags.recompute.has_value()),
          std::pair("--recompute-layers", flags.recomputeLayers.has_value()),
          std::pair("--offload", flags.offload.has_value()),
          std::pair("--tiles", flags.tiles.has_value()),
          std::pair("--stage-layers", flags.stageLayers.has_value()),
          std::pair("--overlap", flags.overlap.has_value())})
      if (given)
        reader.error(flag, "is what --import says: give one of the two");
  readObjective(flags, request, reader);
  if (flags.exportKind)
    request.exportKind =
        reader.oneOf("--export", "notation", *flags.exportKind, kExports);
  if (request.exportKind && (flags.json || request.emit))
    reader.error("--export", "prints a configuration: give it without --json "
                             "and --emit");
  request.software = flags.software.value_or("");
  auto file = [&](const char *flag, const Flags::Text &name) {
    if (name && name->empty())
      reader.error(flag, "names no file");
    return name.value_or("");
  };
  request.report = file("--report", flags.report);
  request.trace = file("--trace", flags.trace);
  request.dot = file("--dot", flags.dot);
  request.save = file("--save", flags.save);
  request.output = file("-o", flags.output);
  request.load = file("--load", flags.load);
  if (flags.load)
    refuseBesideLoad(flags, reader);
  request.json = flags.json;
  request.verify = flags.verify;
  request.explain = flags.explain;
  request.timings = flags.timings;
  return request;
}

} // namespace mtplan::tools

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
constexpr ExportKind kExports[] = {ExportKind::megatron, ExportKind::deepspeed,
                                   ExportKind::torchtitan};
constexpr Stage kStages[] = {Stage::model, Stage::differentiated,
                             Stage::planned, Stage::partitioned};

/// Judges flags one by one; the first fault of each is noted.
class Reader {
public:
  explicit Reader(std::vector<std::string> &findings) : errors(findings) {}

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

  std::vector<Split> splits(const std::string &text) {
    std::vector<Split> named;
    std::size_t start = 0;
    while (start <= text.size()) {
      std::size_t end = std::min(text.find(',', start), text.size());
      std::size_t first = text.find_first_not_of(' ', start);
      std::string word =
          first < end ? text.substr(first, end - first) : std::string();
      word.erase(word.find_last_not_of(' ') + 1);
      start = end + 1;
      std::optional<Split> split = oneOf("--splits", "split", word, kSplits);
      if (!split)
        continue;
      if (std::ranges::find(named, *split) != named.end())
        error("--splits", "names \"" + word + "\" twice");
      else
        named.push_back(*split);
    }
    return named;
  }

  void error(const char *flag, const std::string &what) {
    errors.push_back(std::string(flag) + ": " + what);
  }

private:
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
  if (flags.emit && *flags.emit != "mlir")
    reader.error("--emit", "knows mlir only, but is \"" + *flags.emit + '"');
  if (flags.stage && !flags.emit)
    reader.error("--stage", "needs --emit mlir");
  if (flags.emit && flags.json)
    reader.error("--emit", "prints IR and --json prints JSON: give one");
  if (flags.emit && flags.verify)
    reader.error("--emit", "prints IR and --verify a proof: give one");
  if (flags.emit && flags.dot && flags.stage &&
      (*flags.stage == "model" || *flags.stage == "differentiated"))
    reader.error("--dot",
                 "draws a plan, and there is none at --stage " + *flags.stage);
  if (flags.emit)
    request.emit = flags.stage
                       ? reader.oneOf("--stage", "stage", *flags.stage, kStages)
                       : Stage::planned;
}

// Each fixes one choice; `any` leaves it to the search.
void readParallelism(const Flags &flags, PlanRequest &request, Reader &reader) {
  auto isOpen = [](const Flags::Text &text) { return text && *text == "any"; };
  auto number = [&](const char *flag, const Flags::Text &text,
                    planner::Choices<int> &choices) {
    if (isOpen(text))
      choices.only.clear();
    else if (auto value = reader.count(flag, text, kMostGpus))
      choices.only = {static_cast<int>(*value)};
  };
  number("--pp", flags.pp, request.pp);
  number("--cp", flags.cp, request.cp);
  number("--vp", flags.virtualStages, request.virtualStages);
  auto word = [&](const char *flag, const char *what, const Flags::Text &text,
                  auto &choices, const auto &values, auto meaning) {
    if (isOpen(text))
      choices.only.clear();
    else if (text)
      if (auto value = reader.oneOf(flag, what, *text, values))
        choices.only = {meaning(*value)};
  };
  auto itself = [](auto value) { return value; };
  word("--zero", "stage", flags.zero, request.zeroStage, kZeroStages,
       [](ZeroStage zero) { return zero.stage; });
  word("--schedule", "schedule", flags.schedule, request.schedule, kSchedules,
       itself);
  word("--recompute", "kind", flags.recompute, request.recompute, kRecomputes,
       itself);
  // Chunks are what interleaving is about.
  if (!flags.schedule && flags.virtualStages &&
      request.virtualStages.only != std::vector<int>{1})
    request.schedule.only = {planner::ScheduleKind::interleaved};
  if (request.schedule.allows(planner::ScheduleKind::interleaved) &&
      !flags.virtualStages)
    request.virtualStages.only.clear();
}

} // namespace

const char *nameOf(ExportKind kind) {
  switch (kind) {
  case ExportKind::megatron:
    return "megatron";
  case ExportKind::deepspeed:
    return "deepspeed";
  case ExportKind::torchtitan:
    return "torchtitan";
  }
  return "?";
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
  Reader reader(errors);
  PlanRequest request;
  request.model = flags.model;
  request.hardware = flags.hardware;
  request.gpus = reader.count("--gpus", flags.gpus, kMostGpus);
  request.tp = reader.count("--tp", flags.tp, kMostGpus);
  request.dp = reader.count("--dp", flags.dp, kMostGpus);
  readParallelism(flags, request, reader);
  if (flags.overlap) {
    request.overlap = *flags.overlap != "off";
    if (*flags.overlap != "on" && *flags.overlap != "off")
      reader.error("--overlap",
                   "must be on or off, but is \"" + *flags.overlap + '"');
  }
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
    std::vector<planner::Split> named = reader.splits(*flags.splits);
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
          std::pair("--vp", flags.virtualStages.has_value()),
          std::pair("--zero", flags.zero.has_value()),
          std::pair("--schedule", flags.schedule.has_value()),
          std::pair("--recompute", flags.recompute.has_value()),
          std::pair("--overlap", flags.overlap.has_value())})
      if (given)
        reader.error(flag, "is what --import says: give one of the two");
  if (flags.exportKind)
    request.exportKind =
        reader.oneOf("--export", "notation", *flags.exportKind, kExports);
  if (request.exportKind && (flags.json || flags.emit))
    reader.error("--export", "prints a configuration: give it without --json "
                             "and --emit");
  if (flags.report && flags.report->empty())
    reader.error("--report", "names no file");
  request.report = flags.report.value_or("");
  request.software = flags.software.value_or("");
  if (flags.dot && flags.dot->empty())
    reader.error("--dot", "names no file");
  request.dot = flags.dot.value_or("");
  request.json = flags.json;
  request.verify = flags.verify;
  request.timings = flags.timings;
  return request;
}

} // namespace mtplan::tools

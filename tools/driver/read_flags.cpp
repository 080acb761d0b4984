//===- read_flags.cpp - From typed flags to a request ---------------------===//

#include "tools/driver/read_flags.h"

#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "ir/model/fields.h"
#include "tools/text/pin_text.h"

namespace mtplan::tools {

using planner::Split;

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::size_t first = text.find_first_not_of(' ', start);
    words.push_back(first < end ? text.substr(first, end - first)
                                : std::string());
    words.back().erase(words.back().find_last_not_of(' ') + 1);
    start = end + 1;
  }
  return words;
}

std::optional<std::int64_t> countOf(const std::string &text, std::int64_t most,
                                    Faults &faults) {
  std::int64_t value = 0;
  const char *end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem == std::errc{} && rest == end && value >= 1 && value <= most)
    return value;
  const bool isNumber = rest == end && problem != std::errc::invalid_argument;
  faults.push_back(fmt::format("must be a whole number from 1 to {}, but is {}",
                               most, isNumber ? text : '"' + text + '"'));
  return std::nullopt;
}

std::vector<int> countsOf(const std::string &text, std::int64_t most,
                          Faults &faults) {
  std::vector<int> numbers;
  for (const std::string &word : wordsOf(text))
    if (auto number = countOf(word, most, faults))
      numbers.push_back(static_cast<int>(*number));
  return numbers;
}

std::optional<double> numberOf(const std::string &text, Faults &faults,
                               bool mayBeZero) {
  constexpr double kMost = 1e6;
  double value = 0;
  const char *end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  // The comparisons with 0 also reject NaN.
  if (problem == std::errc{} && rest == end && value <= kMost &&
      (value > 0 || (mayBeZero && value == 0)))
    return value;
  faults.push_back(
      fmt::format("must be a number {}1000000, but is \"{}\"",
                  mayBeZero ? "from 0 to " : "above 0 and at most ", text));
  return std::nullopt;
}

std::optional<std::size_t> positionOf(const std::string &word, const char *what,
                                      const std::vector<std::string> &known,
                                      Faults &faults) {
  const auto found = std::ranges::find(known, word);
  if (found != known.end())
    return static_cast<std::size_t>(found - known.begin());
  faults.push_back(ir::unknownName(what, word, known));
  return std::nullopt;
}

FlagValue anyText(std::string PlanRequest::*member) {
  return {FlagKind::word, [=](const std::string &text, PlanRequest &request,
                              Faults &) { request.*member = text; }};
}

FlagValue fileName(std::string PlanRequest::*member) {
  return {FlagKind::text,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (text.empty())
              faults.emplace_back("names no file");
            request.*member = text;
          }};
}

FlagValue isGiven(bool PlanRequest::*member) {
  return {FlagKind::onOrAbsent, [=](const std::string &, PlanRequest &request,
                                    Faults &) { request.*member = true; }};
}

FlagValue counts(planner::Choices<int> PlanRequest::*member, std::int64_t most,
                 const char *zero) {
  return {FlagKind::counts,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            std::vector<int> &only = (request.*member).only;
            if (text == "any")
              return only.clear();
            if (zero && text == zero)
              only = {0};
            else if (auto chosen = distinct(countsOf(text, most, faults));
                     !chosen.empty())
              only = std::move(chosen);
          }};
}

FlagValue number(double PlanRequest::*member, double unit, bool mayBeZero) {
  return {FlagKind::number,
          [=](const std::string &text, PlanRequest &request, Faults &faults) {
            if (auto value = numberOf(text, faults, mayBeZero))
              request.*member = *value * unit;
          }};
}

namespace {

constexpr Stage kStages[] = {Stage::model, Stage::differentiated,
                             Stage::planned, Stage::partitioned};

void addError(const Flags &flags, const std::string &flag,
              const std::string &fault, std::vector<std::string> &errors) {
  const auto place = flags.locations.find(flag);
  errors.push_back((place == flags.locations.end() ? flag : place->second) +
                   ": " + fault);
}

void readRows(const Flags &flags, PlanRequest &request,
              std::vector<std::string> &errors) {
  for (const FlagRow &row : flagRows()) {
    const std::string flag = row.shortName();
    const std::string *text = flags.find(flag);
    if (!row.value.read || (!text && !flags.isOn(flag)))
      continue;
    Faults faults;
    row.value.read(text ? *text : "", request, faults);
    for (const std::string &fault : faults)
      addError(flags, flag, fault, errors);
  }
}

void applySequenceParallel(const Flags &flags, PlanRequest &request,
                           std::vector<std::string> &errors) {
  const std::string flag = "--sequence-parallel";
  const std::string *word = flags.find(flag);
  if (!word)
    return;
  if (*word != "on" && *word != "off")
    return addError(flags, flag, "must be on or off, but is \"" + *word + '"',
                    errors);
  if (*word == "off" && flags.find("--splits") &&
      request.splits == std::vector{Split::sequence})
    return addError(flags, flag,
                    "is off, but --splits names sequence only: nothing is left",
                    errors);
  std::erase(request.splits, Split::sequence);
  request.sequenceParallel = *word == "on";
  if (request.sequenceParallel)
    request.splits.push_back(Split::sequence);
}

// Without --recompute, --recompute-layers N implies full recomputation, and
// --recompute-layers any also allows no recomputation. If --recompute is given,
// its values must include "full".
void applyRecomputeLayers(const Flags &flags, PlanRequest &request,
                          std::vector<std::string> &errors) {
  using planner::Recompute;
  const std::string *layers = flags.find("--recompute-layers");
  if (!layers)
    return;
  const std::string *recompute = flags.find("--recompute");
  if (!recompute && *layers == "any")
    request.recompute.only = {Recompute::none, Recompute::full};
  else if (!recompute)
    request.recompute.only = {Recompute::full};
  if (!request.recompute.allows(Recompute::full))
    addError(flags, "--recompute-layers",
             "counts layers that recompute in full, but --recompute is " +
                 *recompute + ": give it full, or leave it out",
             errors);
}

// Virtual stages imply the interleaved schedule, and the interleaved schedule
// implies virtual stages.
void applyVirtualStages(const Flags &flags, PlanRequest &request) {
  using planner::ScheduleKind;
  const bool given = flags.find("--vp") != nullptr;
  if (!flags.find("--schedule") && given &&
      request.virtualStages.only != std::vector<int>{1})
    request.schedule.only = {ScheduleKind::interleaved};
  if (request.schedule.allows(ScheduleKind::interleaved) && !given)
    request.virtualStages.only.clear();
}

void applyEmit(const Flags &flags, PlanRequest &request,
               std::vector<std::string> &errors) {
  const bool emits = flags.find("--emit") != nullptr;
  if (request.emitsCuda && !flags.find("-o"))
    addError(flags, "--emit", "cuda writes train.cu: needs -o FOLDER", errors);
  if (flags.find("--stage") && (!emits || request.emitsCuda))
    addError(flags, "--stage", "needs --emit mlir", errors);
  if (!emits || request.emitsCuda)
    return;
  if (request.json)
    addError(flags, "--emit", "prints IR and --json prints JSON: give one",
             errors);
  if (request.verify)
    addError(flags, "--emit", "prints IR and --verify a proof: give one",
             errors);
  const std::string *given = flags.find("--stage");
  const std::string stage = given ? *given : "planned";
  if (flags.find("--dot") && (stage == "model" || stage == "differentiated"))
    addError(flags, "--dot",
             "draws a plan, and there is none at --stage " + stage, errors);
  Faults faults;
  request.emit = namedBy(stage, "stage", kStages, faults);
  for (const std::string &fault : faults)
    addError(flags, "--stage", fault, errors);
}

/// Holds a word of --open, and the function that leaves this choice to the
/// search.
struct Openable {
  const char *name;
  void (*open)(PlanRequest &);
};
constexpr Openable kOpenable[] = {
    {"pp", [](PlanRequest &request) { request.pp.only.clear(); }},
    {"cp", [](PlanRequest &request) { request.cp.only.clear(); }},
    {"ep", [](PlanRequest &request) { request.ep.only.clear(); }},
    {"schedule",
     [](PlanRequest &request) {
       request.schedule.only.clear();
       request.virtualStages.only.clear();
     }},
    {"stages", [](PlanRequest &request) { request.unevenCuts = true; }},
    {"zero",
     [](PlanRequest &request) {
       request.zeroStage.only.clear();
       request.zeroRanks.only.clear();
     }},
    {"recompute",
     [](PlanRequest &request) {
       request.recompute.only.clear();
       request.opensCounts = true;
     }},
    {"offload", [](PlanRequest &request) { request.offloadsIfNeeded = true; }}};
const char *nameOf(const Openable &choice) { return choice.name; }

// Without --open, the search makes all choices.
void applyOpen(const Flags &flags, PlanRequest &request,
               std::vector<std::string> &errors) {
  const std::string *words = flags.find("--open");
  std::vector<Openable> choices(std::begin(kOpenable), std::end(kOpenable));
  if (words && *words != "all") {
    choices.clear();
    Faults faults;
    for (const std::string &word : distinct(wordsOf(*words)))
      if (word != "none")
        if (auto choice =
                namedBy(word, "choice (or all, none)", kOpenable, faults))
          choices.push_back(*choice);
    for (const std::string &fault : faults)
      addError(flags, "--open", fault, errors);
  }
  for (const Openable &choice : choices)
    choice.open(request);
  request.cpNeedsDenseModel =
      !flags.find("--cp") && (!words || *words == "all");
}

// With -o, zero-bubble is tried only on request, because compiled plans do not
// postpone the gradients of weights.
void leaveOutUncompiled(const Flags &flags, PlanRequest &request) {
  using planner::ScheduleKind;
  if (flags.find("-o") && request.schedule.only.empty() &&
      !flags.find("--schedule"))
    request.schedule.only = {ScheduleKind::oneForwardOneBackward,
                             ScheduleKind::interleaved, ScheduleKind::gpipe};
}

void rejectDecided(const Flags &flags, std::vector<std::string> &errors) {
  for (const FlagRow &row : flagRows()) {
    const std::string flag = row.shortName();
    if (!flags.find(flag) && flags.list(flag).empty())
      continue;
    if (flags.find("--import") && (row.scope & kImported))
      addError(flags, flag, "is what --import says: give one of the two",
               errors);
    const bool isSaved =
        ((row.scope & kConstraint) && !(row.scope & kReplaceable)) ||
        flag == "--pin" || flag == "--constraints" || flag == "--import";
    if (flags.find("--load") && isSaved)
      addError(flags, flag, "is what --load says: give one of the two", errors);
  }
}

} // namespace

Flags withWords(Flags flags, const std::string &words, const std::string &by,
                std::vector<std::string> &errors) {
  std::vector<std::string> known;
  for (const FlagRow &row : flagRows())
    if (std::string_view(row.group) == kParallelism ||
        std::string_view(row.group) == kMemory)
      known.push_back(row.shortName().substr(2));
  std::istringstream stream(words);
  bool any = false;
  for (std::string word; stream >> word; any = true) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    Faults faults;
    if (equals == word.npos || equals + 1 == word.size())
      faults.push_back("needs NAME=VALUE, such as tp=8, but has \"" + word +
                       '"');
    else
      positionOf(name, "choice", known, faults);
    for (const std::string &fault : faults)
      errors.push_back(fmt::format("{}: {}", by, fault));
    const std::string flag = fmt::format("--{}", name);
    flags.texts[flag] = word.substr(std::min(equals + 1, word.size()));
    flags.locations[flag] = fmt::format("{}: {}", by, name);
  }
  if (!any)
    errors.push_back(by + ": needs NAME=VALUE, such as tp=8, but is empty");
  return flags;
}

PlanRequest readFlags(const Flags &flags, std::vector<std::string> &errors) {
  PlanRequest request;
  request.tolerance = 0.01;
  request.keptFree = 0.04;
  request.splits = defaultSplits();
  request.asksForSplits =
      flags.find("--splits") || flags.text("--sequence-parallel") == "on";
  applyOpen(flags, request, errors);
  readRows(flags, request, errors);
  request.offloadsIfNeeded &= !flags.find("--offload");
  request.opensCounts &=
      !flags.find("--recompute") && !flags.find("--recompute-layers");
  applyRecomputeLayers(flags, request, errors);
  applyVirtualStages(flags, request);
  applySequenceParallel(flags, request, errors);
  request.pins = parsePins(flags.list("--pin"), errors);
  if (!flags.find("--splits") &&
      std::ranges::any_of(request.pins, [](const planner::PinText &pin) {
        return planner::contains(planner::partsOfValue(pin.word),
                                 std::string(nameOf(Split::batch)));
      }))
    request.splits.push_back(Split::batch);
  applyEmit(flags, request, errors);
  leaveOutUncompiled(flags, request);
  if (request.exportKind && (request.json || request.emit))
    addError(flags, "--export",
             "prints a configuration: give it without --json and --emit",
             errors);
  rejectDecided(flags, errors);
  return request;
}

} // namespace mtplan::tools

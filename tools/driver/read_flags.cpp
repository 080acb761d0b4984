//===- read_flags.cpp - From typed flags to a request ---------------------===//

#include "tools/driver/read_flags.h"

#include <algorithm>

#include "tools/driver/flag_value.h"
#include "tools/text/pin_text.h"

namespace mtplan::tools {

using planner::Split;

namespace {

constexpr Stage kStages[] = {Stage::model, Stage::differentiated,
                             Stage::planned, Stage::partitioned};

void addError(const Flags &flags, const std::string &flag,
              const std::string &fault, std::vector<std::string> &errors) {
  const auto place = flags.places.find(flag);
  errors.push_back((place == flags.places.end() ? flag : place->second) + ": " +
                   fault);
}

// Reads each flag by its own row.
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

// A number of recomputed layers implies full recomputation.
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

// Virtual stages and the interleaved schedule imply each other.
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

// A flag that --load or --import decides must not be given beside it.
void rejectDecided(const Flags &flags, std::vector<std::string> &errors) {
  const auto isGiven = [&](const std::string &flag) {
    return flags.find(flag) || !flags.list(flag).empty();
  };
  for (const FlagRow &row : flagRows()) {
    const std::string flag = row.shortName();
    if (!isGiven(flag))
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

PlanRequest readFlags(const Flags &flags, std::vector<std::string> &errors) {
  PlanRequest request;
  readRows(flags, request, errors);
  applyRecomputeLayers(flags, request, errors);
  applyVirtualStages(flags, request);
  applySequenceParallel(flags, request, errors);
  request.pins = parsePins(flags.list("--pin"), errors);
  applyEmit(flags, request, errors);
  if (request.exportKind && (request.json || request.emit))
    addError(flags, "--export",
             "prints a configuration: give it without --json and --emit",
             errors);
  rejectDecided(flags, errors);
  return request;
}

} // namespace mtplan::tools

//===- constraints.cpp - Flags as a file ----------------------------------===//

#include "tools/driver/constraints.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

using json = base::Json;
using Kind = FlagKind;

namespace {

constexpr std::int64_t kConstraintsVersion = 1;

/// Returns a JSON value in the form it has on the command line; nothing if no
/// flag of that kind has such a value.
std::optional<std::string> typed(const json &value, Kind kind) {
  bool counts = kind == Kind::count || kind == Kind::counts;
  if (counts && value.is_number_integer())
    return value.dump();
  if (kind == Kind::number && value.is_number())
    return value.dump();
  if (kind == Kind::counts && value == "any")
    return "any";
  if ((kind == Kind::word || kind == Kind::words) && value.is_string())
    return value.get<std::string>();
  if (kind == Kind::word && value.is_boolean())
    return value.get<bool>() ? "on" : "off";
  if ((kind != Kind::counts && kind != Kind::words) || !value.is_array() ||
      value.empty())
    return std::nullopt;
  std::string list;
  for (const json &one : value) {
    std::optional<std::string> text =
        one.is_array() || one == "any" ? std::nullopt : typed(one, kind);
    if (!text)
      return std::nullopt;
    list += (list.empty() ? "" : ",") + *text;
  }
  return list;
}

const char *wantedBy(Kind kind) {
  switch (kind) {
  case Kind::count:
    return "must be a whole number";
  case Kind::counts:
    return "must be a whole number, an array of them, or \"any\"";
  case Kind::number:
    return "must be a number";
  case Kind::word:
    return "must be a text";
  case Kind::words:
    return "must be a text or an array of texts";
  case Kind::text:
  case Kind::list:
  case Kind::pair:
  case Kind::onOrAbsent:
    break;
  }
  return "?";
}

class Adding {
public:
  Adding(const std::string &pointer, const std::string &theFile,
         Flags &theFlags)
      : where(pointer), file(theFile), flags(theFlags) {}

  void run(const json &object, bool isFile, std::vector<std::string> &errors) {
    base::JsonErrors notes;
    base::JsonFields fields(object, where, notes);
    if (isFile)
      fields.integer("mtplan_constraints", kConstraintsVersion,
                     kConstraintsVersion);
    for (const FlagRow &row : flagRows())
      if (row.scope & kConstraint)
        if (const json *value = fields.find(row.key().c_str()))
          add(row, *value, fields, errors);
    if (fields.find("pins"))
      addPins(fields, notes);
    fields.rejectOthers();
    for (const std::string &note : notes)
      addLines(note, file, errors);
  }

private:
  void add(const FlagRow &row, const json &value, base::JsonFields &fields,
           std::vector<std::string> &errors) {
    const std::string key = row.key(), flag = row.shortName();
    std::optional<std::string> text = typed(value, row.value.kind);
    if (!text) {
      fields.fail(key.c_str(), wantedBy(row.value.kind));
      return;
    }
    const std::string place = file + ": " + fields.pointerTo(key.c_str());
    const std::string *given = flags.find(flag);
    if (!given) {
      flags.texts[flag] = *text;
      flags.places[flag] = place;
    } else if (*given != *text) {
      errors.push_back(fmt::format("{}: is {} here, but {} says {}: give one "
                                   "of the two",
                                   flag, *given, place, *text));
    }
  }

  void addPins(base::JsonFields &fields, base::JsonErrors &notes) {
    for (const auto &[pin, pointer] : fields.elements("pins", false)) {
      if (pin->is_string())
        flags.lists["--pin"].push_back(pin->get<std::string>());
      else
        notes.push_back(pointer + ": must be a text such as "
                                  "\"h.*.mlp.fc1=column\"");
    }
  }

  const std::string &where, &file;
  Flags &flags;
};

} // namespace

void addConstraints(const json &object, const std::string &pointer,
                    const std::string &file, Flags &flags,
                    std::vector<std::string> &errors) {
  Adding(pointer, file, flags).run(object, false, errors);
}

void addConstraints(const std::string &file, Flags &flags,
                    std::vector<std::string> &errors) {
  std::optional<std::string> text = readTextFile(file, errors);
  if (!text)
    return;
  try {
    Adding("", file, flags).run(base::parseJson(*text), true, errors);
  } catch (const base::JsonError &error) {
    addLines(error.what(), file, errors);
  }
}

nlohmann::ordered_json constraintsOf(const PlanRequest &request,
                                     const Problem &problem) {
  nlohmann::ordered_json constraints;
  for (const FlagRow &row : flagRows())
    if (row.write)
      if (nlohmann::ordered_json value = row.write(request, problem.options);
          !value.is_null())
        constraints[row.key()] = std::move(value);
  if (!request.pins.empty()) {
    constraints["pins"] = nlohmann::ordered_json::array();
    for (const planner::PinText &pin : request.pins)
      constraints["pins"].push_back(pin.text);
  }
  return constraints;
}

} // namespace mtplan::tools

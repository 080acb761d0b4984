//===- json_sourced.h - Values that say where they are from -----*- C++ -*-===//
//
// Machine and software files hold no bare values: each is an object {"value":
// ..., "source": "..."}, so that none can be there without saying where it came
// from. The methods of base::JsonFields, for such members.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_JSON_SOURCED_H
#define MTPLAN_PLANNER_JSON_SOURCED_H

#include "base/json_fields.h"

namespace mtplan::planner {

class SourcedFields {
public:
  SourcedFields(const base::Json &value, const std::string &pointer,
                base::JsonErrors &notes)
      : plain(value, pointer, notes), errors(notes) {}

  /// Members that are what they say: names, objects of such members.
  base::JsonFields plain;

  /// Null and no note if the member is missing.
  const base::Json *value(const std::string &key);
  std::optional<double> optional(const std::string &key,
                                 const base::NumberRange &range);
  double number(const std::string &key, const base::NumberRange &range);
  double number(const std::string &key, const base::NumberRange &range,
                double fallback);
  std::int64_t count(const std::string &key, std::int64_t most);
  bool flag(const std::string &key);
  /// Rows of `width` numbers, at least one; empty if the member is missing.
  /// \param ranges  by column
  std::vector<std::vector<double>>
  rows(const std::string &key, const std::vector<base::NumberRange> &ranges);
  /// Strings, at least one; empty, and a note, if the member is missing.
  std::vector<std::string> texts(const std::string &key);
  /// Numbers, at least one; empty if the member is missing.
  std::vector<double> numbers(const std::string &key,
                              const base::NumberRange &range);

private:
  std::string pointerTo(const std::string &key) const {
    return plain.pointerTo(key) + "/value";
  }
  base::JsonErrors &errors;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_JSON_SOURCED_H

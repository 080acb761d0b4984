//===- pins.h - Strategies that the user fixes ------------------*- C++ -*-===//
//
// A pin fixes the strategy of an operator or the layout of a parameter, as text
// PATTERN=VALUE. The pattern is matched against the name of every repeat of
// every operator ("h.3.mlp.fc1") or parameter; `*` matches any run of
// characters, so "h.*.mlp.fc1" matches all repeats, and "h.4..7.mlp.fc1"
// matches repeats 4 to 7. The value says how the tensor axes are used:
//
//   h.*.mlp.fc1=column    an operator: a nameOf(Split), replicated or partial
//   h.*.mlp.fc1=column+row  with two tensor axes: column over tp, row over tp2
//   wte.weight=[tp,-]     a parameter: the axes over which its dimensions are
//                         stored split: tp, tp2 or tp+tp2
//
// A pin on an operator also applies to the operators of its gradient
// ("h.*.mlp.fc1.dx"), unless they have their own pin. Every plan honours all
// pins; a pin that cannot be honoured is an error.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_PINS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_PINS_H

#include <optional>
#include <string>
#include <vector>

#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Holds a parsed pin whose names are not resolved yet.
struct PinText {
  std::string text; ///< as written, for messages
  std::string pattern;
  std::string word; ///< the value for an operator; empty for a parameter
  /// Holds, per dimension, the value for a parameter, as in Pins::parameters.
  std::vector<std::string> entries;
};

struct PinSpace {
  std::vector<Split> splits; ///< the splits that the tensor axes may use
  std::optional<int> tp;     ///< if set, must divide the split sizes
  bool hasTwoAxes = false;   ///< whether there may be two tensor axes
};

/// Returns the parts of a pin's value, which are splits or names of axes:
/// "column" and "row" for "column+row".
std::vector<std::string> partsOfValue(const std::string &value);

/// Returns whether `pattern` matches all of `name`, in O(|pattern| |name|).
bool matchesPattern(const std::string &pattern, const std::string &name);

/// Returns, per segment, the ascending repeats before which the segment must be
/// cut, so that all repeats between two cuts have equal pins.
std::vector<std::vector<int>> pinCuts(const ModelGraph &graph,
                                      const std::vector<PinText> &pins);

/// Returns the pin of each operator and parameter of `graph`, whose segments
/// must be cut at pinCuts. Every pin that cannot be honoured is added to
/// `errors`.
Pins resolvePins(const ModelGraph &graph, const std::vector<PinText> &pins,
                 const PinSpace &space, std::vector<std::string> &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PINS_H

//===- pins.h - The choices that a person has made --------------*- C++ -*-===//
//
// A pin is text, PATTERN=VALUE. The pattern is matched against the name of
// every repeat of every operator ("h.3.mlp.fc1") or parameter; `*` stands for
// any run of characters, so the label "h.*.mlp.fc1" names all repeats, and
// "h.4..7.mlp.fc1" names repeats 4 to 7. The value says what the tensor axis
// does there:
//
//   h.*.mlp.fc1=column    an operator, in the words of nameOf(Split), or
//                         replicated, or partial
//   wte.weight=[tp,-]     a parameter: the axes over which its dimensions are
//                         stored split
//
// A pin on an operator holds for the operators of its gradient too
// ("h.*.mlp.fc1.dx"), unless they are pinned themselves. A pin is honoured by
// every plan or refused here: none is ignored.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_PINS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_PINS_H

#include <optional>
#include <string>
#include <vector>

#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// One pin, whose form is checked and whose names are not.
struct PinText {
  std::string text; ///< as written, for messages
  std::string pattern;
  std::string word; ///< of an operator; empty for a parameter
  std::vector<std::string>
      entries; ///< of a parameter: "tp" or "" per dimension
};

/// The space that pins must leave possible.
struct PinSpace {
  std::vector<Split> splits; ///< what the tensor axis may be used for
  std::optional<int> tp;     ///< if it is fixed: sizes must divide by it
};

/// Returns whether `pattern`, where `*` is any run of characters, is all of
/// `name`. O(|pattern| |name|), whatever the number of stars.
bool matchesPattern(const std::string &pattern, const std::string &name);

/// Returns per segment the repeats, ascending, before which it must be cut so
/// that all repeats of a part are pinned alike.
std::vector<std::vector<int>> pinCuts(const ModelGraph &graph,
                                      const std::vector<PinText> &pins);

/// Returns the pins by index of `graph`, which has been cut where pinCuts says.
/// Every pin that cannot be honoured becomes an error.
Pins resolvePins(const ModelGraph &graph, const std::vector<PinText> &pins,
                 const PinSpace &space, std::vector<std::string> &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PINS_H

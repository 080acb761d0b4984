//===- pins.h - What a person has decided already ---------------*- C++ -*-===//
//
// A pin is text, PATTERN=VALUE. The pattern is matched against the name of
// every copy of every operator ("h.3.mlp.fc1") or parameter; `*` stands for any
// run of characters, so the label "h.*.mlp.fc1" names all copies. The value is
// what the tensor axis does there:
//
// "h.4..7.mlp.fc1" names copies 4 to 7.
//
//   h.*.mlp.fc1=column    an operator, in the words of nameOf(Split), or
//                         replicated, or partial
//   wte.weight=[tp,-]     a parameter: what its dimensions are stored split
//   over
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

#include "planner/graph/op_graph.h"
#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// One pin, its form checked, its names not yet.
struct PinText {
  std::string text; ///< as written, for messages
  std::string pattern;
  std::string word; ///< of an operator; empty for a parameter
  std::vector<std::string>
      entries; ///< of a parameter: "tp" or "" per dimension
};

/// What pins are held against.
struct PinSpace {
  std::vector<Split> splits; ///< what the tensor axis may be used for
  std::optional<int> tp;     ///< if it is fixed: sizes must divide by it
};

/// True if `pattern`, where `*` is any run of characters, is all of `name`.
/// O(|pattern| |name|), whatever the number of stars.
bool matchesPattern(const std::string &pattern, const std::string &name);

/// Per segment the copies, ascending, before which it must be cut so that all
/// copies of a part are pinned alike.
std::vector<std::vector<int>> pinCuts(const ModelGraph &graph,
                                      const std::vector<PinText> &pins);

/// The pins by index of `graph`, which has been cut where pinCuts says. Every
/// pin that cannot be honoured becomes an error.
Pins resolvePins(const ModelGraph &graph, const std::vector<PinText> &pins,
                 const PinSpace &space, std::vector<std::string> &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PINS_H

//===- same_start.h - Whether all ranks start alike -------------*- C++ -*-===//
//
// Processes read files and options each for itself, maybe on hosts of their
// own. Ranks with different plans would come to nothing or, worse, to
// something.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUN_SAME_START_H
#define MTPLAN_TOOLS_RUN_SAME_START_H

#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace mtplan::tools {

/// One thing that is to be the same on all ranks.
struct StartPart {
  std::string what;    ///< "plan", "options", "data"
  std::string content; ///< what is compared
};

/// Ranks by what they have of a part.
struct Sides {
  std::vector<int> most;   ///< who have what most have; the lowest's of two
  std::vector<int> others; ///< in order
};

/// Every rank calls it. The same on all.
Sides sidesOf(runtime::World &world, const StartPart &part);

/// Every rank calls it with the same parts.
/// \throws CommunicationError, on all ranks with the same words, that names
///         the ranks which differ from most
void agreeOnStart(runtime::World &world, const std::vector<StartPart> &parts);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_SAME_START_H

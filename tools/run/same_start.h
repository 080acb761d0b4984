//===- same_start.h - Agreement of all ranks on plan, data and flags -*- C++
//-*-===//
//
// Each process reads files and flags itself, possibly on different hosts. Ranks
// with different inputs would hang or, worse, train something else.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUN_SAME_START_H
#define MTPLAN_TOOLS_RUN_SAME_START_H

#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace mtplan::tools {

/// An input that must be equal on all ranks.
struct StartPart {
  std::string what;    ///< "plan", "options", "data"
  std::string content; ///< compared
  /// Describes the content in the message for ranks that differ; may be empty.
  std::string shown;
};

/// The ranks, grouped by agreement on a part.
struct Sides {
  std::vector<int>
      most; ///< ranks with the most common text; ties go to the lowest rank's
  std::vector<int> others; ///< ascending
};

/// Compares a part over all ranks. Every rank calls it and gets the same
/// result.
Sides sidesOf(runtime::World &world, const StartPart &part);

/// Compares all parts. Every rank calls it with the same parts.
/// \throws CommunicationError on all ranks, naming the ranks that differ from
///   the majority
void agreeOnStart(runtime::World &world, const std::vector<StartPart> &parts);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_SAME_START_H

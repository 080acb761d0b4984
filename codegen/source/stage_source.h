//===- stage_source.h - A pipeline stage as functions -----------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STAGE_SOURCE_H
#define MTPLAN_CODEGEN_SOURCE_STAGE_SOURCE_H

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// What all stages agree on.
struct SharedWords {
  std::vector<std::string> groups, streams; ///< constants of the program
  std::map<std::pair<int, int>, int> lines; ///< by stages, from and to
  std::vector<std::string> reports;         ///< labels
};

/// Writes what ranks of a stage have and do, in a namespace of its own.
/// \param needed  to which the files of the runtime are added that it calls
/// \throws SourceError
void writeStage(const runtime::Plan &plan, std::size_t stage,
                const SharedWords &shared, Text &text,
                std::set<std::string> &needed);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STAGE_SOURCE_H

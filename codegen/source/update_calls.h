//===- update_calls.h - Calls of reductions and updates ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_UPDATE_CALLS_H
#define MTPLAN_CODEGEN_SOURCE_UPDATE_CALLS_H

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/source/shared_functions.h"
#include "codegen/source/stage_names.h"
#include "codegen/source/table_loops.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Describes calls of a function that reduces gradients or updates parameters.
struct UpdateCall {
  std::size_t function; ///< index into the functions of programs
  runtime::ScheduleEntry entry;
  /// If the function reads rows, the name of their table, and the expression
  /// for a row's layers.
  std::string table = {}, layers = {};
};

/// Describes functions that are called in turn, `times` times.
struct UpdateCalls {
  std::vector<UpdateCall> functions;
  int times = 1; ///< if larger, each time has a row of each function's table
};

/// Returns the calls of the functions of Stage::reduce or Stage::apply.
/// Functions that repeat, and differ only in tensors and sizes, become
/// functions that read a row of a table; in the others, such calls become
/// loops. Linear in the entries. \param functions  the functions of the stage's
/// programs
std::vector<UpdateCalls>
updateCalls(const std::vector<runtime::ScheduleEntry> &entries,
            const StageNames &names, TableLoops &loops,
            std::vector<StageFunction> &functions);

/// Writes the calls.
/// \param callees  what calls each function
void writeUpdateCalls(const StageNames &names, const UpdateCalls &calls,
                      const std::vector<std::string> &callees, Text &to);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_UPDATE_CALLS_H

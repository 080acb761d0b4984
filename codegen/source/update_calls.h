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

struct UpdateCall {
  std::size_t function; ///< index into the functions of programs
  runtime::ScheduleEntry entry;
  /// If the function reads rows of a table, `table` is the name of the table,
  /// and `layers` is the expression for a row's number of layers.
  std::string table = {}, layers = {};
};

/// Describes functions that run one after another. The whole sequence runs
/// `times` times.
struct UpdateCalls {
  std::vector<UpdateCall> functions;
  int times = 1; ///< if > 1, each function's table has `times` rows
};

/// Returns the calls of the functions of Stage::reduce or Stage::apply.
/// Functions that repeat, and differ only in tensors and sizes, become one
/// function that reads a row of a table. Repeated calls within any other
/// function become loops. The time is linear in the entries.
std::vector<UpdateCalls>
updateCalls(const std::vector<runtime::ScheduleEntry> &entries,
            const StageNames &names, TableLoops &loops,
            std::vector<StageFunction> &functions);

/// \param callees  the expression that calls each function
void writeUpdateCalls(const StageNames &names, const UpdateCalls &calls,
                      const std::vector<std::string> &callees, Text &to);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_UPDATE_CALLS_H

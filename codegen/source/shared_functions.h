//===- shared_functions.h - Functions that stages share ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SHARED_FUNCTIONS_H
#define MTPLAN_CODEGEN_SOURCE_SHARED_FUNCTIONS_H

#include <string>
#include <vector>

#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Describes a function of a stage, which runs one program.
struct StageFunction {
  std::string name;          ///< "h_forward"
  std::string call;          ///< how the schedule calls it: "h_forward<buf>"
  Text comment;              ///< what the function does
  Text text;                 ///< the function
  bool isOfSchedule = false; ///< forward or backward of a micro-batch
  bool isTemplate = false;   ///< the function is a template over the buffers
  /// If set, the function is another stage's template, which is called with
  /// these buffers.
  bool isShared = false;
  Text buffers; ///< a struct with the template's names, or nothing
};

/// Finds functions of the schedule that are equal except for their buffers. The
/// first of them becomes a template, and the others become calls of it.
/// \param stages  the functions of each stage; sets `call` and the last three
///                members of each function
void shareFunctions(std::vector<std::vector<StageFunction>> &stages);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SHARED_FUNCTIONS_H

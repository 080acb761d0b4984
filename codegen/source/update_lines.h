//===- update_lines.h - Updates of one launch, as lines ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// The multi-tensor updates of a stage. Each has a function that lists the
/// parameters of a layer, and its launch is in the place of its first update.
class UpdateLines {
public:
  /// \param functions  of the stage's programs
  UpdateLines(const runtime::Plan &thePlan, const runtime::Stage &theStage,
              const StageNames &theNames,
              const std::vector<std::string> &functions,
              std::set<std::string> &taken);

  /// Returns Stage::apply, in which all layers that are updated by one launch
  /// are one call.
  std::vector<runtime::ScheduleEntry> schedule() const;
  /// Writes the functions that list the parameters of a program's launches.
  void writeLists(int program, Text &text) const;
  /// Returns one past the instructions that the launch of instruction i does.
  std::size_t endOfLaunch(int program, std::size_t i) const;
  /// Writes the launch that begins with instruction i.
  void writeLaunch(int program, std::size_t i, Text &text,
                   std::set<std::string> &needed) const;

private:
  struct Launch {
    std::size_t entry = 0;          ///< of Stage::apply
    std::size_t first = 0, end = 0; ///< instructions of its program
    bool ofAllCopies = false;
    std::string list; ///< its function
    bool isDouble = false;
  };

  /// Returns the launch that begins with an instruction, or null.
  const Launch *launchAt(int program, std::size_t i) const;

  const runtime::Plan &plan;
  const runtime::Stage &stage;
  const StageNames &names;
  std::vector<Launch> launches;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

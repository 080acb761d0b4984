//===- update_lines.h - Updates of one launch, as lines ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/joint_updates.h"

namespace mtplan::codegen {

/// Those that mtrun joins too. Each has a function that lists the parameters of
/// a layer, and its launch is where its first one was.
class UpdateLines {
public:
  /// \param functions  of the stage's programs
  UpdateLines(const runtime::Plan &thePlan, const runtime::Stage &theStage,
              const StageNames &theNames,
              const std::vector<std::string> &functions,
              std::set<std::string> &taken);

  /// In which all layers that are updated by one launch are one call.
  std::vector<runtime::ScheduleEntry> schedule() const;
  /// Writes the functions that list the parameters of a program's launches.
  void writeLists(int program, Text &text) const;
  /// The instruction after what the launch of instruction i does.
  std::size_t endOfLaunch(int program, std::size_t i) const;
  /// Writes the launch that begins with instruction i.
  void writeLaunch(int program, std::size_t i, Text &text,
                   std::set<std::string> &needed) const;

private:
  struct Joint : runtime::JointUpdates {
    std::string list; ///< its function
    bool isDouble = false;
  };

  /// Null: none begins there.
  const Joint *jointAt(int program, std::size_t i) const;

  const runtime::Plan &plan;
  const runtime::Stage &stage;
  const StageNames &names;
  std::vector<Joint> joints;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

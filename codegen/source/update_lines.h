//===- update_lines.h - Updates of one launch, as lines ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

#include <functional>
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
  UpdateLines(const runtime::Stage &theStage, const StageNames &theNames,
              const std::vector<std::string> &functions,
              std::set<std::string> &taken);

  /// In which all layers that are updated by one launch are one call.
  std::vector<runtime::ScheduleEntry> schedule() const;
  /// Before the function of a program.
  /// \param titleOf  of an instruction, for people
  void writeLists(int program, Text &text,
                  const std::function<std::string(const runtime::Instruction &)>
                      &titleOf) const;
  /// The instruction after what the launch of instruction i does.
  std::size_t endOfLaunch(int program, std::size_t i) const;
  /// Of those that begin with instruction i.
  void writeLaunch(int program, std::size_t i, Text &text,
                   std::set<std::string> &needed) const;

private:
  struct Joint : runtime::JointUpdates {
    std::string list; ///< its function
    bool isDouble = false;
  };

  /// Null: none begins there.
  const Joint *jointAt(int program, std::size_t i) const;

  const runtime::Stage &stage;
  const StageNames &names;
  std::vector<Joint> joints;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

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

/// Writes the multi-tensor updates of a stage. For each launch, a table lists
/// the parameters of one layer. The launch replaces the calls of the
/// single instructions.
class UpdateLines {
public:
  /// \param functions  names of the functions of the stage's programs
  /// \param taken      names of members of `buf`; receives those of the tables
  UpdateLines(const runtime::Stage &theStage, const StageNames &theNames,
              const std::vector<std::string> &functions,
              std::set<std::string> &taken);

  /// Returns Stage::apply with a single call for all layers that one launch
  /// updates.
  std::vector<runtime::ScheduleEntry> schedule() const;
  /// Writes the tables of the parameters that launches update.
  void writeTables(Text &text) const;
  /// Returns one past the last instruction of the launch that begins with
  /// instruction i, or i + 1 if no launch begins there.
  std::size_t endOfLaunch(int program, std::size_t i) const;
  /// Writes the launch that begins with instruction i.
  void writeLaunch(int program, std::size_t i, Text &text,
                   std::set<std::string> &needed) const;

private:
  struct Launch {
    std::size_t entry = 0;          ///< index in Stage::apply
    std::size_t first = 0, end = 0; ///< its instructions
    bool ofAllCopies = false;
    std::string table; ///< name of the table that lists parameters
    bool isDouble = false;
  };

  /// Returns the launch that begins with instruction i, or null.
  const Launch *launchAt(int program, std::size_t i) const;

  const runtime::Stage &stage;
  const StageNames &names;
  std::vector<Launch> launches;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

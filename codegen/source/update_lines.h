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

/// Writes the multi-tensor updates of a stage. Each launch replaces the calls
/// of several instructions. A table lists the parameters of the launch or, if
/// the launch updates all layers, the parameters of one layer.
class UpdateLines {
public:
  /// \param taken  names of members of `buf`; receives the tables' names
  UpdateLines(const runtime::Stage &theStage, const StageNames &theNames,
              const std::vector<std::string> &functions,
              std::set<std::string> &taken);

  /// Returns Stage::apply, but with count 1 in each entry whose layers are all
  /// updated by one launch.
  std::vector<runtime::ScheduleEntry> schedule() const;
  void writeTables(Text &text) const;
  /// Returns one past the last instruction of the launch that begins with
  /// instruction i, or i + 1 if no launch begins there.
  std::size_t endOfLaunch(int program, std::size_t i) const;
  void writeLaunch(int program, std::size_t i, Text &text,
                   std::set<std::string> &needed) const;

private:
  struct Launch {
    std::size_t entry = 0;          ///< index in Stage::apply
    std::size_t first = 0, end = 0; ///< range [first, end) of instructions
    bool ofAllCopies = false;
    std::string table;
    bool isDouble = false;
  };

  const Launch *launchAt(int program, std::size_t i) const;

  const runtime::Stage &stage;
  const StageNames &names;
  std::vector<Launch> launches;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_UPDATE_LINES_H

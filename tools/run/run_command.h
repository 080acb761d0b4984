//===- run_command.h - The command `mtrun` ----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_COMMAND_H
#define MTPLAN_TOOLS_RUN_RUN_COMMAND_H

#include <iosfwd>
#include <string>
#include <vector>

namespace mtplan::tools {

/// Returns the exit status: 0 on success, 1 if the run failed, 2 on bad input.
int runTraining(const std::vector<std::string> &arguments, std::ostream &out,
                std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_COMMAND_H

//===- validate_command.h - The command `mtplan-validate` -------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_VALIDATE_COMMAND_H
#define MTPLAN_TOOLS_VALIDATE_VALIDATE_COMMAND_H

#include <iosfwd>
#include <string>
#include <vector>

namespace mtplan::tools {

/// Prices every row of a CSV of published runs, and prints the errors of the
/// prices. With --beat, searches for plans for the rows' models instead.
/// \param arguments  without the program's name
/// \returns 0; 1 if --beat finds no plan, or only a slower one, where a
///   published run fits; 2 on bad input
int runValidate(const std::vector<std::string> &arguments, std::ostream &out,
                std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_VALIDATE_COMMAND_H

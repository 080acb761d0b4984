//===- text_file.h - Files named on the command line ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_TEXT_FILE_H
#define MTPLAN_TOOLS_TEXT_TEXT_FILE_H

#include <optional>
#include <string>
#include <vector>

namespace mtplan::tools {

/// Returns the content of a file, or of standard input for "-". Returns
/// nothing, with an error, if the file is missing, a directory, unreadable or
/// above 256 MiB.
std::optional<std::string> readTextFile(const std::string &path,
                                        std::vector<std::string> &errors);

/// Returns false, with an error, if the file cannot be written.
bool writeTextFile(const std::string &path, const std::string &text,
                   std::vector<std::string> &errors);

/// Adds each line of `text` to the errors. The file's name precedes lines that
/// start with a JSON pointer, a line number or a colon.
void addLines(const std::string &text, const std::string &file,
              std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_TEXT_FILE_H

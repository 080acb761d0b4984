//===- text_file.h - Text files and tables ----------------------*- C++ -*-===//

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

bool writeTextFile(const std::string &path, const std::string &text,
                   std::vector<std::string> &errors);

/// Adds each line of `text` to the errors. The file's name precedes lines that
/// start with a JSON pointer, a line number or a colon.
void addLines(const std::string &text, const std::string &file,
              std::vector<std::string> &errors);

struct CsvRecord {
  std::vector<std::string> cells;
  int line = 1; ///< line on which the record starts, from 1
};

/// Splits comma-separated text (RFC 4180) into records. A quoted cell may hold
/// commas, line ends and doubled quotes. An empty line is a record of one empty
/// cell.
std::vector<CsvRecord> csvRecords(const std::string &text);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_TEXT_FILE_H

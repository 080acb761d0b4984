//===- table.h - Tables with aligned columns --------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_TABLE_H
#define MTPLAN_TOOLS_TEXT_TABLE_H

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace mtplan::tools {

/// Prints rows of ASCII cells; each column is as wide as its widest cell.
class Table {
public:
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }

  std::string print(const std::string &indent) const {
    std::vector<std::size_t> widths;
    for (const auto &row : rows)
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (c == widths.size())
          widths.push_back(0);
        widths[c] = std::max(widths[c], row[c].size());
      }
    std::string text;
    for (const auto &row : rows) {
      std::string line = indent;
      for (std::size_t c = 0; c < row.size(); ++c)
        line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
    return text;
  }

private:
  std::vector<std::vector<std::string>> rows;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_TABLE_H

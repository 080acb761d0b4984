//===- html_table.h - Tables of the page ------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_HTML_TABLE_H
#define MTPLAN_TOOLS_PAGE_HTML_TABLE_H

#include <string>
#include <utility>
#include <vector>

namespace mtplan::tools {

/// Text that is escaped when it is printed. The first column names its row.
class HtmlTable {
public:
  explicit HtmlTable(std::string theCaption) : caption(std::move(theCaption)) {}

  void column(std::string name, bool isNumber = false) {
    columns.push_back({std::move(name), isNumber});
  }
  void number(std::string name) { column(std::move(name), true); }
  /// Cells beyond the columns are dropped.
  void row(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  std::size_t size() const { return rows.size(); }

  /// Beyond kMostRows the rest is counted in a last row.
  std::string print() const;

  /// Behind a line to click on, open if it is short; on paper unless it is
  /// long.
  std::string fold() const;

  static constexpr std::size_t kMostRows = 600;

private:
  struct Column {
    std::string name;
    bool isNumber;
  };
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_HTML_TABLE_H

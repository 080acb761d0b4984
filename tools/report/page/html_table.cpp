//===- html_table.cpp - Tables of the page --------------------------------===//

#include "tools/report/page/html_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/report/page/html_text.h"

namespace mtplan::tools {

namespace {

constexpr std::size_t kShort = 12; ///< rows of a table that starts open
constexpr std::size_t kLong =
    128; ///< rows of a table that is not printed folded
constexpr std::size_t kOneLine = 24;   ///< bytes without a line break
constexpr std::size_t kMostText = 400; ///< limit of characters in a cell

} // namespace

std::string HtmlTable::print() const {
  std::string text = "<div class=\"wide\"><table>\n<caption>" +
                     escaped(caption) + "</caption>\n<thead><tr>";
  for (const Column &column : columns)
    text += fmt::format("<th scope=\"col\"{}>{}</th>",
                        column.isNumber ? " class=\"n\"" : "",
                        escaped(column.name, kMostText));
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < std::min(rows.size(), kMostRows); ++r) {
    text += "<tr>";
    for (std::size_t c = 0; c < columns.size(); ++c) {
      std::string cell =
          c < rows[r].size() ? escaped(rows[r][c], kMostText) : "";
      const char *number = columns[c].isNumber       ? " class=\"n\""
                           : cell.size() <= kOneLine ? " class=\"s\""
                                                     : "";
      text += c == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", number, cell)
                     : fmt::format("<td{}>{}</td>", number, cell);
    }
    text += "</tr>\n";
  }
  if (rows.size() > kMostRows)
    text += fmt::format("<tr><th scope=\"row\" colspan=\"{}\">and {} more rows"
                        "</th></tr>\n",
                        columns.size(), rows.size() - kMostRows);
  return text + "</tbody></table></div>\n";
}

std::string HtmlTable::fold() const {
  return fmt::format("<details{}><summary>{} as a table, {} row{}</summary>\n",
                     rows.size() <= kShort ? " open=\"\""
                     : rows.size() > kLong ? " class=\"long\""
                                           : "",
                     escaped(caption), rows.size(),
                     rows.size() == 1 ? "" : "s") +
         print() + "</details>\n";
}

} // namespace mtplan::tools

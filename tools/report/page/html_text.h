//===- html_text.h - Text and numbers that are safe in HTML -----*- C++ -*-===//
//
// All text from files enters the page through this escaping. No such text
// enters a script or a style: those are constants, and read attributes of the
// elements.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_HTML_TEXT_H
#define MTPLAN_TOOLS_REPORT_PAGE_HTML_TEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace mtplan::tools {

/// Escapes text, also for attributes in either kind of quotes. Invalid UTF-8,
/// terminal controls and changes of writing direction become U+FFFD. After
/// `most` characters the text is cut, with an ellipsis.
std::string escaped(std::string_view text, std::size_t most = 2000);

/// Formats a coordinate with at most one decimal and no exponent.
std::string coordinate(double value);

/// Returns "12.3 s" or "4.56 GiB"; "unknown" if the value is not finite.
std::string secondsText(double seconds);
std::string bytesAsText(double bytes);

/// Returns the value if it can be drawn, else 0.
double drawable(double value);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_HTML_TEXT_H

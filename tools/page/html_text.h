//===- html_text.h - Text and numbers that are safe in HTML -----*- C++ -*-===//
//
// The only door through which foreign text enters the page. None ever enters a
// script or a style: those are constants, and read what they need off the
// elements.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_PAGE_HTML_TEXT_H
#define MTPLAN_TOOLS_PAGE_HTML_TEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace mtplan::tools {

/// For text and for attributes in either kind of quotes. What is not UTF-8, and
/// what controls the terminal or turns the direction of writing, becomes
/// U+FFFD; after `most` characters it is cut, with an ellipsis.
std::string escaped(std::string_view text, std::size_t most = 2000);

/// A coordinate: at most one decimal, none that is 0, never an exponent.
std::string coordinate(double value);

/// "12.3 s", "4.56 GiB"; "unknown" if it is not finite.
std::string secondsText(double seconds);
std::string bytesAsText(double bytes);

/// The value if it can be drawn, else 0.
double drawable(double value);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_HTML_TEXT_H

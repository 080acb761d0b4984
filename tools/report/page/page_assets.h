//===- page_assets.h - The style and the script of the page -----*- C++ -*-===//
//
// The texts of page.css and page.js, which CMake embeds. Both are constants:
// no value of a plan is ever written into either.
//
// page.css has nine colours that stay apart with normal sight and with each
// kind of colour blindness: their distance is at least 18 in CIE Lab after the
// matrices of Machado et al. 2009, and their contrast with the page at least 3
// (WCAG 2.1, 1.4.11).
//
// page.js zooms timelines by changing the plot's viewBox, and names the task
// under the pointer. The script reads geometry and words off the paths, and
// writes text only as text. It opens folded tables before printing.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_PAGE_ASSETS_H
#define MTPLAN_TOOLS_REPORT_PAGE_PAGE_ASSETS_H

namespace mtplan::tools {

extern const char *const kPageStyle;
extern const char *const kPageScript;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_PAGE_ASSETS_H

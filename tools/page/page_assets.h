//===- page_assets.h - The style and the script of the page -----*- C++ -*-===//
//
// Constants: nothing of a page is ever written into either.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_PAGE_PAGE_ASSETS_H
#define MTPLAN_TOOLS_PAGE_PAGE_ASSETS_H

namespace mtplan::tools {

extern const char *const kPageStyle;
extern const char *const kPageScript;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_PAGE_ASSETS_H

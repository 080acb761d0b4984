//===- timeline_svg.h - The drawing of a timeline ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_TIMELINE_SVG_H
#define MTPLAN_TOOLS_PAGE_TIMELINE_SVG_H

#include <string>

#include "tools/page/page.h"

namespace mtplan::tools {

/// Legend, buttons, drawing, and what is not drawn. The drawing is complete
/// without its script, which zooms, and says what is under the pointer.
std::string timelineFigure(const PageTimeline &timeline);

/// Time by stage and kind; of few tasks, each one too.
std::string timelineTables(const PageTimeline &timeline);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_TIMELINE_SVG_H

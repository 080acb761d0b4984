//===- timeline.h - A timeline as a drawing and in numbers ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_TIMELINE_H
#define MTPLAN_TOOLS_REPORT_PAGE_TIMELINE_H

#include <string>

#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Returns legend, buttons, drawing and a note on omissions. The drawing is
/// complete without the script, which adds zooming and tool tips.
std::string timelineFigure(const PageTimeline &timeline);

/// Returns tables of time by stage and kind; also of each task if there are
/// few.
std::string timelineTables(const PageTimeline &timeline);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_TIMELINE_H

//===- timeline.h - A timeline as a drawing and in numbers ------*- C++ -*-===//
//
// A step of 64 stages and 512 micro-batches has a hundred thousand tasks. The
// first and last tasks of each stream, where the pipeline fills and drains, are
// drawn one by one. If there are too many tasks, the other tasks are drawn in
// groups of consecutive tasks; in a group, the height of each kind of task is
// its share of the time. With many stages, only a sample of stages is drawn,
// and only some of these show all streams.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_TIMELINE_H
#define MTPLAN_TOOLS_REPORT_PAGE_TIMELINE_H

#include <string>
#include <vector>

#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Returns legend, buttons, drawing and a note on omissions. The drawing is
/// complete without the script, which adds zooming and tool tips.
std::string timelineFigure(const PageTimeline &timeline);

/// Returns tables of time by stage and kind and, for few tasks, a list of the
/// tasks.
std::string timelineTables(const PageTimeline &timeline);

/// Describes a task, or all tasks of one kind in a group.
struct TimelineBox {
  double start = 0, finish = 0; ///< seconds, start < finish
  int kind = 0;
  double top = 0, height = 1; ///< share of the stream's height
  int tasks = 1;
  /// Both are -1 for a group, and if the task has none.
  int chunk = -1, segment = -1;
  /// These are the first and the last micro-batch of a group, or equal for a
  /// single task.
  int microBatch = -1, lastMicroBatch = -1;
};

struct TimelineLane {
  int stage = 0;
  const PageStream *stream = nullptr;
  std::vector<TimelineBox> boxes;
};

struct TimelineBoxes {
  std::vector<TimelineLane> lanes; ///< point into the timeline
  int stages = 0;                  ///< number of drawn stages
  int detailed = 0;                ///< drawn stages with all streams
  int edge = 0;                    ///< single tasks at either end
  int group = 1;                   ///< limit of tasks per group; 1: no groups
  int leftOut = 0;                 ///< hidden streams of drawn stages
};

/// Returns whether a task has a position on the axis and a colour.
bool isDrawn(const PageTimeline &timeline, const PageTask &task);

/// Limits the boxes as described above.
TimelineBoxes boxesOf(const PageTimeline &timeline);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_TIMELINE_H

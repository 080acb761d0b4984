//===- timeline.h - A timeline as a drawing and in numbers ------*- C++ -*-===//
//
// A step of 64 stages and 512 micro-batches has a hundred thousand tasks. The
// first and last tasks of each stream, where the pipeline fills and drains, are
// drawn one by one. If there are too many tasks, the other tasks are drawn in
// groups of consecutive tasks. In a group, the height of the box of each kind
// of task is the kind's share of the time. With many stages, only a sample of
// stages is drawn, and only some of the sampled stages show all streams.
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
  /// For a task, these are -1 if the task has no chunk or segment. For a group,
  /// both are -1.
  int chunk = -1, segment = -1;
  /// For a group, these are the first and the last micro-batch. For a single
  /// task, both are the task's micro-batch.
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
  int edge = 0;                    ///< tasks drawn singly at either end
  int group = 1;                   ///< limit of tasks per group; 1: no groups
  int leftOut = 0;                 ///< hidden streams of drawn stages
};

/// Returns whether a task has a position on the axis and a colour.
bool isDrawn(const PageTimeline &timeline, const PageTask &task);

/// Returns the boxes to draw. Their number is limited by the groups and samples
/// that the head of this file describes.
TimelineBoxes boxesOf(const PageTimeline &timeline);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_TIMELINE_H

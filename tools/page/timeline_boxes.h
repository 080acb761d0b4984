//===- timeline_boxes.h - What of a timeline is drawn -----------*- C++ -*-===//
//
// A step of 64 stages and 512 micro-batches has a hundred thousand tasks. The
// first and the last of each stream, where the pipeline fills and drains, stay
// what they are; those between are drawn in groups that follow each other, each
// as high as the share of its time that its tasks take. Of many stages not all
// are drawn, and of few of them more than the stream that computes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_PAGE_TIMELINE_BOXES_H
#define MTPLAN_TOOLS_PAGE_TIMELINE_BOXES_H

#include <vector>

#include "tools/page/page.h"

namespace mtplan::tools {

/// A task, or all of a group's tasks of one kind.
struct TimelineBox {
  double start = 0, finish = 0; ///< seconds, start < finish
  int kind = 0;
  double top = 0, height = 1; ///< of the stream's height
  int tasks = 1;
  int chunk = -1, segment = -1;             ///< of one task
  int microBatch = -1, lastMicroBatch = -1; ///< of a group: from, to
};

struct TimelineLane {
  int stage = 0;
  const PageStream *stream = nullptr;
  std::vector<TimelineBox> boxes;
};

struct TimelineBoxes {
  std::vector<TimelineLane> lanes; ///< point into the timeline
  int stages = 0;                  ///< drawn
  int detailed = 0;                ///< of them, with all streams
  int edge = 0;                    ///< tasks at either end that stay alone
  int group = 1;                   ///< tasks of a box between them
  int leftOut = 0;                 ///< streams of drawn stages
};

/// Whether a task has a place on the axis and a colour.
bool isDrawn(const PageTimeline &timeline, const PageTask &task);

TimelineBoxes boxesOf(const PageTimeline &timeline);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_TIMELINE_BOXES_H

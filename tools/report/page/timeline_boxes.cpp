//===- timeline_boxes.cpp - Boxes of a drawn timeline ---------------------===//

#include <algorithm>
#include <cmath>

#include "tools/report/page/html.h"
#include "tools/report/page/timeline.h"

namespace mtplan::tools {

namespace {

constexpr std::size_t kMostBoxes = 6000;
constexpr int kMostStages = 64;
constexpr int kMostDetailed = 16; // up to so many stages, all show all streams
constexpr int kSomeDetailed = 4;  // above that, so many stages show all streams
constexpr std::size_t kMostLanes = 128;
constexpr std::size_t kEdge = 12; // tasks drawn singly at either end

using Tasks = std::vector<PageTask>;

void addGroup(std::vector<TimelineBox> &boxes, Tasks::const_iterator first,
              Tasks::const_iterator last, std::size_t kinds) {
  double start = first->start, finish = start;
  std::vector<TimelineBox> byKind(kinds);
  std::vector<double> busy(kinds, 0.0);
  for (auto task = first; task != last; ++task) {
    finish = std::max(finish, task->finish);
    auto kind = static_cast<std::size_t>(task->kind);
    TimelineBox &box = byKind[kind];
    box.tasks = busy[kind] > 0 ? box.tasks + 1 : 1;
    busy[kind] += task->finish - task->start;
    if (task->microBatch < 0)
      continue;
    box.microBatch = box.microBatch < 0
                         ? task->microBatch
                         : std::min(box.microBatch, task->microBatch);
    box.lastMicroBatch = std::max(box.lastMicroBatch, task->microBatch);
  }
  double top = 0;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    if (busy[kind] <= 0)
      continue;
    TimelineBox &box = byKind[kind];
    box.start = start;
    box.finish = finish;
    box.kind = static_cast<int>(kind);
    box.top = top;
    box.height = std::min(busy[kind] / (finish - start), 1 - top);
    top += box.height;
    boxes.push_back(box);
  }
}

// Returns the end of the group that starts at `first`. A group ends after
// `most` tasks, or before the single tasks at the end. If `splits` is set, a
// group also ends before a long wait. A group of at least four tasks then also
// ends before a task of a new kind, to show where the pipeline fills and
// drains.
std::size_t endOfGroup(const Tasks &tasks, std::size_t first, std::size_t most,
                       bool splits) {
  constexpr double kLong = 4; ///< multiple of the group's longest task
  constexpr std::size_t kFew = 4;
  double longest = tasks[first].finish - tasks[first].start;
  std::size_t at = first + 1;
  for (; at < std::min(tasks.size() - kEdge, first + most); ++at) {
    if (splits && tasks[at].start - tasks[at - 1].finish > kLong * longest)
      break;
    longest = std::max(longest, tasks[at].finish - tasks[at].start);
    if (splits && at >= first + kFew &&
        std::none_of(
            tasks.begin() + std::ptrdiff_t(first),
            tasks.begin() + std::ptrdiff_t(at),
            [&](const PageTask &task) { return task.kind == tasks[at].kind; }))
      break;
  }
  return at;
}

std::vector<TimelineBox> boxesOf(const Tasks &tasks, std::size_t kinds,
                                 std::size_t group, bool splits) {
  std::vector<TimelineBox> boxes;
  auto addOne = [&](const PageTask &task) {
    boxes.push_back({task.start, task.finish, task.kind, 0, 1, 1, task.chunk,
                     task.segment, task.microBatch, task.microBatch});
  };
  if (group == 1 || tasks.size() <= 2 * kEdge + group) {
    std::ranges::for_each(tasks, addOne);
    return boxes;
  }
  std::for_each_n(tasks.begin(), kEdge, addOne);
  for (std::size_t i = kEdge; i < tasks.size() - kEdge;) {
    std::size_t end = endOfGroup(tasks, i, group, splits);
    addGroup(boxes, tasks.begin() + std::ptrdiff_t(i),
             tasks.begin() + std::ptrdiff_t(end), kinds);
    i = end;
  }
  std::for_each(tasks.end() - kEdge, tasks.end(), addOne);
  return boxes;
}

} // namespace

bool isDrawn(const PageTimeline &timeline, const PageTask &task) {
  return std::isfinite(task.start) && std::isfinite(task.finish) &&
         task.start >= 0 && task.start < task.finish &&
         task.finish <= timeline.end * (1 + 1e-9) && task.kind >= 0 &&
         task.kind < static_cast<int>(timeline.kinds.size());
}

TimelineBoxes boxesOf(const PageTimeline &timeline) {
  TimelineBoxes result;
  if (!std::isfinite(timeline.end) || timeline.end <= 0)
    return result;
  std::vector<int> shown = evenly(timeline.stages, kMostStages);
  result.stages = static_cast<int>(shown.size());
  result.detailed =
      result.stages <= kMostDetailed ? result.stages : kSomeDetailed;
  std::vector<int> detailed;
  for (int i : evenly(result.stages, result.detailed))
    detailed.push_back(shown[static_cast<std::size_t>(i)]);

  std::vector<Tasks> tasks;
  for (const PageStream &stream : timeline.streams) {
    if (!std::ranges::binary_search(shown, stream.stage))
      continue;
    Tasks drawn;
    std::ranges::copy_if(
        stream.tasks, std::back_inserter(drawn),
        [&](const PageTask &task) { return isDrawn(timeline, task); });
    std::ranges::stable_sort(drawn, {}, &PageTask::start);
    if (drawn.empty())
      continue;
    if ((!stream.isCompute &&
         !std::ranges::binary_search(detailed, stream.stage)) ||
        result.lanes.size() == kMostLanes) {
      ++result.leftOut;
      continue;
    }
    result.lanes.push_back({stream.stage, &stream, {}});
    tasks.push_back(std::move(drawn));
  }

  std::size_t longest = 0;
  for (const Tasks &one : tasks)
    longest = std::max(longest, one.size());
  auto fits = [&](std::size_t group, bool splits) {
    std::size_t boxes = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      result.lanes[i].boxes =
          boxesOf(tasks[i], timeline.kinds.size(), group, splits);
      boxes += result.lanes[i].boxes.size();
    }
    result.group = static_cast<int>(group);
    return boxes <= kMostBoxes;
  };
  std::size_t group = 1;
  while (!fits(group, true) && group <= longest)
    group = group * 5 / 4 + 1;
  // If waits separate most tasks, every group size gives too many boxes. Groups
  // are then formed regardless of waits.
  if (group > longest)
    for (group = 1; !fits(group, false) && group <= longest;)
      group = group * 5 / 4 + 1;
  result.edge = kEdge;
  return result;
}

} // namespace mtplan::tools

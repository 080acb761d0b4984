//===- timeline_table.cpp - A timeline in numbers -------------------------===//

#include <algorithm>
#include <cmath>

#include "tools/report/page/html_table.h"
#include "tools/report/page/html_text.h"
#include "tools/report/page/timeline_boxes.h"
#include "tools/report/page/timeline_svg.h"

namespace mtplan::tools {

namespace {

std::string orDash(int number) {
  return number < 0 ? "-" : std::to_string(number);
}

HtmlTable byStage(const PageTimeline &timeline) {
  struct Row {
    std::vector<double> time;
    std::size_t tasks = 0;
    double start = kUnknown, finish = kUnknown; ///< fmin and fmax skip NaN
  };
  std::vector<double> all(timeline.kinds.size(), 0.0);
  std::vector<Row> rows(static_cast<std::size_t>(std::max(0, timeline.stages)),
                        Row{all});
  for (const PageStream &stream : timeline.streams) {
    if (stream.stage < 0 || stream.stage >= timeline.stages)
      continue;
    Row &row = rows[static_cast<std::size_t>(stream.stage)];
    for (const PageTask &task : stream.tasks) {
      if (!isDrawn(timeline, task))
        continue;
      auto kind = static_cast<std::size_t>(task.kind);
      row.time[kind] += task.finish - task.start;
      all[kind] += task.finish - task.start;
      ++row.tasks;
      row.start = std::fmin(row.start, task.start);
      row.finish = std::fmax(row.finish, task.finish);
    }
  }
  HtmlTable table("Time of each stage's tasks, by kind");
  table.column("stage");
  for (std::size_t kind = 0; kind < all.size(); ++kind)
    if (all[kind] > 0)
      table.number(timeline.kinds[kind].name);
  table.number("tasks");
  table.number("first start");
  table.number("last finish");
  for (std::size_t stage = 0; stage < rows.size(); ++stage) {
    const Row &row = rows[stage];
    std::vector<std::string> cells = {"stage " + std::to_string(stage)};
    for (std::size_t kind = 0; kind < all.size(); ++kind)
      if (all[kind] > 0)
        cells.push_back(secondsText(row.time[kind]));
    cells.push_back(std::to_string(row.tasks));
    cells.push_back(row.tasks > 0 ? secondsText(row.start) : "-");
    cells.push_back(row.tasks > 0 ? secondsText(row.finish) : "-");
    table.row(std::move(cells));
  }
  return table;
}

HtmlTable byTask(const PageTimeline &timeline) {
  HtmlTable table("Every task");
  table.column("stage");
  table.column("stream");
  table.column("task");
  table.number("micro-batch");
  table.number("chunk");
  table.number("segment");
  table.number("start");
  table.number("finish");
  for (const PageStream &stream : timeline.streams)
    for (const PageTask &task : stream.tasks)
      if (isDrawn(timeline, task))
        table.row({"stage " + std::to_string(stream.stage), stream.name,
                   timeline.kinds[static_cast<std::size_t>(task.kind)].name,
                   orDash(task.microBatch), orDash(task.chunk),
                   orDash(task.segment), secondsText(task.start),
                   secondsText(task.finish)});
  return table;
}

} // namespace

std::string timelineTables(const PageTimeline &timeline) {
  std::string text = byStage(timeline).fold();
  std::size_t tasks = 0;
  for (const PageStream &stream : timeline.streams)
    tasks += stream.tasks.size();
  if (tasks <= HtmlTable::kMostRows)
    text += byTask(timeline).fold();
  return text;
}

} // namespace mtplan::tools

//===- timeline.cpp - A timeline as a drawing and in numbers --------------===//
//
// The drawing has a path per stream and kind, with a rectangle per box. The
// attribute data-t holds a word per box for tool tips:
// "microbatch.chunk.segment", with a dash for a missing value, or
// "tasks*first~last" for a group.
//
//===----------------------------------------------------------------------===//

#include "tools/report/page/timeline.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/report/page/bars.h"
#include "tools/report/page/html.h"

namespace mtplan::tools {

namespace {

constexpr double kWidth = 1000, kLeft = 150, kTop = 26;
constexpr int kUnits = 1000000; // length of the plot's axis

int colourOf(const PageKind &kind) {
  return std::clamp(kind.colour, 0, kPageColours - 1);
}

std::string orDash(int number) {
  return number < 0 ? "-" : std::to_string(number);
}

class Drawing {
public:
  explicit Drawing(const PageTimeline &theTimeline)
      : timeline(theTimeline), drawn(boxesOf(timeline)) {
    compute = drawn.stages <= 16 ? 18 : 9;
    for (const PageStream &stream : timeline.streams)
      for (const PageTask &task : stream.tasks)
        hasChunks |= task.chunk > 0;
  }

  std::string print() {
    std::string inside = lanes();
    if (inside.empty())
      return "<p>No task of the step takes any time.</p>\n";
    std::string title =
        fmt::format("Timeline of one training step: {} of {} stages, {} long",
                    drawn.stages, timeline.stages, secondsText(timeline.end));
    std::string text = "<figure>\n" + legendOfKinds() + buttons();
    text += fmt::format(
        "<div class=\"wide timeline\" tabindex=\"0\" role=\"group\" "
        "aria-label=\"Timeline. Arrow keys move it, plus and minus zoom, 0 "
        "shows all.\" data-end=\"{}\" data-near=\"{}\">\n",
        timeline.end, nearby());
    text +=
        fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" "
                    "aria-label=\"{}\">\n",
                    coordinate(kWidth), coordinate(kTop + below + 4), title);
    text += "<g class=\"axis\">" + axis() + "</g>\n" + labels;
    text += fmt::format(
        "<svg class=\"plot\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
        "viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">\n",
        coordinate(kLeft), coordinate(kTop), coordinate(kWidth - kLeft - 8),
        coordinate(below), kUnits, coordinate(below));
    text += inside + "</svg>\n</svg>\n<div class=\"tip\" hidden=\"\"></div>";
    return text + "</div>\n<figcaption>" + caption() +
           "</figcaption>\n</figure>\n";
  }

private:
  // Draws the lanes. Fills in `labels`, and `below`, the height of all lanes.
  std::string lanes() {
    std::string text;
    int stage = -1;
    for (const TimelineLane &lane : drawn.lanes) {
      if (lane.boxes.empty())
        continue;
      bool isFirst = lane.stage != stage;
      if (isFirst && stage >= 0)
        below += drawn.stages <= 16 ? 7 : 2;
      double height = lane.stream->isCompute ? compute : 10;
      double base = kTop + below + height / 2 + 3.5;
      if (isFirst)
        labels += fmt::format(
            "<text class=\"{}\" x=\"4\" y=\"{}\">stage {}</text>",
            compute < 12 ? "small" : "start", coordinate(base), lane.stage);
      if (!lane.stream->isCompute || drawn.stages <= 16)
        labels +=
            fmt::format("<text class=\"end small\" x=\"{}\" y=\"{}\">{}</text>",
                        coordinate(kLeft - 6), coordinate(base),
                        escaped(lane.stream->name, 18));
      text += print(lane, height);
      below += height + 1;
      stage = lane.stage;
    }
    if (!labels.empty())
      labels += '\n';
    return text;
  }

  std::string print(const TimelineLane &lane, double height) const {
    // Edges of boxes are drawn only if all boxes of the lane are wide.
    constexpr double kWide = 0.003;
    bool isNear = std::ranges::all_of(lane.boxes, [&](const TimelineBox &box) {
      return box.finish - box.start > kWide * timeline.end;
    });
    std::string text = fmt::format(
        "<g{} transform=\"translate(0 {})\" data-n=\"stage {}, {}\"><rect "
        "class=\"lane\" width=\"{}\" height=\"{}\"/>\n",
        isNear ? " class=\"near\"" : "", coordinate(below), lane.stage,
        escaped(lane.stream->name, 80), kUnits, coordinate(height));
    for (std::size_t kind = 0; kind < timeline.kinds.size(); ++kind) {
      std::string path, words;
      for (const TimelineBox &box : lane.boxes)
        if (box.kind == static_cast<int>(kind)) {
          path += rectangle(box, height);
          words += (words.empty() ? "" : " ") + word(box);
        }
      if (!path.empty())
        text += fmt::format(
            "<path class=\"c{}\" data-k=\"{}\" data-t=\"{}\" d=\"{}\"/>\n",
            colourOf(timeline.kinds[kind]),
            escaped(timeline.kinds[kind].name, 80), words, path);
    }
    return text + "</g>\n";
  }

  int along(double seconds) const {
    return static_cast<int>(
        std::lround(std::clamp(seconds / timeline.end, 0.0, 1.0) * kUnits));
  }

  std::string rectangle(const TimelineBox &box, double height) const {
    int from = along(box.start), to = std::max(from + 1, along(box.finish));
    return fmt::format("M{} {}h{}v{}H{}z", from, coordinate(box.top * height),
                       to - from,
                       coordinate(std::max(0.1, box.height * height)), from);
  }

  std::string word(const TimelineBox &box) const {
    if (box.tasks > 1)
      return fmt::format("{}*{}~{}", box.tasks, orDash(box.microBatch),
                         orDash(box.lastMicroBatch));
    std::string text = orDash(box.microBatch);
    if (hasChunks || box.segment >= 0)
      text += '.' + orDash(hasChunks ? box.chunk : -1);
    if (box.segment >= 0)
      text += '.' + orDash(box.segment);
    return text;
  }

  // Returns the width of the view that the start and end buttons show, in the
  // plot's units. The view reaches the latest finish of the first `drawn.edge`
  // boxes of any compute lane, but has at least 1/200 and at most 1/4 of the
  // axis.
  int nearby() const {
    double last = 0;
    for (const TimelineLane &lane : drawn.lanes)
      if (lane.stream->isCompute && !lane.boxes.empty()) {
        std::size_t at = std::min<std::size_t>(std::max(1, drawn.edge) - 1,
                                               lane.boxes.size() - 1);
        last = std::max(last, lane.boxes[at].finish);
      }
    return std::clamp(along(last), kUnits / 200, kUnits / 4);
  }

  std::string axis() const {
    std::string text;
    for (double tick : ticksOf(0, timeline.end, kSecondsUnit)) {
      std::string x =
          coordinate(kLeft + tick / timeline.end * (kWidth - kLeft - 8));
      text += fmt::format("<path class=\"grid\" d=\"M{0} 16V{1}\"/><text "
                          "class=\"mid\" x=\"{0}\" y=\"12\">{2}</text>",
                          x, coordinate(kTop + below), secondsText(tick));
    }
    return text;
  }

  std::string legendOfKinds() const {
    std::vector<bool> used(timeline.kinds.size(), false);
    for (const TimelineLane &lane : drawn.lanes)
      for (const TimelineBox &box : lane.boxes)
        used[static_cast<std::size_t>(box.kind)] = true;
    std::vector<std::pair<int, std::string>> entries;
    for (std::size_t kind = 0; kind < used.size(); ++kind) {
      if (!used[kind])
        continue;
      int colour = colourOf(timeline.kinds[kind]);
      auto same = std::ranges::find(entries, colour,
                                    &std::pair<int, std::string>::first);
      if (same == entries.end())
        entries.emplace_back(colour, timeline.kinds[kind].name);
      else
        same->second += ", " + timeline.kinds[kind].name;
    }
    return legend(entries);
  }

  static std::string buttons() {
    std::string text = "<p class=\"tools\" hidden=\"\">";
    for (auto [action, name] :
         {std::pair("all", "Whole step"), std::pair("start", "Start"),
          std::pair("end", "End"), std::pair("in", "Zoom in"),
          std::pair("out", "Zoom out"), std::pair("left", "Earlier"),
          std::pair("right", "Later")})
      text += fmt::format("<button type=\"button\" data-do=\"{}\">{}</button>",
                          action, name);
    return text + "<span>Drag to move; with Ctrl, or after a click, the wheel "
                  "zooms.</span></p>\n";
  }

  std::string caption() const {
    std::string text = "Grey is idle. ";
    if (drawn.stages < timeline.stages)
      text += fmt::format("{} of {} stages are drawn, evenly chosen. ",
                          drawn.stages, timeline.stages);
    if (drawn.detailed < drawn.stages)
      text += fmt::format("Streams beside compute are drawn for {} of them. ",
                          drawn.detailed);
    else if (drawn.leftOut > 0)
      text += fmt::format("{} streams are not drawn. ", drawn.leftOut);
    if (drawn.group > 1)
      text += fmt::format(
          "The first and the last {} tasks of a stream are drawn one by one; "
          "between them a box is up to {} tasks, and as high in each colour as "
          "the share of time that they take. ",
          drawn.edge, drawn.group);
    return text + "The table has every stage.";
  }

  const PageTimeline &timeline;
  TimelineBoxes drawn;
  double compute, below = 0;
  bool hasChunks = false;
  std::string labels;
};

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

std::string timelineFigure(const PageTimeline &timeline) {
  return Drawing(timeline).print();
}

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

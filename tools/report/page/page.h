//===- page.h - Contents of the page about a plan ---------------*- C++ -*-===//
//
// The page is one HTML file without dependencies. The types below hold the
// contents of the page as plain data. They depend neither on the drawing code
// nor on the planner.
//
// Texts may come from files, so they may hold any bytes, including invalid
// UTF-8. Numbers that are not finite are written as "unknown" and not drawn.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_PAGE_H
#define MTPLAN_TOOLS_REPORT_PAGE_PAGE_H

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mtplan::tools {

inline constexpr int kPageColours = 10;
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Holds a number in the heading: "Step time", "12.3 s".
struct PageFigure {
  std::string name, value;
};

/// Describes a part of a stacked bar. All bars have the same parts.
struct PagePart {
  std::string name;
  std::string meaning = {}; ///< a sentence for the table; may be empty
  int colour = -1;          ///< 0 .. kPageColours - 1; -1: by index
};

struct PageBar {
  std::string name;
  std::vector<double> parts; ///< sizes of PageBars::parts; 0 if missing
  double total = kUnknown;   ///< if unknown, the sum of the parts
  std::string note = {};     ///< cell of the column PageBars::noteName
};

struct PageBars {
  std::vector<PagePart> parts;
  std::vector<PageBar> bars;
  std::string noteName;    ///< last column of the table, or empty
  double limit = kUnknown; ///< drawn as a line
};

struct PageKind {
  std::string name;
  int colour = 0; ///< 0 .. kPageColours - 1
};

/// Describes a task. Its chunk, micro-batch or segment is -1 if the task has
/// none or several.
struct PageTask {
  double start = 0, finish = 0; ///< seconds
  int kind = 0;                 ///< index into PageTimeline::kinds
  int chunk = -1, microBatch = -1, segment = -1;
};

struct PageStream {
  int stage = 0;
  std::string name;
  bool isCompute = false;      ///< drawn larger
  std::vector<PageTask> tasks; ///< ordered by start
};

struct PageTimeline {
  double end = 0; ///< seconds
  int stages = 0;
  std::vector<PageKind> kinds;
  std::vector<PageStream> streams; ///< ordered by stage
};

struct PageTraffic {
  std::string axis, phase, kind; ///< "tp", "forward", "all_reduce"
  /// These are sums per step over one rank of every stage.
  std::int64_t count = 0;
  double bytes = 0;   ///< input of the collectives; kUnknown for sends
  double seconds = 0; ///< including time hidden by compute
};

struct PageAlternative {
  std::string name;
  double seconds = 0; ///< step time
  double bytes = 0;   ///< memory of the device that needs most
  bool isChosen = false;
  std::string slowdown; ///< "+3.1 %", "+1.0 to +2.4 %"; chosen plan: ""
  std::string reason;
};

struct PageRejection {
  std::string name, reason;
};

struct PageTable {
  std::string title, text;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Page {
  std::string title;
  std::string model, machine; ///< one line each
  std::string plan;
  std::vector<PageFigure> figures;
  std::vector<std::string> notes;
  PageBars step;   ///< one bar, in seconds by class
  PageBars stages; ///< a bar per stage, in seconds
  PageTimeline timeline;
  PageBars memory; ///< a bar per stage, in bytes
  std::vector<PageTraffic> traffic;
  std::vector<PageAlternative> alternatives; ///< including the chosen plan
  double memoryLimit = kUnknown;             ///< bytes, per device
  std::vector<PageRejection> rejections;
  std::string searched; ///< "Optimal over 120 candidates, ..."
  std::vector<PageTable> tables;
  std::string made; ///< last line: program and inputs
};

/// Returns the HTML file. Equal pages give equal bytes. To keep the file below
/// about a megabyte, items of long lists are merged, sampled or only counted,
/// and the page says so.
std::string htmlOf(const Page &page);

/// These are the texts of page.css and page.js, which CMake embeds. No value of
/// a plan enters either text.
///
/// page.css has nine colours that are distinct for normal sight and each kind
/// of colour blindness. The distance between any two colours is at least 18 in
/// CIE Lab, after each matrix of Machado et al. 2009. The contrast of each
/// colour with the page is at least 3 (WCAG 2.1, 1.4.11).
///
/// page.js zooms timelines by changing the plot's viewBox, and names the task
/// under the pointer. The script reads geometry and words from the paths, and
/// inserts text only as text nodes. Before printing, the script opens all
/// folded tables that are not long.
extern const char *const kPageStyle;
extern const char *const kPageScript;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_PAGE_H

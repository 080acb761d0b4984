//===- page.h - Contents of the page about a plan ---------------*- C++ -*-===//
//
// The page is one HTML file without dependencies: no network, no fonts, only
// its own script. These types hold the page's contents as plain data,
// independent of the drawing and of the planner.
//
// Any text may come from files, so it may hold any bytes, including invalid
// UTF-8. Any number may have any value; values that are not finite are written
// as "unknown" and not drawn.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_PAGE_H
#define MTPLAN_TOOLS_REPORT_PAGE_PAGE_H

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mtplan::tools {

inline constexpr int kPageColours = 9;
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Holds a number of the heading: "Step time", "12.3 s".
struct PageFigure {
  std::string name, value;
};

/// Describes one of the parts that each bar is divided into.
struct PagePart {
  std::string name;
  std::string meaning = {}; ///< a sentence for the table; may be empty
  int colour = -1;          ///< 0 .. kPageColours - 1; -1: by index
};

struct PageBar {
  std::string name;
  std::vector<double> parts; ///< sizes of PageBars::parts; 0 if missing
  double total = kUnknown;   ///< unknown: the sum of the parts
  std::string note = {};     ///< cell of the column PageBars::noteName
};

/// Holds bars with the same parts.
struct PageBars {
  std::vector<PagePart> parts;
  std::vector<PageBar> bars;
  std::string noteName;    ///< name of a last column of the table, or empty
  double limit = kUnknown; ///< drawn as a line
};

/// Describes a kind of task, which is drawn in one colour.
struct PageKind {
  std::string name;
  int colour = 0; ///< 0 .. kPageColours - 1
};

/// Describes a task on a stream. A chunk, micro-batch or segment is -1 if the
/// task has none, or several.
struct PageTask {
  double start = 0, finish = 0; ///< seconds
  int kind = 0;                 ///< index into PageTimeline::kinds
  int chunk = -1, microBatch = -1, segment = -1;
};

/// Holds tasks that run one after another.
struct PageStream {
  int stage = 0;
  std::string name;            ///< "compute", "gather"
  bool isCompute = false;      ///< drawn larger
  std::vector<PageTask> tasks; ///< ordered by start
};

struct PageTimeline {
  double end = 0; ///< seconds
  int stages = 0;
  std::vector<PageKind> kinds;
  std::vector<PageStream> streams; ///< ordered by stage
};

/// Counts equal collectives of one axis and phase.
struct PageTraffic {
  std::string axis, phase, kind; ///< "tp", "forward", "all_reduce"
  /// These are sums over one rank of every stage, per step.
  std::int64_t count = 0;
  double bytes = 0;   ///< input of the collectives; kUnknown for sends
  double seconds = 0; ///< including the time that compute hides
};

/// Describes the chosen plan or an alternative.
struct PageAlternative {
  std::string name;   ///< "dp 2 x tp 8, micro-batch 4 x 64, ZeRO 1"
  double seconds = 0; ///< step time
  double bytes = 0;   ///< memory of the device that needs the most
  bool isChosen = false;
  std::string slowdown; ///< "+3.1 %", "+1.0 to +2.4 %"; empty for the chosen
  std::string reason;   ///< why the plan is slower
};

/// Describes a mesh without a plan.
struct PageRejection {
  std::string name, reason;
};

/// Holds a table without a drawing.
struct PageTable {
  std::string title, text;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Page {
  std::string title;          ///< title of the window
  std::string model, machine; ///< one line each
  std::string plan;           ///< one sentence
  std::vector<PageFigure> figures;
  std::vector<std::string> notes;
  PageBars step;   ///< seconds by class, one bar
  PageBars stages; ///< seconds, a bar per stage
  PageTimeline timeline;
  PageBars memory; ///< bytes, a bar per stage
  std::vector<PageTraffic> traffic;
  std::vector<PageAlternative> alternatives; ///< including the chosen plan
  double memoryLimit = kUnknown;             ///< bytes, per device
  std::vector<PageRejection> rejections;
  std::string searched; ///< "Optimal over 120 candidates, ..."
  std::vector<PageTable> tables;
  std::string made; ///< the last line: program and inputs
};

/// Returns the HTML file. The same page gives the same bytes. The file stays
/// below about a megabyte: further items are merged, sampled or counted, with a
/// note on the page.
std::string htmlOf(const Page &page);

/// The texts of page.css and page.js, which CMake embeds, are constants: no
/// value of a plan is ever written into either.
///
/// page.css has nine colours that are distinct for normal sight and each kind
/// of colour blindness: their distance is at least 18 in CIE Lab after the
/// matrices of Machado et al. 2009, and their contrast with the page at least 3
/// (WCAG 2.1, 1.4.11).
///
/// page.js zooms timelines by changing the plot's viewBox, and names the task
/// under the pointer. The script reads geometry and words from the paths, and
/// inserts text only as text nodes. It opens folded tables before printing,
/// except long ones.
extern const char *const kPageStyle;
extern const char *const kPageScript;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_PAGE_H

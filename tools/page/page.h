//===- page.h - What the page about a plan shows ----------------*- C++ -*-===//
//
// One HTML file that needs nothing else: no network, no fonts, no scripts but
// its own. Here is what is on it, as plain data that knows nothing of how it is
// drawn nor of where it comes from.
//
// All text may come from files of others and may hold anything, bytes that are
// not UTF-8 included. All numbers may be anything; what is not finite is shown
// as such and drawn as nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_PAGE_PAGE_H
#define MTPLAN_TOOLS_PAGE_PAGE_H

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mtplan::tools {

inline constexpr int kPageColours = 9;
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// "Step time", "12.3 s".
struct PageFigure {
  std::string name, value;
};

/// Something that bars are divided into.
struct PagePart {
  std::string name;
  std::string meaning = {}; ///< a sentence for the table; may be empty
  int colour = -1;          ///< 0 .. kPageColours - 1; -1: the next in order
};

struct PageBar {
  std::string name;
  std::vector<double> parts; ///< by PageBars::parts; what is missing is 0
  double total = kUnknown;   ///< if it is known apart from the parts
  std::string note = {};     ///< for the column PageBars::noteName
};

/// Bars divided alike.
struct PageBars {
  std::vector<PagePart> parts;
  std::vector<PageBar> bars;
  std::string noteName;    ///< of a last column of the table; empty: none
  double limit = kUnknown; ///< a line that bars should stay below
};

/// A kind of task: a colour of the timeline.
struct PageKind {
  std::string name;
  int colour = 0; ///< 0 .. kPageColours - 1
};

/// One task on a stream. -1: of no one chunk, micro-batch, segment.
struct PageTask {
  double start = 0, finish = 0; ///< seconds
  int kind = 0;                 ///< index into PageTimeline::kinds
  int chunk = -1, microBatch = -1, segment = -1;
};

/// Tasks that follow each other.
struct PageStream {
  int stage = 0;
  std::string name;            ///< "compute", "gather"
  bool isCompute = false;      ///< drawn larger
  std::vector<PageTask> tasks; ///< by start
};

struct PageTimeline {
  double end = 0; ///< seconds
  int stages = 0;
  std::vector<PageKind> kinds;
  std::vector<PageStream> streams; ///< by stage
};

/// Equal collectives of one axis and phase, counted together.
struct PageTraffic {
  std::string axis, phase, kind; ///< "tp", "forward", "all_reduce"
  /// Per step, of one rank of every stage, added up.
  std::int64_t count = 0;
  double bytes = 0;   ///< passed in
  double seconds = 0; ///< whether or not something runs meanwhile
};

/// A plan, the chosen one or another.
struct PageAlternative {
  std::string name;   ///< "dp 2 x tp 8, micro-batch 4 x 64, ZeRO 1"
  double seconds = 0; ///< of a step
  double bytes = 0;   ///< of the fullest device
  bool isChosen = false;
  std::string slowdown; ///< "+3.1 %", "+1.0 to +2.4 %"; empty for the chosen
  std::string reason;   ///< why it lost
};

/// What never became a plan.
struct PageRejection {
  std::string name, reason;
};

/// Anything that is a table and nothing more.
struct PageTable {
  std::string title, text;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Page {
  std::string title;          ///< of the window
  std::string model, machine; ///< a line each
  std::string plan;           ///< one sentence
  std::vector<PageFigure> figures;
  std::vector<std::string> notes;
  PageBars step;   ///< seconds; where the time goes, one bar
  PageBars stages; ///< seconds; a bar a stage
  PageTimeline timeline;
  PageBars memory; ///< bytes; a bar a stage
  std::vector<PageTraffic> traffic;
  std::vector<PageAlternative> alternatives; ///< the chosen one among them
  double memoryLimit = kUnknown;             ///< bytes, of one device
  std::vector<PageRejection> rejections;
  std::string searched; ///< "Optimal over 120 candidates, ..."
  std::vector<PageTable> tables;
  std::string made; ///< the last line: by what, from what
};

/// The file. Same page, same bytes. However much there is to show, it stays
/// below about a megabyte: what is not drawn is merged or listed, what is not
/// listed is counted, and the page says which.
std::string htmlOf(const Page &page);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_PAGE_H

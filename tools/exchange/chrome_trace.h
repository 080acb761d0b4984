//===- chrome_trace.h - Timelines for Perfetto ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_CHROME_TRACE_H
#define MTPLAN_TOOLS_EXCHANGE_CHROME_TRACE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mtplan::planner {
struct StepResult;
}

namespace mtplan::tools {

using TraceValue = std::variant<std::int64_t, double, std::string>;

/// Holds an event with a duration. Events of one thread are nested or disjoint.
struct TraceEvent {
  int process = 0; ///< for example a rank
  int thread = 0;  ///< for example a stream
  std::string name, category;
  double start = 0;    ///< seconds
  double duration = 0; ///< seconds, >= 0
  std::vector<std::pair<std::string, TraceValue>> args;
};

struct TraceFlow {
  std::string name, category;
  std::size_t from = 0, to = 0; ///< indices of events
};

struct TraceLabel {
  int process = 0;
  int thread = kWholeProcess;
  std::string name;
  static constexpr int kWholeProcess = -1;
};

struct Trace {
  std::vector<TraceLabel> labels; ///< in order of display
  std::vector<TraceEvent> events;
  std::vector<TraceFlow> flows;
};

/// Writes trace event JSON. Times are rounded to nanoseconds first, so that
/// adjacent events do not overlap. An event is left out, with an error, if its
/// duration is negative or a time is not finite or beyond 100 days. An arrow is
/// left out, with an error, if one of its events is missing.
std::string writeChromeTrace(const Trace &trace,
                             std::vector<std::string> &errors);

/// Returns a trace with an event per task, a process per stage and a thread per
/// stream. An arrow leads from a task to each dependent task of another stage.
Trace traceOf(const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_CHROME_TRACE_H

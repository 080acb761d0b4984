//===- chrome_trace.h - Timelines for Perfetto ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_CHROME_TRACE_H
#define MTPLAN_TOOLS_EXCHANGE_CHROME_TRACE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mtplan::tools {

using TraceValue = std::variant<std::int64_t, double, std::string>;

/// Something that takes time. Events of one thread nest or are apart.
struct TraceEvent {
  int process = 0; ///< a rank, say
  int thread = 0;  ///< a stream of it
  std::string name, category;
  double start = 0;    ///< seconds
  double duration = 0; ///< seconds, >= 0
  std::vector<std::pair<std::string, TraceValue>> args;
};

/// An arrow from the end of one event to the start of another.
struct TraceFlow {
  std::string name, category;
  std::size_t from = 0, to = 0; ///< indices of events
};

/// What a process, or one of its threads, is called.
struct TraceLabel {
  int process = 0;
  int thread = kWholeProcess;
  std::string name;
  static constexpr int kWholeProcess = -1;
};

struct Trace {
  std::vector<TraceLabel> labels; ///< in the order they are to be shown
  std::vector<TraceEvent> events;
  std::vector<TraceFlow> flows;
};

/// Trace event JSON. Times are rounded to nanoseconds first, so that events
/// that touch do not overlap. An event whose times are not finite, negative in
/// duration or beyond 100 days, and an arrow from or to no event, is left out
/// with an error.
std::string writeChromeTrace(const Trace &trace,
                             std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_CHROME_TRACE_H

//===- chrome_trace_json.cpp - Timelines for Perfetto ---------------------===//
//
// The text is written event by event, because a JSON value with millions of
// events would take many times the memory.
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/simulate/step.h"
#include "tools/exchange/chrome_trace.h"

namespace mtplan::tools {

using nlohmann::json;
using planner::StepTask;

namespace {

constexpr double kMostSeconds = 100.0 * 24 * 3600;
constexpr std::size_t kMostErrors = 20;

struct Span {
  std::int64_t begin, end; // nanoseconds
};

std::optional<Span> spanOf(const TraceEvent &event) {
  bool usable = std::isfinite(event.start) && std::isfinite(event.duration) &&
                std::abs(event.start) <= kMostSeconds && event.duration >= 0 &&
                event.duration <= kMostSeconds;
  if (!usable)
    return std::nullopt;
  return Span{std::llround(event.start * 1e9),
              std::llround((event.start + event.duration) * 1e9)};
}

std::string text(const std::string &value) {
  return json(value).dump(-1, ' ', false, json::error_handler_t::replace);
}

// Trace events count microseconds; three decimals keep nanoseconds exact.
std::string micros(std::int64_t nanos) {
  std::int64_t size = nanos < 0 ? -nanos : nanos;
  return fmt::format("{}{}.{:03}", nanos < 0 ? "-" : "", size / 1000,
                     size % 1000);
}

std::string valueText(const TraceValue &value) {
  if (const auto *words = std::get_if<std::string>(&value))
    return text(*words);
  if (const auto *whole = std::get_if<std::int64_t>(&value))
    return fmt::format("{}", *whole);
  double number = std::get<double>(value);
  return std::isfinite(number) ? json(number).dump()
                               : fmt::format("\"{}\"", number);
}

class Writer {
public:
  Writer(const Trace &written, std::vector<std::string> &notes)
      : trace(written), errors(notes) {}

  std::string run() {
    out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (std::size_t i = 0; i < trace.labels.size(); ++i)
      label(trace.labels[i], i);
    spans.reserve(trace.events.size());
    for (std::size_t i = 0; i < trace.events.size(); ++i)
      event(i);
    for (std::size_t i = 0; i < trace.flows.size(); ++i)
      flow(i);
    if (failures > kMostErrors)
      errors.push_back(
          fmt::format("{} more are left out", failures - kMostErrors));
    return std::move(out) + "\n]}\n";
  }

private:
  void add(const std::string &object) {
    out += first ? "\n" : ",\n";
    out += object;
    first = false;
  }
  void fail(std::string message) {
    if (++failures <= kMostErrors)
      errors.push_back(std::move(message));
  }

  void label(const TraceLabel &label, std::size_t order) {
    bool whole = label.thread == TraceLabel::kWholeProcess;
    const char *kind = whole ? "process" : "thread";
    std::string place = whole ? fmt::format("\"pid\":{}", label.process)
                              : fmt::format("\"pid\":{},\"tid\":{}",
                                            label.process, label.thread);
    add(fmt::format(R"({{"ph":"M","name":"{}_name",{},"args":{{"name":{}}}}})",
                    kind, place, text(label.name)));
    add(fmt::format(
        R"({{"ph":"M","name":"{}_sort_index",{},"args":{{"sort_index":{}}}}})",
        kind, place, order));
  }

  void event(std::size_t index) {
    const TraceEvent &event = trace.events[index];
    spans.push_back(spanOf(event));
    const std::optional<Span> &span = spans.back();
    if (!span)
      return fail(fmt::format(
          "event {} \"{}\": starts at {} s and takes {} s; left out", index,
          event.name.substr(0, 60), event.start, event.duration));
    std::string args;
    for (const auto &[key, value] : event.args)
      args += (args.empty() ? "" : ",") + text(key) + ':' + valueText(value);
    add(fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},)"
                    R"("ts":{},"dur":{},"args":{{{}}}}})",
                    text(event.name), text(event.category), event.process,
                    event.thread, micros(span->begin),
                    micros(span->end - span->begin), args));
  }

  void flow(std::size_t index) {
    const TraceFlow &flow = trace.flows[index];
    if (flow.from >= spans.size() || flow.to >= spans.size() ||
        !spans[flow.from] || !spans[flow.to])
      return fail(fmt::format("arrow {} \"{}\": from event {} to event {}, but "
                              "there are {}; left out",
                              index, flow.name.substr(0, 60), flow.from,
                              flow.to, spans.size()));
    // A viewer attaches an arrow to the event around the arrow's start, so the
    // arrow starts 1 ns before the event ends.
    const Span &from = *spans[flow.from];
    std::int64_t leaves = from.end > from.begin ? from.end - 1 : from.begin;
    arrow("s", flow, index, flow.from, leaves, "");
    arrow("f", flow, index, flow.to, spans[flow.to]->begin, ",\"bp\":\"e\"");
  }

  void arrow(const char *phase, const TraceFlow &flow, std::size_t id,
             std::size_t at, std::int64_t time, const char *more) {
    const TraceEvent &event = trace.events[at];
    add(fmt::format(
        R"({{"ph":"{}","name":{},"cat":{},"id":{},"pid":{},"tid":{},"ts":{}{}}})",
        phase, text(flow.name), text(flow.category), id, event.process,
        event.thread, micros(time), more));
  }

  const Trace &trace;
  std::vector<std::string> &errors;
  // Holds an entry per event. The entry is empty if the event is left out.
  std::vector<std::optional<Span>> spans;
  std::string out;
  std::size_t failures = 0;
  bool first = true;
};

std::map<std::pair<int, int>, std::string>
streamNames(const planner::StepResult &result) {
  std::map<std::pair<int, int>, std::set<int>> roles;
  std::map<std::pair<int, int>, std::string> names;
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    const StepTask &task = result.tasks[i];
    std::pair stream(task.stage, result.graph.streamOf(static_cast<int>(i)));
    if (task.onCompute)
      names[stream] = "compute";
    roles[stream].insert(static_cast<int>(task.role));
  }
  for (const auto &[stream, has] : roles) {
    std::string &name = names[stream];
    if (!name.empty())
      continue;
    for (int role : has)
      name += (name.empty() ? "" : ", ") +
              std::string(nameOf(planner::StepRole(role)));
  }
  return names;
}

} // namespace

std::string writeChromeTrace(const Trace &trace,
                             std::vector<std::string> &errors) {
  return Writer(trace, errors).run();
}

Trace traceOf(const planner::StepResult &result) {
  Trace trace;
  std::set<int> stages;
  for (const auto &[stream, name] : streamNames(result)) {
    if (stages.insert(stream.first).second)
      trace.labels.push_back({stream.first, TraceLabel::kWholeProcess,
                              fmt::format("stage {}", stream.first)});
    trace.labels.push_back({stream.first, stream.second, name});
  }
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    const StepTask &task = result.tasks[i];
    TraceEvent event;
    event.process = task.stage;
    event.thread = result.graph.streamOf(static_cast<int>(i));
    event.name = nameOf(task.role);
    if (task.microBatch >= 0)
      event.name += fmt::format(" {}", task.microBatch);
    event.category = nameOf(task.role);
    event.start = result.timeline.start[i].value;
    event.duration =
        result.timeline.finish[i].value - result.timeline.start[i].value;
    auto say = [&](const char *key, int value) {
      if (value >= 0)
        event.args.emplace_back(key, std::int64_t{value});
    };
    say("micro_batch", task.microBatch);
    say("chunk", task.chunk);
    say("segment", task.segment);
    trace.events.push_back(std::move(event));
    for (int before : result.graph.dependenciesOf(static_cast<int>(i)))
      if (result.tasks[static_cast<std::size_t>(before)].stage != task.stage)
        trace.flows.push_back(
            {nameOf(result.tasks[static_cast<std::size_t>(before)].role),
             "stages", static_cast<std::size_t>(before), i});
  }
  return trace;
}

} // namespace mtplan::tools

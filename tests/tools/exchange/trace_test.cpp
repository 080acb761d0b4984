//===- trace_test.cpp - Timelines for Perfetto ----------------------------===//

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/exchange/chrome_trace.h"

namespace {

using namespace mtplan::tools;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

// Returns faults of a trace: partly overlapping events of a thread, and arrows
// without an end.
std::vector<std::string> faultsOf(const std::string &text) {
  std::vector<std::string> faults;
  json root = json::parse(text);
  std::map<std::pair<int, int>,
           std::vector<std::pair<std::int64_t, std::int64_t>>>
      threads;
  std::map<int, int> arrows;
  auto nanos = [](const json &micros) {
    return std::llround(micros.get<double>() * 1000);
  };
  for (const json &event : root["traceEvents"]) {
    std::string phase = event["ph"];
    if (phase == "X")
      threads[{event["pid"], event["tid"]}].emplace_back(
          nanos(event["ts"]), nanos(event["ts"]) + nanos(event["dur"]));
    if (phase == "s")
      arrows[event["id"]] += 1;
    if (phase == "f")
      arrows[event["id"]] -= 1;
  }
  for (const auto &[id, open] : arrows)
    if (open != 0)
      faults.push_back("arrow " + std::to_string(id));
  for (auto &[thread, spans] : threads) {
    std::ranges::sort(spans, [](const auto &a, const auto &b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<std::int64_t> ends;
    for (auto [begin, end] : spans) {
      while (!ends.empty() && ends.back() <= begin)
        ends.pop_back();
      if (!ends.empty() && end > ends.back())
        faults.push_back("overlap at " + std::to_string(begin));
      ends.push_back(end);
    }
  }
  return faults;
}

TEST(ExchangeTrace, WritesAGoldenFile) {
  Trace trace;
  trace.labels = {{0, TraceLabel::kWholeProcess, "rank 0"}, {0, 1, "tp"}};
  trace.events = {{0,
                   0,
                   "h.0.mlp \"fc1\"",
                   "compute",
                   0.001,
                   0.0005,
                   {{"bytes", std::int64_t{4096}}, {"why", std::string("x")}}},
                  {1, 0, "recv", "p2p", 0.0015, 1e-9, {{"us", 0.25}}}};
  trace.flows = {{"send", "p2p", 0, 1}};
  std::vector<std::string> errors;
  EXPECT_EQ(writeChromeTrace(trace, errors),
            R"({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0"}},
{"ph":"M","name":"process_sort_index","pid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"tp"}},
{"ph":"M","name":"thread_sort_index","pid":0,"tid":1,"args":{"sort_index":1}},
{"ph":"X","name":"h.0.mlp \"fc1\"","cat":"compute","pid":0,"tid":0,"ts":1000.000,"dur":500.000,"args":{"bytes":4096,"why":"x"}},
{"ph":"X","name":"recv","cat":"p2p","pid":1,"tid":0,"ts":1500.000,"dur":0.001,"args":{"us":0.25}},
{"ph":"s","name":"send","cat":"p2p","id":0,"pid":0,"tid":0,"ts":1499.999},
{"ph":"f","name":"send","cat":"p2p","id":0,"pid":1,"tid":0,"ts":1500.000,"bp":"e"}
]}
)");
  EXPECT_THAT(errors, IsEmpty());
}

TEST(ExchangeTrace, TheCheckFindsFaults) {
  Trace trace;
  trace.events = {{0, 0, "a", "", 0, 2, {}}, {0, 0, "b", "", 1, 2, {}}};
  std::vector<std::string> errors;
  EXPECT_THAT(faultsOf(writeChromeTrace(trace, errors)),
              ElementsAre("overlap at 1000000000"));
  EXPECT_THAT(faultsOf(R"({"traceEvents":[{"ph":"s","id":3}]})"),
              ElementsAre("arrow 3"));
}

// Adjacent events do not overlap in the file after rounding.
TEST(ExchangeTrace, TouchingEventsStayApart) {
  std::mt19937_64 random(37);
  std::uniform_real_distribution<double> draw(1e-9, 1e-3);
  Trace trace;
  for (int process = 0; process < 3; ++process) {
    double now = 123.456;
    for (int i = 0; i < 5000; ++i) {
      double length = draw(random);
      trace.events.push_back({process, 0, "e", "c", now, length, {}});
      now += length;
    }
  }
  for (std::size_t i = 0; i < 5000; ++i)
    trace.flows.push_back({"f", "c", i, i + 5000});
  std::vector<std::string> errors;
  EXPECT_THAT(faultsOf(writeChromeTrace(trace, errors)), testing::SizeIs(0));
  EXPECT_THAT(errors, IsEmpty());
}

TEST(ExchangeTrace, LeavesOutInvalidEvents) {
  Trace trace;
  double nan = std::numeric_limits<double>::quiet_NaN();
  trace.events = {{0, 0, "a", "", nan, 1, {}},
                  {0, 0, "b", "", 0, -1, {}},
                  {0, 0, "bad \xff", "", 1e300, 1, {}},
                  {0, 0, "good \xff", "", 0, 1, {{"x", nan}}}};
  trace.flows = {{"f", "", 0, 3}, {"f", "", 3, 9}};
  std::vector<std::string> errors;
  std::string text = writeChromeTrace(trace, errors);
  EXPECT_THAT(faultsOf(text), IsEmpty());
  EXPECT_EQ(json::parse(text)["traceEvents"].size(), 1u);
  EXPECT_THAT(errors,
              ElementsAre("event 0 \"a\": starts at nan s and takes 1 s; left "
                          "out",
                          "event 1 \"b\": starts at 0 s and takes -1 s; left "
                          "out",
                          "event 2 \"bad \xff\": starts at 1e+300 s and takes "
                          "1 s; left out",
                          "arrow 0 \"f\": from event 0 to event 3, but there "
                          "are 4; left out",
                          "arrow 1 \"f\": from event 3 to event 9, but there "
                          "are 4; left out"));
}

} // namespace

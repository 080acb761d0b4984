//===- run_times.cpp - Step times over all ranks --------------------------===//

#include "tools/run/run_times.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/plan/instruction_class.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using namespace runtime;

MeanTimes meanTimesOf(World &world, const Plan &plan, const TrainTimes &mine) {
  const std::vector<std::string> names = classesOf(plan);
  std::vector<double> sums(names.size() + 1);
  const auto place = [&](const std::string &name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) -
                                    names.begin());
  };
  const std::size_t rest = place(kRest);
  sums.back() = sums[rest] = mine.seconds;
  for (const InstructionTime &time : mine.instructions)
    if (const std::size_t at =
            place(time.instruction ? classOf(plan, *time.instruction)
                                   : kGradientNorm);
        at != rest) {
      sums[at] += time.seconds;
      sums[rest] -= time.seconds;
    }
  std::vector<double> all(sums.size());
  world.allRanks("times")->allReduce(
      "times of the run", sums.data(), all.data(),
      {ElementType::f64, 1, static_cast<std::int64_t>(sums.size())},
      Reduction::sum);
  const double share =
      1.0 / (static_cast<double>(world.size()) *
             static_cast<double>(std::max<std::int64_t>(1, mine.steps)));
  MeanTimes means;
  means.steps = mine.steps;
  means.step = all.back() * share;
  for (std::size_t i = 0; i < names.size(); ++i)
    means.classes.emplace_back(names[i], all[i] * share);
  return means;
}

Traces gatherTraces(World &world, const std::vector<InstructionRun> &mine) {
  static_assert(std::is_trivially_copyable_v<InstructionRun>);
  constexpr int kChannel =
      0; // all messages of the step have arrived, so the channel is free
  constexpr const char *kLabel = "trace";
  auto count = static_cast<std::int64_t>(mine.size());
  const auto bytesOf = [](std::int64_t number) {
    return number * static_cast<std::int64_t>(sizeof(InstructionRun));
  };
  if (world.rank() != 0) {
    world.send(kLabel, &count, sizeof count, 0, kChannel);
    world.send(kLabel, mine.data(), bytesOf(count), 0, kChannel);
    return {};
  }
  Traces all{mine};
  for (int rank = 1; rank < world.size(); ++rank) {
    world.receive(kLabel, &count, sizeof count, rank, kChannel);
    all.emplace_back(static_cast<std::size_t>(count));
    world.receive(kLabel, all.back().data(), bytesOf(count), rank, kChannel);
  }
  return all;
}

std::string tableOf(const MeanTimes &times, const Prediction *predicted) {
  Table table;
  table.add({fmt::format("a step, mean of {} and all ranks", times.steps),
             "measured", "share", predicted ? "predicted" : "",
             predicted ? "measured / predicted" : ""});
  const auto add = [&](const std::string &name, double measured,
                       double expected) {
    std::vector<std::string> row{
        name, timeText({measured}),
        percentText(times.step > 0.0 ? measured / times.step : 0.0)};
    if (predicted) {
      row.push_back(expected > 0.0 ? timeText({expected}) : "-");
      if (expected > 0.0)
        row.push_back(fmt::format("{:.2f}", measured / expected));
    }
    table.add(std::move(row));
  };
  const auto expectedOf = [&](const std::string &name) {
    double seconds = 0.0;
    if (predicted)
      for (const auto &[known, value] : predicted->classes)
        seconds += known == name ? value : 0.0;
    return seconds;
  };
  for (const auto &[name, measured] : times.classes)
    if (const double expected = expectedOf(name);
        measured > 0.0 || expected > 0.0)
      add("  " + name, measured, expected);
  add("  step", times.step, predicted ? predicted->step : 0.0);
  return table.print("");
}

} // namespace mtplan::tools

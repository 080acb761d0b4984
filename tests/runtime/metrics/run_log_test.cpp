//===- run_log_test.cpp - The metrics files of a run ----------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/metrics/run_log.h"
#include "runtime/metrics/step_record.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StepRecord stepNumber(std::int64_t step) {
  StepRecord record;
  record.step = step;
  record.loss = 2.5;
  return record;
}

TEST(RunLog, WritesLinesAndEvents) {
  TestFolder folder;
  RunLogOptions options;
  options.linesPath = folder / "m.jsonl";
  options.eventsFolder = folder / "tb/run";
  RunLog log(options);
  EXPECT_THAT(log.write(stepNumber(1), 1.0), IsEmpty());
  EXPECT_THAT(log.write(stepNumber(2), 2.0), IsEmpty());
  EXPECT_THAT(log.problems(), IsEmpty());
  EXPECT_EQ(readFile(options.linesPath),
            jsonLine(stepNumber(1)) + jsonLine(stepNumber(2)));
  std::vector<std::string> events;
  for (const auto &entry :
       std::filesystem::directory_iterator(options.eventsFolder))
    events.push_back(entry.path().string());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0], testing::HasSubstr("/events.out.tfevents."));
  // The version record, with the time of the start, comes first.
  EXPECT_EQ(readFile(events[0]).substr(versionRecord(0).size()),
            stepRecords(1.0, stepNumber(1)) + stepRecords(2.0, stepNumber(2)));
}

TEST(RunLog, ResumedRunKeepsEarlierLines) {
  TestFolder folder;
  RunLogOptions options;
  options.linesPath = folder / "m.jsonl";
  {
    RunLog log(options);
    for (std::int64_t step : {1, 2, 3})
      log.write(stepNumber(step), 0);
  }
  options.resumedAt = 2;
  RunLog(options).write(stepNumber(3), 0);
  EXPECT_EQ(readFile(options.linesPath), jsonLine(stepNumber(1)) +
                                             jsonLine(stepNumber(2)) +
                                             jsonLine(stepNumber(3)));
  options.resumedAt = 0;
  RunLog(options).write(stepNumber(1), 0);
  EXPECT_EQ(readFile(options.linesPath), jsonLine(stepNumber(1)));
}

TEST(RunLog, WarnsOnceAndSumsUp) {
  RunLogOptions options;
  options.linesPath = "/dev/full";
  RunLog log(options);
  EXPECT_THAT(log.write(stepNumber(1), 0),
              ElementsAre("/dev/full: 1 record lost: No space left on device; "
                          "training goes on"));
  EXPECT_THAT(log.write(stepNumber(2), 0), IsEmpty());
  EXPECT_THAT(log.problems(),
              ElementsAre("/dev/full: 2 records lost: No space left on "
                          "device"));
}

TEST(RunLog, MustBeWritableAtTheStart) {
  TestFolder folder;
  RunLogOptions options;
  options.eventsFolder = writeFile(folder / "file", "x") + "/tb";
  EXPECT_EQ(messageOf<std::runtime_error>([&] { RunLog log(options); }),
            options.eventsFolder + ": cannot be made: Not a directory");
}

} // namespace
} // namespace mtplan::runtime

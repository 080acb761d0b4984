//===- step_times_test.cpp - Times of the parts of a step -----------------===//
//
// Uses a queue with simulated time. A part is an instruction or another piece
// of a step; a mark is a reading of the stream's clock.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/executor/step_times.h"

namespace mtplan::runtime {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr double kMark = 0.25; ///< seconds that a mark takes
constexpr int kTurn = 1;       ///< number of the event between two streams

/// Simulates two concurrent streams, each with a time of its own.
class TwoStreams final : public Queue {
public:
  void select(int stream) override { selected = stream; }
  void record(int event) override { happens[event] = ends[selected]; }
  void wait(int event) override {
    ends[selected] = std::max(ends[selected], happens[event]);
  }
  void finish() override {
    ++finished;
    ends[0] = ends[1] = std::max(ends[0], ends[1]);
  }
  std::unique_ptr<StreamClock> clock() override {
    return std::make_unique<Clock>(*this);
  }

  void give(double seconds) { ends[selected] += seconds; }

  int finished = 0;
  std::size_t marks = 0; ///< largest number of marks at a time
  int dear = 0;          ///< number of the next marks that take a second

private:
  class Clock final : public StreamClock {
  public:
    explicit Clock(TwoStreams &theStreams) : streams(theStreams) {}
    int mark() override {
      streams.give(streams.dear > 0 ? 1.0 : kMark);
      --streams.dear;
      moments.push_back(streams.ends[streams.selected]);
      streams.marks = std::max(streams.marks, moments.size());
      return static_cast<int>(moments.size()) - 1;
    }
    double between(int from, int to) const override {
      return moments.at(static_cast<std::size_t>(to)) -
             moments.at(static_cast<std::size_t>(from));
    }
    void clear() override { moments.clear(); }

  private:
    TwoStreams &streams;
    std::vector<double> moments;
  };

  std::vector<double> ends{0.0, 5.0}, happens{0.0, 0.0};
  int selected = 0;
};

class StepTimesTest : public testing::Test {
protected:
  /// Runs a part of `seconds` s on `stream`, after a part on stream `from`.
  void run(int from, int stream, double seconds, double &spent) {
    InstructionRun what;
    what.instruction = ++number;
    times.switchStream(from, stream);
    queue.select(stream);
    times.start();
    queue.give(seconds);
    times.stop(spent, &what);
  }

  TwoStreams queue;
  StepTimes times{queue, kTurn};
  std::vector<InstructionRun> trace;
  int number = 0;
};

// The time that a mark takes is not counted as time of a part.
TEST_F(StepTimesTest, TimeOfMarksIsNotCounted) {
  double one = 1.0, other = 0.0;
  times.begin(true, nullptr);
  run(0, 0, 3.0, one);
  run(0, 0, 0.5, other);
  run(0, 0, 4.0, one);
  EXPECT_EQ(one, 1.0); // the host has not waited yet
  times.end();
  EXPECT_EQ(one, 8.0);
  EXPECT_EQ(other, 0.5);
}

// Neither the time of an empty queue nor that of a new mark is counted.
TEST_F(StepTimesTest, SlowMarksAreNotSubtractedFromOtherParts) {
  double first = 0.0, others = 0.0;
  queue.dear = 3; // at the beginning of the step and around the first part
  times.begin(true, nullptr);
  run(0, 0, 1.0, first);
  for (int i = 0; i < 8; ++i)
    run(0, 0, 1.0, others);
  times.end();
  EXPECT_GT(first, 1.0);
  EXPECT_EQ(others, 8.0);
}

TEST_F(StepTimesTest, TimesAreNotNegative) {
  double idle = 0.0;
  times.begin(true, &trace);
  run(0, 0, -0.125, idle);
  run(0, 0, -0.125, idle);
  times.end();
  EXPECT_EQ(idle, 0.0);
}

TEST_F(StepTimesTest, StreamsTakeTurns) {
  double first = 0.0, second = 0.0;
  times.begin(true, &trace);
  run(0, 1, 3.0, first);
  run(1, 0, 1.0, second);
  run(0, 1, 1.0, first);
  times.end();
  EXPECT_EQ(first, 4.0);
  ASSERT_THAT(trace, SizeIs(3));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(trace[i].instruction, i + 1);
  EXPECT_GE(trace[1].start, trace[0].end);
  EXPECT_GE(trace[2].start, trace[1].end);
  EXPECT_NEAR(trace[0].end - trace[0].start, 3.0, 1e-6);
}

TEST_F(StepTimesTest, SkippedPartsHaveNoTime) {
  double idle = 0.0, norm = 0.0;
  InstructionRun what;
  times.begin(true, &trace);
  run(0, 0, 3.0, norm);
  times.pass(idle, &what);
  times.start();
  queue.give(2.0);
  times.stop(norm, nullptr);
  times.end();
  EXPECT_EQ(idle, 0.0);
  EXPECT_EQ(norm, 5.0);
  ASSERT_THAT(trace, SizeIs(2)); // the norm has no instruction
  EXPECT_EQ(trace[1].start, trace[1].end);
  EXPECT_GE(trace[1].start, trace[0].end);
}

// The host waits after kMost parts, and later parts reuse their marks.
TEST_F(StepTimesTest, NumberOfMarksIsLimited) {
  constexpr std::size_t kParts = 3 * StepTimes::kMost;
  double spent = 0.0;
  times.begin(true, nullptr);
  const int before = queue.finished;
  for (std::size_t i = 0; i < kParts; ++i)
    run(0, 0, 1.0, spent);
  times.end();
  EXPECT_EQ(spent, static_cast<double>(kParts));
  EXPECT_EQ(queue.finished - before, 4);
  EXPECT_LE(queue.marks, 2 * StepTimes::kMost + 1);
}

TEST_F(StepTimesTest, UntimedStepsHaveNoTimes) {
  double spent = 0.0;
  times.begin(true, &trace);
  times.end();
  const int before = queue.finished;
  const std::size_t marks = queue.marks;
  times.begin(false, &trace);
  run(0, 1, 3.0, spent);
  times.pass(spent, nullptr);
  times.end();
  EXPECT_EQ(spent, 0.0);
  EXPECT_THAT(trace, IsEmpty());
  EXPECT_EQ(queue.finished, before);
  EXPECT_EQ(queue.marks, marks);
}

// Remains of an earlier step, such as one that threw, are not counted.
TEST_F(StepTimesTest, BeginDropsEarlierTimes) {
  double spent = 0.0;
  times.begin(true, &trace);
  run(0, 0, 3.0, spent);
  times.begin(true, &trace);
  run(0, 0, 2.0, spent);
  run(0, 0, 1.0, spent);
  times.end();
  EXPECT_EQ(spent, 3.0);
  EXPECT_THAT(trace, SizeIs(2));
}

} // namespace
} // namespace mtplan::runtime

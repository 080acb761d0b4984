//===- stream_order_test.cpp - Forks and joins of streams -----------------===//

#include <string>

#include <gtest/gtest.h>

#include "runtime/executor/stream_order.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::runtime {
namespace {

/// Records its calls: "s1" selects stream 1, "r2" records event 2, and "w2"
/// waits for event 2.
class RecordingQueue final : public Queue {
public:
  void select(int stream) override { note('s', stream); }
  void record(int event) override { note('r', event); }
  void wait(int event) override { note('w', event); }
  std::string takeText() { return std::exchange(text, {}); }

private:
  void note(char what, int number) {
    text += (text.empty() ? "" : " ") + (what + std::to_string(number));
  }
  std::string text;
};

/// Returns a program of a kernel on stream 0 and an all-reduce on stream 1,
/// which waits for the kernel. Events 2 and 3 are the ends of streams 0 and 1.
Program program(bool overlapped) {
  const Plan plan = twoReplicas();
  Program made{"p", {}};
  made.instructions = {plan.stages[0].programs[1].instructions[0],
                       plan.stages[0].programs[2].instructions[0]};
  made.instructions[1].waits = {0};
  made.instructions[1].overlapped = overlapped;
  return made;
}

TEST(StreamOrder, ARunJoinsWhatItForked) {
  const Plan plan = twoReplicas();
  const StreamOrder order(plan.stages[0], program(false));
  RecordingQueue queue;
  order.begin(queue);
  EXPECT_EQ(queue.takeText(), "s0 r2 s1 w2");
  order.end(queue);
  EXPECT_EQ(queue.takeText(), "s1 r3 s0 w3");
  order.endOverlap(queue);
  EXPECT_EQ(queue.takeText(), "s0");
  EXPECT_FALSE(order.overlaps());
}

TEST(StreamOrder, TheScheduleJoinsWhatIsOverlapped) {
  const Plan plan = twoReplicas();
  const StreamOrder order(plan.stages[0], program(true));
  RecordingQueue queue;
  order.begin(queue);
  EXPECT_EQ(queue.takeText(), "s0 r2 s1 w2"); // stream 1 waits for earlier work
  order.end(queue);
  EXPECT_EQ(queue.takeText(), "s0");
  order.endOverlap(queue);
  EXPECT_EQ(queue.takeText(), "s1 r3 s0 w3");
  EXPECT_TRUE(order.overlaps());
}

// A stream is joined if any instruction on it is not overlapped.
TEST(StreamOrder, StreamWithLaterWorkIsJoined) {
  const Plan plan = twoReplicas();
  Program both = program(true);
  both.instructions.push_back(both.instructions[1]);
  both.instructions[2].overlapped = false;
  const StreamOrder order(plan.stages[0], both);
  RecordingQueue queue;
  order.end(queue);
  EXPECT_EQ(queue.takeText(), "s1 r4 s0 w4");
  EXPECT_FALSE(order.overlaps());
}

} // namespace
} // namespace mtplan::runtime

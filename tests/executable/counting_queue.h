//===- counting_queue.h - A queue whose clock counts ------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_COUNTING_QUEUE_H
#define MTPLAN_TESTS_EXECUTABLE_COUNTING_QUEUE_H

#include <memory>

#include "runtime/backend/queue.h"

namespace mtplan::runtime {

/// A queue whose clock returns how often it was read.
class Counting final : public Queue {
public:
  std::unique_ptr<StreamClock> clock() override {
    return std::make_unique<Counter>(marks);
  }
  double now() const { return marks; }

private:
  class Counter final : public StreamClock {
  public:
    explicit Counter(int &theMarks) : marks(theMarks) {}
    int mark() override { return ++marks; }
    double between(int from, int to) const override { return to - from; }
    void clear() override {}

  private:
    int &marks;
  };

  int marks = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_EXECUTABLE_COUNTING_QUEUE_H

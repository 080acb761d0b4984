//===- batching_backend.h - Backends that reverse batches -------*- C++ -*-===//
//
// Plans run on backends that compute the kernels of a batch in reverse order,
// because no result may depend on the order within a batch.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EXECUTABLE_BATCHING_BACKEND_H
#define MTPLAN_TESTS_EXECUTABLE_BATCHING_BACKEND_H

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/backend/kernel.h"
#include "runtime/backend/queue.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/run_plan.h"
#include "tests/executable/run_process.h"

namespace mtplan {

/// Provides a queue whose clock returns how often it was read.
class CountingQueue final : public runtime::Queue {
public:
  std::unique_ptr<runtime::StreamClock> clock() override {
    return std::make_unique<Counter>(marks);
  }
  double now() const { return marks; }

private:
  class Counter final : public runtime::StreamClock {
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

/// Records the name and the number of runs of every batch that a rank prepares.
class BatchLog {
public:
  using Batch = std::pair<std::string, std::int64_t>;

  void add(const std::string &name, std::size_t runs) {
    std::scoped_lock lock(mutex);
    batches.emplace_back(name, static_cast<std::int64_t>(runs));
  }
  /// Removes and returns all batches.
  std::vector<Batch> take() {
    std::scoped_lock lock(mutex);
    return std::exchange(batches, {});
  }
  /// Removes the batches of this name, and returns their numbers of runs.
  std::vector<std::int64_t> take(const std::string &name) {
    std::scoped_lock lock(mutex);
    std::vector<std::int64_t> runs;
    std::erase_if(batches, [&](const Batch &batch) {
      if (batch.first == name)
        runs.push_back(batch.second);
      return batch.first == name;
    });
    return runs;
  }

private:
  std::mutex mutex;
  std::vector<Batch> batches;
};

inline BatchLog &batchLog() {
  static BatchLog log;
  return log;
}

/// Returns the callback that each batch calls before it runs; empty: none.
inline std::function<void()> &onRun() {
  static std::function<void()> call;
  return call;
}

/// Runs a batch after a call of onRun().
class LoggedBatch : public runtime::Kernel {
public:
  void run(const runtime::Invocation &call) final {
    if (onRun())
      onRun()();
    runBatch(call);
  }

private:
  virtual void runBatch(const runtime::Invocation &call) = 0;
};

/// Runs kernels on one CPU thread with a counting queue. Derived backends
/// prepare batches.
class BatchingBackend : public runtime::Backend {
public:
  runtime::Queue &queue() override { return order; }
  std::unique_ptr<runtime::Kernel>
  prepare(const runtime::KernelSpec &spec) override {
    return kernels->prepare(spec);
  }

  CountingQueue order;

protected:
  const std::unique_ptr<runtime::Backend> kernels = runtime::makeCpuBackend(1);
};

/// Compiles an example and returns its plan.
inline runtime::Plan examplePlan(const std::string &model,
                                 const std::vector<std::string> &flags) {
  const TestFolder folder;
  EXPECT_EQ(compileExample(model, folder / "run", flags), "");
  return runtime::readPlanFile(folder / "run/plan.json");
}

/// Runs two steps of the plan on a CPU backend without batches and on backends
/// from `makeBatching`, and expects equal results. Afterwards, batchLog() has
/// the batches of the second run.
inline void expectSameBits(const runtime::Plan &plan,
                           const MakeBackend &makeBatching) {
  constexpr int kSteps = 2;
  const ir::RunOptions options;
  const Gathered expected = runPlan(
      plan, options, [] { return runtime::makeCpuBackend(1); }, 0.0, kSteps);
  batchLog().take();
  const Gathered ran = runPlan(plan, options, makeBatching, 0.0, kSteps);
  std::string worst;
  EXPECT_EQ(worstDifference(ran, expected, worst), 0.0) << worst;
  EXPECT_EQ(ran.gradientNorm, expected.gradientNorm);
}

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_BATCHING_BACKEND_H

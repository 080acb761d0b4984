//===- workers_test.cpp - A rank's threads ----------------------*- C++ -*-===//

#include <chrono>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "runtime/cpu/context.h"

namespace mtplan::runtime::cpu {
namespace {

TEST(Workers, DoEveryTaskOnce) {
  for (int threads : {1, 2, 5}) {
    Workers workers(threads);
    // In 300 jobs, some thread probably still runs a job when the next one
    // starts.
    for (std::uint32_t tasks = 0; tasks < 300; ++tasks) {
      std::vector<std::atomic<int>> done(tasks);
      workers.run(tasks, [&](std::int64_t task, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        done[static_cast<std::size_t>(task)].fetch_add(1);
      });
      for (const std::atomic<int> &times : done)
        EXPECT_EQ(times, 1) << threads << " threads, " << tasks << " tasks";
    }
  }
}

TEST(Workers, WakeAfterSleep) {
  Workers workers(3);
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> met{0};
    // The job ends only if three threads run it concurrently.
    workers.run(3, [&](std::int64_t, int) {
      met.fetch_add(1);
      while (met < 3)
        std::this_thread::yield();
    });
    EXPECT_EQ(met, 3);
  }
}

TEST(Workers, RethrowAndContinue) {
  Workers workers(2);
  for (std::int64_t bad : {0, 7, 15}) {
    std::atomic<int> done{0};
    try {
      workers.run(16, [&](std::int64_t task, int) {
        if (task == bad)
          throw std::runtime_error("task " + std::to_string(task));
        done.fetch_add(1);
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error &error) {
      EXPECT_EQ(error.what(), "task " + std::to_string(bad));
    }
    EXPECT_EQ(done, 15);
  }
  std::atomic<int> done{0};
  workers.run(4, [&](std::int64_t, int) { done.fetch_add(1); });
  EXPECT_EQ(done, 4);
}

} // namespace
} // namespace mtplan::runtime::cpu

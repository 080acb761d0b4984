//===- timeline_test.cpp - Streams, dependencies, shared links ---===//

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/simulate/timeline.h"

namespace mtplan::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Job {
  int stream = 0;
  double duration = 0.0;
  std::vector<int> needs;
  int link = kNoLink;
};

TaskGraph graphOf(const std::vector<Job> &jobs) {
  TaskGraph graph;
  for (const Job &job : jobs)
    graph.add(job.stream, {job.duration}, job.needs, job.link);
  return graph;
}

struct Run {
  std::vector<double> start, finish;
  std::vector<int> stuck;
};

/// Simulates the definition of a timeline event by event: every task that can
/// start starts, and each of k tasks on a link progresses at 1/k until the next
/// event.
Run definition(const std::vector<Job> &jobs) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::size_t n = jobs.size();
  Run run{std::vector<double>(n, -1.0), std::vector<double>(n, -1.0), {}};
  std::vector<double> left(n);
  for (std::size_t i = 0; i < n; ++i)
    left[i] = jobs[i].duration;
  auto canStart = [&](std::size_t i) {
    bool can = run.start[i] < 0.0;
    for (int need : jobs[i].needs)
      can &= run.finish[need] >= 0.0;
    for (std::size_t j = 0; j < i; ++j)
      can &= jobs[j].stream != jobs[i].stream || run.finish[j] >= 0.0;
    return can;
  };
  auto isRunning = [&](std::size_t i) {
    return run.start[i] >= 0.0 && run.finish[i] < 0.0;
  };
  for (double now = 0.0;;) {
    for (std::size_t i = 0; i < n; ++i)
      if (canStart(i))
        run.start[i] = now;
    std::vector<double> share(n, 1.0);
    double next = kNever;
    for (std::size_t i = 0; i < n; ++i) {
      if (!isRunning(i))
        continue;
      if (jobs[i].link >= 0) {
        share[i] = 0.0;
        for (std::size_t j = 0; j < n; ++j)
          share[i] += isRunning(j) && jobs[j].link == jobs[i].link ? 1.0 : 0.0;
      }
      next = std::min(next, left[i] * share[i]);
    }
    if (next == kNever)
      break;
    now += next;
    for (std::size_t i = 0; i < n; ++i)
      if (isRunning(i)) {
        left[i] -= next / share[i];
        if (left[i] < 1e-12)
          run.finish[i] = now;
      }
  }
  for (std::size_t i = 0; i < n; ++i)
    if (run.start[i] < 0.0)
      run.stuck.push_back(int(i));
  return run;
}

/// Returns tasks with whole durations, so that many events coincide. In about
/// one of ten graphs, tasks may also depend on later tasks.
std::vector<Job> randomJobs(std::mt19937_64 &random, int links) {
  int n = 1 + int(random() % 30);
  int streams = 1 + int(random() % 6);
  bool anyOrder = random() % 10 == 0;
  std::vector<Job> jobs(n);
  for (int i = 0; i < n; ++i) {
    jobs[i].stream = int(random() % streams);
    jobs[i].duration = double(random() % 6);
    if (links > 0 && random() % 2 == 0)
      jobs[i].link = int(random() % links);
    int range = anyOrder ? n : i;
    for (int k = int(random() % 3); k > 0 && range > 0; --k)
      jobs[i].needs.push_back(int(random() % range));
  }
  return jobs;
}

/// Renumbers tasks so that some come before the tasks that they need, and keeps
/// the order in each stream. The timeline is the same, but timelineOf()
/// computes it by another code path.
std::vector<Job> interleavedByStream(const std::vector<Job> &jobs,
                                     std::vector<int> &newName) {
  std::vector<int> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int a, int b) { return jobs[a].stream > jobs[b].stream; });
  newName.resize(jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    newName[order[i]] = int(i);
  std::vector<Job> renamed;
  for (int job : order) {
    renamed.push_back(jobs[job]);
    for (int &need : renamed.back().needs)
      need = newName[need];
  }
  return renamed;
}

void expectEqual(const Timeline &timeline, const Run &run, int round) {
  ASSERT_EQ(timeline.stuck, run.stuck) << "round " << round;
  double end = 0.0;
  for (std::size_t i = 0; i < run.start.size(); ++i) {
    if (run.start[i] < 0.0)
      continue;
    EXPECT_NEAR(timeline.start[i].value, run.start[i], 1e-9)
        << "round " << round << " task " << i;
    EXPECT_NEAR(timeline.finish[i].value, run.finish[i], 1e-9)
        << "round " << round << " task " << i;
    end = std::max(end, run.finish[i]);
  }
  EXPECT_NEAR(timeline.end.value, end, 1e-9) << "round " << round;
}

TEST(Timeline, StreamsAreQueues) {
  // Stream 0 has two tasks. Stream 1 starts with a task that needs the second
  // task of stream 0.
  TaskGraph graph =
      graphOf({{0, 2, {}}, {0, 3, {}}, {1, 1, {1}}, {1, 4, {}}, {2, 7, {}}});
  Timeline timeline = timelineOf(graph);
  EXPECT_THAT(timeline.start, ElementsAre(Seconds{0}, Seconds{2}, Seconds{5},
                                          Seconds{6}, Seconds{0}));
  EXPECT_EQ(timeline.end, Seconds{10});
  EXPECT_THAT(timeline.stuck, IsEmpty());
}

TEST(Timeline, LinksAreShared) {
  // A task of 4 s is alone on the link until 2 s, then shares it with a task of
  // 1 s, which ends at 4 s. The first task then has 1 s left.
  Timeline timeline = timelineOf(
      graphOf({{0, 4, {}, 0}, {1, 2, {}}, {1, 1, {}, 0}, {2, 4, {}, 1}}));
  EXPECT_THAT(timeline.finish,
              ElementsAre(Seconds{5}, Seconds{2}, Seconds{4}, Seconds{4}));
}

// If two streams use a link, but never at once, times are exactly those without
// the link.
TEST(Timeline, TakingTurnsOnALinkIsExact) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> duration(0.0, 1.0);
  TaskGraph graph, free;
  for (int i = 0; i < 1000; ++i) {
    Seconds seconds{duration(random)};
    graph.add(i % 2, seconds, {i - 1}, i % 3 == 0 ? kNoLink : 0);
    free.add(i % 2, seconds, {i - 1});
  }
  EXPECT_TRUE(graph.sharesLinks());
  EXPECT_EQ(timelineOf(graph).finish, timelineOf(free).finish);
}

TEST(Timeline, OneStreamDoesNotShareWithItself) {
  TaskGraph graph = graphOf({{0, 4, {}, 0}, {0, 1, {}, 0}, {1, 1, {}, 1}});
  EXPECT_FALSE(graph.sharesLinks());
  EXPECT_EQ(timelineOf(graph).end, Seconds{5});
}

TEST(Timeline, EqualsTheDefinition) {
  std::mt19937_64 random(1);
  int shared = 0, stuck = 0, outOfOrder = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<Job> jobs = randomJobs(random, round % 4);
    TaskGraph graph = graphOf(jobs);
    Timeline timeline = timelineOf(graph);
    expectEqual(timeline, definition(jobs), round);
    shared += graph.sharesLinks() ? 1 : 0;
    stuck += timeline.stuck.empty() ? 0 : 1;

    std::vector<int> newName;
    std::vector<Job> renamed = interleavedByStream(jobs, newName);
    TaskGraph other = graphOf(renamed);
    expectEqual(timelineOf(other), definition(renamed), round);
    outOfOrder += other.isInOrder() ? 0 : 1;
  }
  EXPECT_GT(shared, 500);
  EXPECT_GT(stuck, 100);
  EXPECT_GT(outOfOrder, 500);
}

TEST(Timeline, DeadlocksAreNamed) {
  // Tasks 1 and 2 wait for each other, and 3 is queued behind 2.
  Timeline timeline = timelineOf(
      graphOf({{0, 1, {}}, {0, 1, {2}}, {1, 1, {1}}, {1, 1, {}}, {2, 5, {}}}));
  EXPECT_THAT(timeline.stuck, ElementsAre(1, 2, 3));
  EXPECT_EQ(timeline.end, Seconds{5});
  EXPECT_EQ(timeline.start[3], Seconds{});
}

TEST(Timeline, ReusedMemoryChangesNothing) {
  std::mt19937_64 random(2);
  Timeline timeline;
  for (int round = 0; round < 200; ++round) {
    std::vector<Job> jobs = randomJobs(random, round % 3);
    timelineOf(graphOf(jobs), timeline);
    Timeline fresh = timelineOf(graphOf(jobs));
    EXPECT_EQ(timeline.start, fresh.start);
    EXPECT_EQ(timeline.finish, fresh.finish);
    EXPECT_EQ(timeline.end, fresh.end);
    EXPECT_EQ(timeline.stuck, fresh.stuck);
  }
}

TEST(Timeline, LongerTasksNeverEndItSoonerWithoutSharing) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<Job> jobs = randomJobs(random, 0);
    double before = timelineOf(graphOf(jobs)).end.value;
    for (Job &job : jobs) {
      job.duration += 1.5;
      EXPECT_GE(timelineOf(graphOf(jobs)).end.value, before);
      job.duration -= 1.5;
    }
  }
}

// The test above does not hold for shared links. Task 0 delays a transfer that
// no task waits for, so the other transfer is alone on the link and ends
// sooner.
TEST(Timeline, SharingCanRewardALongerTask) {
  auto end = [](double first) {
    return timelineOf(
               graphOf(
                   {{0, first, {}}, {1, 2, {0}, 0}, {2, 2, {}, 0}, {2, 4, {}}}))
        .end.value;
  };
  EXPECT_EQ(end(0.0), 8.0); // both transfers take 4 s
  EXPECT_EQ(end(2.0), 6.0);
}

} // namespace
} // namespace mtplan::planner

//===- on_threads.h - Independent work on several threads -------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_ON_THREADS_H
#define MTPLAN_PLANNER_SEARCH_ON_THREADS_H

#include <algorithm>
#include <cstddef>
#include <future>
#include <vector>

namespace mtplan::planner {

/// Calls `work(i, thread)` for every i below `count` on `threads` threads,
/// including the caller's. Thread i % threads runs item i, in ascending order,
/// so that the contents of a cache per thread are deterministic.
template <typename Work>
void onThreads(std::size_t threads, std::size_t count, Work work) {
  auto share = [&](std::size_t thread) {
    for (std::size_t i = thread; i < count; i += threads)
      work(i, thread);
  };
  std::vector<std::future<void>> others;
  for (std::size_t thread = 1; thread < std::min(threads, count); ++thread)
    others.push_back(std::async(std::launch::async, share, thread));
  share(0);
  for (std::future<void> &other : others)
    other.get();
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_ON_THREADS_H

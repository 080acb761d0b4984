//===- together.h - A little work at once -----------------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_TOGETHER_H
#define MTPLAN_PLANNER_SEARCH_TOGETHER_H

#include <cstddef>
#include <future>
#include <vector>

namespace mtplan::planner {

/// Calls `work` with every number below `count`, each on a thread of its own,
/// the first on the caller's.
template <typename Work> void together(std::size_t count, Work work) {
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < count; ++i)
    others.push_back(std::async(std::launch::async, work, i));
  if (count > 0)
    work(0);
  for (std::future<void> &other : others)
    other.get();
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_TOGETHER_H

//===- pareto_test.cpp - Fronts of time and memory ------------------===//

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "planner/solve/pareto.h"

namespace mtplan::planner {
namespace {

/// Returns points of small integers, so that ties of every kind are common.
std::vector<ParetoPoint> randomPoints(std::mt19937_64 &random, int count,
                                      int &made) {
  std::uniform_int_distribution<int> value(0, 20);
  std::vector<ParetoPoint> points;
  points.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    points.push_back({double(value(random)), double(value(random)),
                      double(value(random)), made++, -1});
  return points;
}

/// Returns the front by definition: a point stays unless another is no worse in
/// both costs and better in one, or equal and earlier.
std::vector<int> undominated(const std::vector<ParetoPoint> &points) {
  std::vector<ParetoPoint> kept;
  for (const ParetoPoint &p : points) {
    bool stays = true;
    for (const ParetoPoint &q : points) {
      bool atLeast = q.time <= p.time && q.memory <= p.memory;
      bool equal = q.time == p.time && q.memory == p.memory;
      stays &= !(atLeast && (!equal || q.left < p.left));
    }
    if (stays)
      kept.push_back(p);
  }
  std::ranges::sort(kept, {}, &ParetoPoint::memory);
  std::vector<int> names;
  names.reserve(kept.size());
  for (const ParetoPoint &p : kept)
    names.push_back(p.left);
  return names;
}

std::vector<int> namesOf(const std::vector<ParetoPoint> &points) {
  std::vector<int> names;
  names.reserve(points.size());
  for (const ParetoPoint &p : points)
    names.push_back(p.left);
  return names;
}

TEST(Pareto, KeepsNondominatedPoints) {
  std::mt19937_64 random(1);
  // From 256 points on, keepPareto() drops most of them before it sorts.
  for (int count : {0, 1, 2, 7, 40, 255, 256, 300, 1000})
    for (int round = 0; round < 20; ++round) {
      int made = 0;
      std::vector<ParetoPoint> points = randomPoints(random, count, made);
      std::vector<int> expected = undominated(points);
      keepPareto(points, 0.0);
      EXPECT_EQ(namesOf(points), expected) << count << " points";
    }
}

TEST(Pareto, MergedFrontsKeepTheSame) {
  std::mt19937_64 random(2);
  FrontMerger merger;
  for (int fronts = 0; fronts < 20; ++fronts)
    for (int round = 0; round < 20; ++round) {
      int made = 0;
      std::vector<ParetoPoint> all, front, merged;
      for (int f = 0; f < fronts; ++f) {
        front = randomPoints(random, 1 + f % 7, made);
        keepPareto(front, 0.0);
        all.insert(all.end(), front.begin(), front.end());
        merger.add(front);
        EXPECT_TRUE(front.empty());
      }
      merger.take(0.0, merged);
      EXPECT_EQ(namesOf(merged), undominated(all)) << fronts << " fronts";
    }
}

TEST(Pareto, SmallGainsDoNotCount) {
  std::vector<ParetoPoint> front = {{10.0, 1.0}, {9.5, 2.0}, {8.0, 3.0}};
  std::vector<ParetoPoint> points = front, merged;
  keepPareto(points, 1.0);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].memory, 3.0);
  FrontMerger merger;
  merger.add(front);
  merger.take(1.0, merged);
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[1].memory, 3.0);
}

} // namespace
} // namespace mtplan::planner

//===- groups_test.cpp - Process groups equal published lists -------------===//
//
// The labels M1 to M3 and K12 are those of docs/closed-forms.md.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "planner/integers.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::planner {
namespace {

using Groups = std::vector<std::vector<int>>;

/// Returns the mesh of all ranks: the axis "pp", then the axes of one stage's
/// mesh.
Mesh worldMeshOf(const Parallelism &config) {
  Mesh mesh = meshOf(config);
  mesh.axes.insert(mesh.axes.begin(), {"pp", config.pp});
  return mesh;
}

/// Returns the distances from a group's first rank to all of its members,
/// ascending.
std::vector<int> offsetsOf(const Mesh &mesh, const std::vector<int> &axes) {
  std::vector<int> offsets{0};
  for (int axis : axes) {
    std::vector<int> further;
    for (int offset : offsets)
      for (int i = 0; i < mesh.axes[at(axis)].size; ++i)
        further.push_back(offset + i * mesh.stride(axis));
    offsets = std::move(further);
  }
  std::ranges::sort(offsets);
  return offsets;
}

/// Divides the ranks of the mesh into groups whose members differ along `axes`
/// alone, so that every rank is in one group. Members ascend; groups ascend by
/// their first member.
/// \param axes  ascending, without repeats; if empty, each group has one rank
Groups groupsOf(const Mesh &mesh, const std::vector<int> &axes) {
  std::vector<int> others;
  for (int axis = 0; axis < static_cast<int>(mesh.axes.size()); ++axis)
    if (!contains(axes, axis))
      others.push_back(axis);
  std::vector<std::vector<int>> groups;
  for (int first : offsetsOf(mesh, others)) {
    std::vector<int> &group = groups.emplace_back(offsetsOf(mesh, axes));
    for (int &rank : group)
      rank += first;
  }
  return groups;
}

Groups groups(const Parallelism &config,
              const std::vector<std::string> &names) {
  Mesh mesh = worldMeshOf(config);
  std::vector<int> axes;
  axes.reserve(names.size());
  for (const std::string &name : names)
    axes.push_back(mesh.find(name));
  std::ranges::sort(axes);
  EXPECT_GE(axes.front(), 0);
  return groupsOf(mesh, axes);
}

Parallelism sharedOut(int tp, int pp, int dp) {
  Parallelism config;
  config.tp = tp;
  config.pp = pp;
  config.dp = dp;
  return config;
}

// M1: the docstring of Megatron's core/parallel_state.py lists 16 ranks.
TEST(Groups, EqualMegatronsExample) {
  Parallelism config = sharedOut(2, 4, 2);
  EXPECT_EQ(groups(config, {"tp"}), (Groups{{0, 1},
                                            {2, 3},
                                            {4, 5},
                                            {6, 7},
                                            {8, 9},
                                            {10, 11},
                                            {12, 13},
                                            {14, 15}}));
  EXPECT_EQ(groups(config, {"dp"}), (Groups{{0, 2},
                                            {1, 3},
                                            {4, 6},
                                            {5, 7},
                                            {8, 10},
                                            {9, 11},
                                            {12, 14},
                                            {13, 15}}));
  EXPECT_EQ(
      groups(config, {"pp"}),
      (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  // A group over pp and tp is one replica of the model.
  EXPECT_EQ(groups(config, {"pp", "tp"}),
            (Groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
}

// M2: 8 GPUs are two replicas of four.
TEST(Groups, TwoReplicasOfFour) {
  Parallelism config = sharedOut(4, 1, 2);
  EXPECT_EQ(groups(config, {"tp"}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups(config, {"dp"}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

// K12: the first stages are on GPUs 0 and 1, the second stages on 2 and 3.
TEST(Groups, TwoPipelinesOfTwo) {
  Parallelism config = sharedOut(1, 2, 2);
  EXPECT_EQ(groups(config, {"pp"}), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups(config, {"dp"}), (Groups{{0, 1}, {2, 3}}));
}

// The axes nest in the order tp - cp - ep - dp - pp.
TEST(Groups, NestInMegatronsOrder) {
  Parallelism config = sharedOut(2, 2, 4);
  config.cp = 2;
  config.ep = 2;
  EXPECT_EQ(groups(config, {"tp"})[0], (std::vector{0, 1}));
  EXPECT_EQ(groups(config, {"cp"})[0], (std::vector{0, 2}));
  EXPECT_EQ(groups(config, {"ep"})[0], (std::vector{0, 4}));
  EXPECT_EQ(groups(config, {"dp"})[0], (std::vector{0, 8}));
  EXPECT_EQ(groups(config, {"pp"})[0], (std::vector{0, 16}));
  // Ranks along dp and ep hold the same weights outside experts.
  EXPECT_EQ(groups(config, {"dp", "ep"})[1], (std::vector{1, 5, 9, 13}));
}

// M3: tests all ways to write 1 to 64 ranks as tp * cp * dp * pp.
TEST(Groups, ContainEveryRankOncePerAxis) {
  for (int world = 1; world <= 64; ++world)
    for (int tp = 1; tp <= world; ++tp)
      for (int cp = 1; cp * tp <= world; ++cp)
        for (int dp = 1; dp * cp * tp <= world; ++dp) {
          if (world % (tp * cp * dp) != 0)
            continue;
          Parallelism config = sharedOut(tp, world / (tp * cp * dp), dp);
          config.cp = cp;
          Mesh mesh = worldMeshOf(config);
          ASSERT_EQ(mesh.ranks(), world);
          for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
            std::vector<int> seen(static_cast<std::size_t>(world), 0);
            for (const auto &group : groupsOf(mesh, {static_cast<int>(axis)})) {
              ASSERT_EQ(static_cast<int>(group.size()), mesh.axes[axis].size);
              for (int rank : group)
                ++seen.at(static_cast<std::size_t>(rank));
            }
            ASSERT_EQ(seen, std::vector<int>(seen.size(), 1));
          }
        }
}

} // namespace
} // namespace mtplan::planner

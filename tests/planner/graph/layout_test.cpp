//===- layout_test.cpp - Layouts, shards and the steps between them -------===//

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "planner/graph/layout.h"

using namespace mtplan::planner;

namespace {

const Mesh kMesh{{{"dp", 2}, {"tp", 3}, {"cp", 2}}};
constexpr int kDp = 0, kTp = 1, kCp = 2;

Layout split(std::vector<std::vector<int>> dims, std::vector<int> partial = {},
             Reduction reduction = Reduction::sum) {
  return Layout{std::move(dims), std::move(partial), reduction};
}

std::vector<StepKind> kindsOf(const std::vector<ReshardStep> &steps) {
  std::vector<StepKind> kinds;
  kinds.reserve(steps.size());
  for (const ReshardStep &step : steps)
    kinds.push_back(step.kind);
  return kinds;
}

TEST(Mesh, TheLastAxisIsInnermost) {
  EXPECT_EQ(kMesh.ranks(), 12);
  EXPECT_EQ(kMesh.stride(kDp), 6);
  EXPECT_EQ(kMesh.stride(kTp), 2);
  EXPECT_EQ(kMesh.stride(kCp), 1);
  EXPECT_EQ(kMesh.find("cp"), 2);
  EXPECT_EQ(kMesh.find("pp"), -1);
  EXPECT_EQ(Mesh{}.ranks(), 1);
}

TEST(Layout, PlacementsAreReadAndWritten) {
  Layout layout = split({{kDp, kCp}, {}}, {kTp});
  EXPECT_EQ(placementOf(layout, kDp), 0);
  EXPECT_EQ(placementOf(layout, kTp), kPartial);
  EXPECT_EQ(placementOf(layout, kCp), 0);
  EXPECT_EQ(placementOf(Layout::replicated(2), kDp), kReplicated);
  // tp becomes the minor-most axis of the dimension.
  EXPECT_EQ(withPlacement(layout, kTp, 0), split({{kDp, kCp, kTp}, {}}));
  EXPECT_EQ(withPlacement(layout, kDp, 1), split({{kCp}, {kDp}}, {kTp}));
  EXPECT_EQ(withPlacement(layout, kCp, kPartial),
            split({{kDp}, {}}, {kTp, kCp}));
}

TEST(Layout, WithoutPartialAxesHasOneSpelling) {
  Layout maximum = split({{}}, {kTp}, Reduction::max);
  EXPECT_EQ(withPlacement(maximum, kTp, kReplicated), Layout::replicated(1));
}

TEST(LocalShape, DividesByAllAxesOfADimension) {
  Layout layout = split({{kDp, kTp}, {kCp}, {}});
  EXPECT_TRUE(divides({12, 8, 5}, layout, kMesh));
  EXPECT_EQ(localShape({12, 8, 5}, layout, kMesh),
            (std::vector<std::int64_t>{2, 4, 5}));
  // 4 is divisible by 2 but not by 2 * 3.
  EXPECT_FALSE(divides({4, 8, 5}, layout, kMesh));
  EXPECT_FALSE(divides({12, 7, 5}, layout, kMesh));
}

TEST(ToString, NamesAxesAndReduction) {
  EXPECT_EQ(toString(split({{kDp, kCp}, {}}), kMesh), "[dp+cp, -]");
  EXPECT_EQ(toString(split({{}}, {kDp, kTp}), kMesh),
            "[-] partial={dp:sum, tp:sum}");
  EXPECT_EQ(toString(split({}, {kTp}, Reduction::max), kMesh),
            "[] partial={tp:max}");
}

TEST(ReshardSteps, OneAxisTakesOneStep) {
  Layout replicated = Layout::replicated(2), rows = split({{kTp}, {}}),
         columns = split({{}, {kTp}}), partial = split({{}, {}}, {kTp});
  EXPECT_TRUE(reshardSteps(rows, rows).empty());
  EXPECT_EQ(kindsOf(reshardSteps(partial, replicated)),
            std::vector{StepKind::allReduce});
  EXPECT_EQ(kindsOf(reshardSteps(partial, rows)),
            std::vector{StepKind::reduceScatter});
  EXPECT_EQ(kindsOf(reshardSteps(rows, replicated)),
            std::vector{StepKind::allGather});
  EXPECT_EQ(kindsOf(reshardSteps(rows, columns)),
            std::vector{StepKind::allToAll});
  EXPECT_EQ(kindsOf(reshardSteps(replicated, rows)),
            std::vector{StepKind::slice});
  EXPECT_EQ(kindsOf(reshardSteps(replicated, partial)),
            std::vector{StepKind::maskToRoot});
  EXPECT_EQ(kindsOf(reshardSteps(rows, partial)),
            (std::vector{StepKind::allGather, StepKind::maskToRoot}));
}

TEST(ReshardSteps, ShrinksBeforeItGrows) {
  // dp scatters while the tensor is still split over tp.
  std::vector<ReshardStep> steps =
      reshardSteps(split({{}, {kTp}}, {kDp}), split({{kDp}, {}}));
  EXPECT_EQ(kindsOf(steps),
            (std::vector{StepKind::reduceScatter, StepKind::allGather}));
  EXPECT_EQ(steps[0].axis, kDp);
  EXPECT_EQ(steps[0].toDim, 0);
  EXPECT_EQ(steps[0].result, split({{kDp}, {kTp}}));
  EXPECT_EQ(steps[1].fromDim, 1);
}

TEST(ReshardSteps, AMajorAxisIsGatheredAfterTheMinorOne) {
  // Gathering dp alone would interleave the shards of tp.
  std::vector<ReshardStep> steps =
      reshardSteps(split({{kDp, kTp}}), split({{kTp}}));
  EXPECT_EQ(
      kindsOf(steps),
      (std::vector{StepKind::allGather, StepKind::allGather, StepKind::slice}));
  EXPECT_EQ(steps[0].axis, kTp);
  EXPECT_EQ(steps[1].axis, kDp);
  EXPECT_EQ(steps[2].axis, kTp);
}

TEST(ReshardSteps, NamesOfSteps) {
  EXPECT_STREQ(nameOf(StepKind::allReduce), "all_reduce");
  EXPECT_STREQ(nameOf(StepKind::maskToRoot), "mask");
  EXPECT_TRUE(isCollective(StepKind::allToAll));
  EXPECT_FALSE(isCollective(StepKind::slice));
  EXPECT_FALSE(isCollective(StepKind::maskToRoot));
}

//===----------------------------------------------------------------------===//
// The steps, carried out on small arrays of all ranks at once
//===----------------------------------------------------------------------===//

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

struct Array {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int64_t> values;

  std::int64_t &at(std::int64_t r, std::int64_t c) {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
  std::int64_t at(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
  bool operator==(const Array &) const = default;
};

Array sized(std::int64_t rows, std::int64_t columns) {
  return {rows, columns,
          std::vector<std::int64_t>(static_cast<std::size_t>(rows * columns))};
}

// Returns chunk `index` of `parts` equal chunks along `dim`.
Array chunk(const Array &array, int dim, int index, int parts) {
  Array piece = sized(dim == 0 ? array.rows / parts : array.rows,
                      dim == 1 ? array.columns / parts : array.columns);
  for (std::int64_t r = 0; r < piece.rows; ++r)
    for (std::int64_t c = 0; c < piece.columns; ++c)
      piece.at(r, c) = array.at(r + (dim == 0 ? index * piece.rows : 0),
                                c + (dim == 1 ? index * piece.columns : 0));
  return piece;
}

Array join(const std::vector<Array> &pieces, int dim) {
  auto count = static_cast<std::int64_t>(pieces.size());
  const Array &first = pieces.front();
  Array replicated = sized(first.rows * (dim == 0 ? count : 1),
                           first.columns * (dim == 1 ? count : 1));
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t r = 0; r < first.rows; ++r)
      for (std::int64_t c = 0; c < first.columns; ++c)
        replicated.at(r + (dim == 0 ? i * first.rows : 0),
                      c + (dim == 1 ? i * first.columns : 0)) =
            pieces[static_cast<std::size_t>(i)].at(r, c);
  return replicated;
}

Array reduced(const std::vector<Array> &terms, Reduction reduction) {
  Array result = terms.front();
  for (std::size_t t = 1; t < terms.size(); ++t)
    for (std::size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = reduction == Reduction::sum
                             ? result.values[i] + terms[t].values[i]
                             : std::max(result.values[i], terms[t].values[i]);
  return result;
}

int coordinate(int rank, int axis) {
  return rank / kMesh.stride(axis) %
         kMesh.axes[static_cast<std::size_t>(axis)].size;
}

// Returns the shard of `global` that rank `rank` should hold if no axis were
// partial.
Array pieceOf(const Array &global, const Layout &layout, int rank) {
  Array piece = global;
  for (int dim = 0; dim < 2; ++dim)
    for (int axis : layout.dims[static_cast<std::size_t>(dim)])
      piece = chunk(piece, dim, coordinate(rank, axis),
                    kMesh.axes[static_cast<std::size_t>(axis)].size);
  return piece;
}

// Returns whether two ranks differ along no axis outside `axes`.
bool sameBut(int a, int b, const std::vector<int> &axes) {
  for (int axis = 0; axis < 3; ++axis)
    if (coordinate(a, axis) != coordinate(b, axis) &&
        std::ranges::find(axes, axis) == axes.end())
      return false;
  return true;
}

using Ranks = std::vector<Array>; // the shard of each rank

Ranks distribute(const Array &global, const Layout &layout,
                 std::mt19937_64 &rng) {
  Ranks ranks;
  std::uniform_int_distribution<std::int64_t> noise(-50, 50);
  for (int rank = 0; rank < kMesh.ranks(); ++rank)
    ranks.push_back(pieceOf(global, layout, rank));
  if (layout.partial.empty())
    return ranks;
  // The ranks of a group get partial values: all but the first get random ones,
  // and the first gets those for which the reduction gives the shard.
  for (int rank = 0; rank < kMesh.ranks(); ++rank) {
    int root = 0;
    while (!sameBut(root, rank, layout.partial))
      ++root;
    if (root == rank)
      continue;
    for (std::size_t i = 0; i < ranks[0].values.size(); ++i) {
      std::int64_t term = noise(rng);
      auto r = static_cast<std::size_t>(rank),
           o = static_cast<std::size_t>(root);
      if (layout.reduction == Reduction::sum) {
        ranks[r].values[i] = term;
        ranks[o].values[i] -= term;
      } else {
        ranks[r].values[i] -= std::abs(term);
      }
    }
  }
  return ranks;
}

Ranks carryOut(const ReshardStep &step, const Ranks &before) {
  Ranks after;
  int parts = kMesh.axes[static_cast<std::size_t>(step.axis)].size;
  for (int rank = 0; rank < kMesh.ranks(); ++rank) {
    std::vector<Array> group; // along the axis, in order
    for (int other = 0; other < kMesh.ranks(); ++other)
      if (sameBut(rank, other, {step.axis}))
        group.push_back(before[static_cast<std::size_t>(other)]);
    int me = coordinate(rank, step.axis);
    const Array &mine = group[static_cast<std::size_t>(me)];
    switch (step.kind) {
    case StepKind::allReduce:
      after.push_back(reduced(group, step.reduction));
      break;
    case StepKind::reduceScatter:
      after.push_back(
          chunk(reduced(group, step.reduction), step.toDim, me, parts));
      break;
    case StepKind::allGather:
      after.push_back(join(group, step.fromDim));
      break;
    case StepKind::allToAll:
      for (Array &sent : group)
        sent = chunk(sent, step.toDim, me, parts);
      after.push_back(join(group, step.fromDim));
      break;
    case StepKind::slice:
      after.push_back(chunk(mine, step.toDim, me, parts));
      break;
    case StepKind::maskToRoot: {
      Array kept = mine;
      if (me != 0)
        std::ranges::fill(kept.values,
                          step.reduction == Reduction::sum ? 0 : kLeast);
      after.push_back(kept);
      break;
    }
    }
  }
  return after;
}

Layout randomLayout(std::mt19937_64 &rng) {
  Layout layout = Layout::replicated(2);
  Reduction reduction = rng() % 2 == 0 ? Reduction::sum : Reduction::max;
  for (int axis = 0; axis < 3; ++axis)
    layout =
        withPlacement(layout, axis, static_cast<int>(rng() % 4) - 2, reduction);
  return layout;
}

TEST(ReshardSteps, TurnsAnyLayoutIntoAnyOtherOnRealArrays) {
  int movesOfOne = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 rng(seed);
    Layout from = randomLayout(rng), to = randomLayout(rng);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ": " << toString(from, kMesh) << " -> "
                 << toString(to, kMesh));
    Array global = sized(12, 24);
    for (std::int64_t &value : global.values)
      value = static_cast<std::int64_t>(rng() % 1000);
    Ranks ranks = distribute(global, from, rng);
    std::map<int, int> stepsOf;
    Layout now = from;
    const std::vector<ReshardStep> steps = reshardSteps(from, to);
    if (const std::optional<MovesOfOneAxis> moves = movesOfOneAxis(from, to)) {
      ASSERT_EQ(moves->count, std::ssize(steps));
      for (std::size_t i = 0; i < steps.size(); ++i) {
        ASSERT_EQ(moves->moves[i].kind, steps[i].kind);
        ASSERT_EQ(moves->moves[i].axis, steps[i].axis);
      }
      movesOfOne += static_cast<int>(!steps.empty());
    }
    for (const ReshardStep &step : steps) {
      // A step is a valid data movement only if its axis is the minor-most of
      // the source and of the target dimension.
      if (step.fromDim >= 0) {
        ASSERT_EQ(now.dims[static_cast<std::size_t>(step.fromDim)].back(),
                  step.axis);
      }
      if (step.toDim >= 0) {
        ASSERT_EQ(step.result.dims[static_cast<std::size_t>(step.toDim)].back(),
                  step.axis);
      }
      ranks = carryOut(step, ranks);
      now = step.result;
      std::vector<std::int64_t> local = localShape({12, 24}, now, kMesh);
      ASSERT_EQ(ranks[0].rows, local[0]);
      ASSERT_EQ(ranks[0].columns, local[1]);
      ASSERT_LE(++stepsOf[step.axis], 3);
    }
    ASSERT_EQ(now, to);
    for (int rank = 0; rank < kMesh.ranks(); ++rank) {
      std::vector<Array> terms;
      for (int other = 0; other < kMesh.ranks(); ++other)
        if (sameBut(rank, other, to.partial))
          terms.push_back(ranks[static_cast<std::size_t>(other)]);
      ASSERT_EQ(reduced(terms, to.reduction), pieceOf(global, to, rank))
          << "rank " << rank;
    }
  }
  EXPECT_GT(movesOfOne, 100);
}

} // namespace

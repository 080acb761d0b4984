//===- design_test.cpp - What measurements say about figures --------------===//

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/fit/design.h"

namespace mtplan::planner {
namespace {

using testing::ElementsAre;

// One figure: n measurements of slope s leave the deviation 1 / sqrt(1 + n
// s^2).
TEST(Design, DeviationsOfOneFigure) {
  EXPECT_NEAR(deviationsAfter({{3.0}})[0], 1 / std::sqrt(10.0), 1e-12);
  EXPECT_NEAR(deviationsAfter({{3.0}, {3.0}})[0], 1 / std::sqrt(19.0), 1e-12);
}

// A measurement of the sum of two figures leaves their difference unknown: with
// the slopes (2, 2), the sum's variance falls from 2 to 2 / 9, and each
// figure's to (2 / 9 + 2) / 4.
TEST(Design, ASumDeterminesNoAddend) {
  const std::vector<double> deviations = deviationsAfter({{2.0, 2.0}});
  EXPECT_NEAR(deviations[0], std::sqrt((2.0 / 9 + 2) / 4), 1e-12);
  EXPECT_NEAR(deviations[1], deviations[0], 1e-12);
}

// Returns the sum of the variances of all measurements after `done`: the sum of
// j' x over all slopes j, where (1 + sum of k k') x = j, with k from `done`.
double varianceAfter(const Slopes &all, const std::vector<std::size_t> &done) {
  const std::size_t size = all.front().size();
  double sum = 0.0;
  for (const std::vector<double> &slopes : all) {
    Slopes system(size, std::vector<double>(size + 1, 0.0));
    for (std::size_t r = 0; r < size; ++r) {
      system[r][r] = 1.0;
      for (std::size_t i : done)
        for (std::size_t c = 0; c < size; ++c)
          system[r][c] += all[i][r] * all[i][c];
      system[r][size] = slopes[r];
    }
    for (std::size_t p = 0; p < size; ++p) // positive definite: no pivoting
      for (std::size_t r = 0; r < size; ++r)
        if (const double factor = system[r][p] / system[p][p]; r != p)
          for (std::size_t c = p; c <= size; ++c)
            system[r][c] -= factor * system[p][c];
    for (std::size_t r = 0; r < size; ++r)
      sum += slopes[r] * system[r][size] / system[r][r];
  }
  return sum;
}

// Every choice is the best of all that could follow the earlier choices.
TEST(Design, EachChoiceIsTheBestNextOne) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0.0, 3.0);
  for (int problem = 0; problem < 50; ++problem) {
    Slopes all(8);
    for (std::vector<double> &row : all)
      for (int f = 0; f < 4; ++f)
        row.push_back(normal(random));
    const std::vector<std::size_t> known = {2};
    const std::vector<std::size_t> offered = {0, 1, 3, 4, 6, 7};
    const std::vector<std::size_t> chosen =
        chooseMeasurements({all}, known, offered, 3);
    ASSERT_EQ(chosen.size(), 3U);
    std::vector<std::size_t> done = known;
    for (std::size_t choice : chosen) {
      std::vector<std::size_t> with = done;
      with.push_back(choice);
      const double best = varianceAfter(all, with);
      for (std::size_t other : offered)
        if (std::find(done.begin(), done.end(), other) == done.end()) {
          with.back() = other;
          EXPECT_LE(best, varianceAfter(all, with) + 1e-9);
        }
      done.push_back(choice);
    }
  }
}

TEST(Design, OffersAreUsedOnceAndTiesGoToTheFirst) {
  const Slopes all = {{1.0, 0.0}, {1.0, 0.0}, {0.0, 1.0}};
  EXPECT_THAT(chooseMeasurements({all}, {}, {0, 1, 2}, 9),
              ElementsAre(0, 2, 1));
  EXPECT_THAT(chooseMeasurements({all}, {0}, {1, 2}, 1), ElementsAre(2));
  EXPECT_TRUE(chooseMeasurements({all}, {}, {}, 2).empty());
}

} // namespace
} // namespace mtplan::planner

//===- initial_values_test.cpp - Initial values of parameters -------------===//

#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/training/initial_values.h"

namespace mtplan::runtime {
namespace {

TensorView whole(std::int64_t rows, std::int64_t columns) {
  return {ElementType::f64, {rows, columns}, {{0, rows}, {0, columns}}};
}

std::vector<double> filled(std::string_view init, const TensorView &piece,
                           const Initialisation &how = {},
                           std::string_view label = "w",
                           std::int64_t copy = 0) {
  std::vector<double> out(static_cast<std::size_t>(piece.elements()));
  fillInitial(how, label, copy, init, piece, out.data());
  return out;
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments momentsOf(const std::vector<double> &values) {
  double sum = 0, squares = 0;
  for (double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n)};
}

// The matrix has 160 000 elements, for which 1 % of the deviation is more than
// five standard errors.
TEST(InitialValues, HaveTheirDeviations) {
  const TensorView matrix = whole(400, 400);
  const Moments normal = momentsOf(filled("normal", matrix));
  EXPECT_NEAR(normal.deviation, 0.02, 0.0002);
  EXPECT_NEAR(normal.mean, 0.0, 4 * 0.02 / 400);
  Initialisation how;
  how.layers = 72;
  EXPECT_NEAR(momentsOf(filled("residual", matrix, how)).deviation, 0.0016667,
              0.000017);
  EXPECT_NEAR(momentsOf(filled("normal", matrix, how)).deviation, 0.02, 0.0002);
}

// A normal distribution has 68.27 % within one deviation and 4.55 % beyond two.
// The values at each of the four positions of a draw have these fractions, too,
// and neighbours are uncorrelated.
TEST(InitialValues, AreNormalInEveryPlaceOfADraw) {
  const std::vector<double> values = filled("normal", whole(400, 400));
  for (std::size_t place = 0; place < 4; ++place) {
    int within = 0, beyond = 0;
    double products[3] = {};
    for (std::size_t i = place; i + 4 < values.size(); i += 4) {
      within += std::abs(values[i]) < 0.02;
      beyond += std::abs(values[i]) > 0.04;
      for (std::size_t lag = 1; lag < 4; ++lag)
        products[lag - 1] += values[i] * values[i + lag] / 0.0004;
    }
    const double n = 40000;
    EXPECT_NEAR(within / n, 0.6827, 4 * std::sqrt(0.6827 * 0.3173 / n));
    EXPECT_NEAR(beyond / n, 0.0455, 4 * std::sqrt(0.0455 * 0.9545 / n));
    for (double product : products)
      EXPECT_NEAR(product / n, 0, 4 / std::sqrt(n));
  }
}

// A second implementation, in Python, made these values. They may not change.
TEST(InitialValues, GoldenValues) {
  const TensorView vector{ElementType::f64, {1002}, {{0, 1002}}};
  const auto values =
      filled("normal", vector, {}, "h.*.attn.q.weight", /*copy=*/3);
  const double golden[] = {0.0029070177156664523, 0.007129622432994734,
                           0.0038205678053309664, -0.011772214106368058,
                           -0.006067405149869268};
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(values[i], golden[i], 1e-16);
  EXPECT_NEAR(values[1001], -0.028865271097174856, 1e-16);
}

TEST(InitialValues, OnesAndZeros) {
  for (double value : filled("ones", whole(3, 5)))
    EXPECT_EQ(value, 1);
  for (double value : filled("zeros", whole(3, 5)))
    EXPECT_EQ(value, 0);
  EXPECT_THROW(filled("xavier", whole(3, 5)), std::invalid_argument);
}

// Shards of any layout have the bits of the whole tensor.
TEST(InitialValues, PiecesAreThoseOfTheWhole) {
  const std::int64_t shape[3] = {4, 6, 10};
  const TensorView all{ElementType::f64, {4, 6, 10}, {{0, 4}, {0, 6}, {0, 10}}};
  const std::vector<double> global = filled("normal", all);
  for (int cut0 : {1, 2})
    for (int cut1 : {1, 3})
      for (int cut2 : {1, 2, 5})
        for (int rank = 0; rank < cut0 * cut1 * cut2; ++rank) {
          const std::int64_t cuts[3] = {cut0, cut1, cut2};
          const std::int64_t at[3] = {rank / cut2 / cut1, rank / cut2 % cut1,
                                      rank % cut2};
          TensorView piece;
          for (int d = 0; d < 3; ++d) {
            piece.shape.push_back(shape[d] / cuts[d]);
            piece.pieces.push_back({at[d] * piece.shape.back(), shape[d]});
          }
          const std::vector<double> local = filled("normal", piece);
          std::size_t i = 0;
          for (std::int64_t x = 0; x < piece.shape[0]; ++x)
            for (std::int64_t y = 0; y < piece.shape[1]; ++y)
              for (std::int64_t z = 0; z < piece.shape[2]; ++z)
                ASSERT_EQ(local[i++], global[static_cast<std::size_t>(
                                          ((x + piece.pieces[0].offset) * 6 +
                                           y + piece.pieces[1].offset) *
                                              10 +
                                          z + piece.pieces[2].offset)]);
        }
}

TEST(InitialValues, SeedLabelAndCopyEachMatter) {
  const auto base = filled("normal", whole(2, 4));
  Initialisation other;
  other.seed = 5;
  EXPECT_NE(filled("normal", whole(2, 4), other), base);
  EXPECT_NE(filled("normal", whole(2, 4), {}, "v"), base);
  EXPECT_NE(filled("normal", whole(2, 4), {}, "w", 1), base);
  EXPECT_EQ(filled("normal", whole(2, 4)), base);
}

TEST(InitialValues, SinglePrecisionIsTheRoundedDouble) {
  const auto exact = filled("normal", whole(3, 7));
  std::vector<float> rounded(21);
  fillInitial({}, "w", 0, "normal", whole(3, 7), rounded.data());
  for (std::size_t i = 0; i < 21; ++i)
    EXPECT_EQ(rounded[i], static_cast<float>(exact[i]));
}

TEST(InitialValues, VectorsAndScalars) {
  const TensorView piece{ElementType::f64, {3}, {{2, 6}}};
  const TensorView all{ElementType::f64, {6}, {{0, 6}}};
  const auto part = filled("normal", piece), global = filled("normal", all);
  EXPECT_EQ(part[0], global[2]);
  EXPECT_EQ(part[2], global[4]);
  EXPECT_EQ(filled("normal", {ElementType::f64, {}, {}})[0], global[0]);
}

} // namespace
} // namespace mtplan::runtime

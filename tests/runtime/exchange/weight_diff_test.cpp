//===- weight_diff_test.cpp - Where two models differ ---------------------===//

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "runtime/exchange/weight_source.h"
#include "tests/runtime/exchange/exchange_files.h"

namespace mtplan::runtime {
namespace {

/// Provides a model of one parameter "a", with a first moment if `moment` is
/// true.
class One final : public WeightSource {
public:
  explicit One(std::vector<float> theNumbers, bool moment = false)
      : numbers(std::move(theNumbers)) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    all["a"] = {StateKind::weight, ElementType::f32, {count}};
    if (moment)
      all["a.first_moment"] = {
          StateKind::firstMoment, ElementType::f32, {count}};
  }
  std::string what() const override { return "one"; }
  std::string model() const override { return "one"; }
  std::int64_t bytes() const override { return 0; }
  std::vector<std::byte> read(const std::string & /*name*/) const override {
    std::vector<std::byte> bytes(numbers.size() * sizeof(float));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }
  bool hasOther(const std::string & /*name*/) const override { return false; }
  std::vector<std::byte>
  readOther(const std::string & /*name*/) const override {
    return {};
  }

private:
  std::vector<float> numbers;
};

TEST(ExchangeDiff, TheLargestDifferenceAndWhereItIs) {
  const WeightComparison compared =
      compareWeights(One({1, 2, -8, NAN}), One({1.5F, 6, -9, NAN}));
  ASSERT_EQ(compared.differences.size(), 1U);
  const WeightDifference &one = compared.differences[0];
  EXPECT_EQ(one.elements, 3); // two NaNs count as equal
  EXPECT_EQ(one.largest, 4.0);
  EXPECT_EQ(one.at, 1);
  EXPECT_EQ(one.size, 8.0);
}

TEST(ExchangeDiff, NumberAgainstNan) {
  const WeightComparison compared = compareWeights(One({1, 2}), One({5, NAN}));
  ASSERT_EQ(compared.differences.size(), 1U);
  EXPECT_TRUE(std::isinf(compared.differences[0].largest));
  EXPECT_EQ(compared.differences[0].at, 1);
}

TEST(ExchangeDiff, MomentsOfOneAlone) {
  const WeightComparison compared = compareWeights(One({1}), One({1}, true));
  EXPECT_TRUE(compared.withoutMoments);
  EXPECT_TRUE(compared.differences.empty());
}

TEST(Exchange, ImportedWeightsHaveNoMoments) {
  const TestFolder folder;
  importWeights(One({1, 2}, true), folder / "kept");
  const auto kept = openWeights(folder / "kept");
  EXPECT_EQ(kept->tensors().size(), 1U);
  EXPECT_TRUE(kept->tensors().contains("a"));
}

} // namespace
} // namespace mtplan::runtime

//===- collectives_test.cpp - Interpreted collectives ---------------------===//
//
// Ranks 0 to 3 of a 2 x 2 mesh hold 1, 10, 100 and 1000, or multiples, so that
// a sum shows which ranks took part. Ranks 0 and 1 are neighbours along axis
// "b", 0 and 2 along "a".
//
//===----------------------------------------------------------------------===//

#include <limits>

#include "ir/interpret/ranks.h"

#include "interpret_testing.h"

namespace mtplan::ir {
namespace {

class InterpretCollectives : public InterpretTest {
protected:
  InterpretCollectives()
      : mesh(MeshAttr::get(&context,
                           {mlir::StringAttr::get(&context, "a"),
                            mlir::StringAttr::get(&context, "b")},
                           {2, 2})) {}

  /// Runs `text` on ranks that hold `own` times 1, 10, 100 and 1000.
  std::vector<HostTensor> exchange(const std::string &text,
                                   const HostTensor &own) {
    auto module = parseOp(text, {own});
    std::vector<HostTensor> inputs(4, own);
    double scale = 1;
    for (HostTensor &input : inputs) {
      for (double &x : input.data)
        x *= scale;
      scale *= 10;
    }
    auto results = runCollective(firstOp(*module), inputs, mesh);
    EXPECT_TRUE(mlir::succeeded(results));
    return mlir::succeeded(results) ? *results : std::vector<HostTensor>(4);
  }

  static void expectRanks(const std::vector<HostTensor> &actual,
                          const std::vector<std::vector<double>> &expected) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      expectNear(actual[rank], expected[rank]);
    }
  }

  const MeshView mesh;
};

TEST_F(InterpretCollectives, AllReduce) {
  const HostTensor one = tensor({1}, {1});
  expectRanks(
      exchange(R"(%r = mtp.all_reduce %a over "a" cause "t" : tensor<1xf64>)",
               one),
      {{101}, {1010}, {101}, {1010}});
  expectRanks(
      exchange(R"(%r = mtp.all_reduce %a over "b" cause "t" : tensor<1xf64>)",
               one),
      {{11}, {11}, {1100}, {1100}});
  expectRanks(exchange(R"(%r = mtp.all_reduce %a over "b" max cause "t"
                            : tensor<2xf64>)",
                       tensor({2}, {1, -1})),
              {{10, -1}, {10, -1}, {1000, -100}, {1000, -100}});
}

TEST_F(InterpretCollectives, AMaximumKeepsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (bool first : {false, true}) {
    HostTensor total = tensor({1}, {first ? nan : 1});
    reduceInto(total, tensor({1}, {first ? 1 : nan}), /*max=*/true);
    EXPECT_NE(total.data[0], total.data[0]);
  }
}

TEST_F(InterpretCollectives, AllGather) {
  expectRanks(exchange(R"(%r = mtp.all_gather %a over "b" dim 0 cause "t"
                            : (tensor<1xf64>) -> tensor<2xf64>)",
                       tensor({1}, {1})),
              {{1, 10}, {1, 10}, {100, 1000}, {100, 1000}});
  // Shards of the inner dimension interleave in memory.
  expectRanks(exchange(R"(%r = mtp.all_gather %a over "a" dim 1 cause "t"
                            : (tensor<2x1xf64>) -> tensor<2x2xf64>)",
                       tensor({2, 1}, {1, 2})),
              {{1, 100, 2, 200},
               {10, 1000, 20, 2000},
               {1, 100, 2, 200},
               {10, 1000, 20, 2000}});
}

TEST_F(InterpretCollectives, ReduceScatter) {
  expectRanks(exchange(R"(%r = mtp.reduce_scatter %a over "b" dim 0 cause "t"
                            : (tensor<2xf64>) -> tensor<1xf64>)",
                       tensor({2}, {1, 2})),
              {{11}, {22}, {1100}, {2200}});
  expectRanks(exchange(R"(%r = mtp.reduce_scatter %a over "a" dim 1 cause "t"
                            : (tensor<2x2xf64>) -> tensor<2x1xf64>)",
                       tensor({2, 2}, {1, 2, 3, 4})),
              {{101, 303}, {1010, 3030}, {202, 404}, {2020, 4040}});
  expectRanks(exchange(R"(%r = mtp.reduce_scatter %a over "b" dim 0 max
                            cause "t" : (tensor<2xf64>) -> tensor<1xf64>)",
                       tensor({2}, {1, 2})),
              {{10}, {20}, {1000}, {2000}});
}

TEST_F(InterpretCollectives, AllToAll) {
  expectRanks(exchange(R"(%r = mtp.all_to_all %a over "b" split 0 join 1
                            cause "t" : (tensor<2x1xf64>) -> tensor<1x2xf64>)",
                       tensor({2, 1}, {1, 2})),
              {{1, 10}, {2, 20}, {100, 1000}, {200, 2000}});
}

TEST_F(InterpretCollectives, SliceAndMaskSendNothing) {
  expectRanks(exchange(R"(%r = mtp.slice %a over "a" dim 0 cause "t"
                            : (tensor<2xf64>) -> tensor<1xf64>)",
                       tensor({2}, {1, 2})),
              {{1}, {10}, {200}, {2000}});
  expectRanks(exchange(R"(%r = mtp.mask %a over "b" cause "t" : tensor<1xf64>)",
                       tensor({1}, {1})),
              {{1}, {0}, {100}, {0}});
}

TEST_F(InterpretCollectives, PiecesAreNumberedByTheMajorAxisFirst) {
  const auto axis = [&](const char *name) -> mlir::Attribute {
    return mlir::StringAttr::get(&context, name);
  };
  const auto layout = LayoutAttr::get(
      &context, {mlir::ArrayAttr::get(&context, {axis("b"), axis("a")})}, {},
      false);
  // Rank 1 has coordinates a = 0 and b = 1, hence shard 2 of shards 0 to 3.
  const Span span = mesh.piecesOf(layout, 1, {3})[0];
  EXPECT_EQ(span.offset, 6);
  EXPECT_EQ(span.global, 12);
}

TEST_F(InterpretCollectives, UnevenCutsAndUnknownAxesAreErrors) {
  const auto fails = [&](const std::string &text, const HostTensor &own) {
    mlir::ScopedDiagnosticHandler quiet(
        &context, [](mlir::Diagnostic &) { return mlir::success(); });
    auto module = parseOp(text, {own});
    return mlir::failed(
        runCollective(firstOp(*module), std::vector<HostTensor>(4, own), mesh));
  };
  EXPECT_TRUE(fails(R"(%r = mtp.slice %a over "a" dim 0 cause "t"
                         : (tensor<3xf64>) -> tensor<1xf64>)",
                    tensor({3}, {1, 2, 3})));
  EXPECT_TRUE(fails(R"(%r = mtp.all_gather %a over "a" dim 1 cause "t"
                         : (tensor<1xf64>) -> tensor<2xf64>)",
                    tensor({1}, {1})));
  EXPECT_TRUE(fails(R"(%r = mtp.mask %a over "c" cause "t" : tensor<1xf64>)",
                    tensor({1}, {1})));
}

} // namespace
} // namespace mtplan::ir

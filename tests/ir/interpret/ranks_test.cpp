//===- ranks_test.cpp - Partitioned against logical programs --------------===//

#include <limits>

#include "ir/interpret/interpret.h"

#include "interpret_testing.h"

namespace mtplan::ir {
namespace {

class InterpretRanks : public InterpretTest {
protected:
  /// Returns the error of a partitioned program against the logical one.
  Comparison compare(const std::string &logical, const std::string &mesh,
                     const std::string &partitioned) {
    const RunResult whole = run(logical);
    split = run("module attributes {mtp.partitioned, mtp.mesh = #mtp.mesh<" +
                mesh + ">} {" + partitioned + "}");
    return compareRuns(whole, split);
  }

  RunResult split; ///< result of the last partitioned program
};

void expectEqual(const Comparison &comparison) {
  EXPECT_LT(comparison.worst, 1e-12)
      << comparison.kind << ' ' << comparison.name << " on rank "
      << comparison.rank;
  EXPECT_GT(comparison.tensors, 0);
}

//===----------------------------------------------------------------------===//
// A product with samples over dp, features over tp, and the weight over both
//===----------------------------------------------------------------------===//

const char *const kLogical = R"(
  mtp.segment @h repeat 2 first 4 () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<4x2xf64>
    %w = mtp.parameter "h.*.w" : tensor<2x4xf64>
    %b = mtp.parameter "h.*.b" {init = "zeros"} : tensor<4xf64>
    %y = mtp.einsum "lin" "bi,io->bo" (%x, %w, %b)
        : (tensor<4x2xf64>, tensor<2x4xf64>, tensor<4xf64>) -> tensor<4x4xf64>
    %q = mtp.mul "square" (%y, %y) : tensor<4x4xf64>
    %s = mtp.sum "total" (%q) : (tensor<4x4xf64>) -> tensor<f64>
    mtp.accumulate "loss", %s : tensor<f64>
    mtp.backward () {
      %d = mtp.scale "square.dx" (%y) by 2.0 : tensor<4x4xf64>
      %dw = mtp.einsum "lin.dw" "bi,bo->io" (%x, %d)
          : (tensor<4x2xf64>, tensor<4x4xf64>) -> tensor<2x4xf64>
      %db = mtp.sum "lin.db" (%d) : (tensor<4x4xf64>) -> tensor<4xf64>
      mtp.accumulate "h.*.w", %dw : tensor<2x4xf64>
      mtp.accumulate "h.*.b", %db : tensor<4xf64>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %g = mtp.accumulated "h.*.w" : tensor<2x4xf64>
    mtp.adamw "h.*.w", %g {decay} : tensor<2x4xf64>
    %h = mtp.accumulated "h.*.b" : tensor<4xf64>
    mtp.adamw "h.*.b", %h : tensor<4xf64>
    %l = mtp.accumulated "loss" : tensor<f64>
    mtp.result "loss", %l : tensor<f64>
  }
)";

const char *const kPartitioned = R"(
  mtp.segment @h repeat 2 first 4 () {
    %x = mtp.input "x" dims ["batch", "other"]
        {layout = #mtp.layout<[["dp"], []]>} : tensor<2x2xf64>
    %ws = mtp.parameter "h.*.w" {layout = #mtp.layout<[["dp"], ["tp"]]>}
        : tensor<1x2xf64>
    %w = mtp.all_gather %ws over "dp" dim 0 cause "h.*.w"
        : (tensor<1x2xf64>) -> tensor<2x2xf64>
    %b = mtp.parameter "h.*.b" {init = "zeros",
        layout = #mtp.layout<[["tp"]]>} : tensor<2xf64>
    %y = mtp.einsum "lin" "bi,io->bo" (%x, %w, %b)
        {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "o">}
        : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
    %q = mtp.mul "square" (%y, %y)
        {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d1">}
        : tensor<2x2xf64>
    %s = mtp.sum "total" (%q)
        {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d1">}
        : (tensor<2x2xf64>) -> tensor<f64>
    mtp.accumulate "loss", %s
        {layout = #mtp.layout<[], partial = ["dp", "tp"]>} : tensor<f64>
    mtp.backward () {
      %d = mtp.scale "square.dx" (%y) by 2.0
          {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d1">}
          : tensor<2x2xf64>
      %dw = mtp.einsum "lin.dw" "bi,bo->io" (%x, %d)
          {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "o">}
          : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
      %db = mtp.sum "lin.db" (%d)
          {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d1">}
          : (tensor<2x2xf64>) -> tensor<2xf64>
      mtp.accumulate "h.*.w", %dw
          {layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>}
          : tensor<2x2xf64>
      mtp.accumulate "h.*.b", %db
          {layout = #mtp.layout<[["tp"]], partial = ["dp"]>} : tensor<2xf64>
      mtp.yield
    }
    mtp.yield
  }
)";
const char *const kPartitionedUpdate = R"(
  mtp.update {
    %g = mtp.accumulated "h.*.w" : tensor<2x2xf64>
    %gs = mtp.reduce_scatter %g over "dp" dim 0 cause "h.*.w"
        : (tensor<2x2xf64>) -> tensor<1x2xf64>
    mtp.adamw "h.*.w", %gs {decay} : tensor<1x2xf64>
    %h = mtp.accumulated "h.*.b" : tensor<2xf64>
    %hs = mtp.all_reduce %h over "dp" cause "h.*.b" : tensor<2xf64>
    mtp.adamw "h.*.b", %hs : tensor<2xf64>
    %l = mtp.accumulated "loss" : tensor<f64>
    %l1 = mtp.all_reduce %l over "dp" cause "loss" : tensor<f64>
    %l2 = mtp.all_reduce %l1 over "tp" cause "loss" : tensor<f64>
    mtp.result "loss", %l2 : tensor<f64>
  }
)";
const char *const kMesh = R"("dp" = 2, "tp" = 2)";

TEST_F(InterpretRanks, AShardedProductAgreesAndItsCollectivesAreCounted) {
  const Comparison comparison =
      compare(kLogical, kMesh, std::string(kPartitioned) + kPartitionedUpdate);
  expectEqual(comparison);
  // These are the loss, and the gradient and value of two parameters in each of
  // two layers.
  EXPECT_EQ(comparison.tensors, 1 + 4 + 4);
  const std::map<CollectiveKey, std::int64_t> counts = {
      {{Phase::forward, "all_gather", "dp"}, 4},
      {{Phase::update, "reduce_scatter", "dp"}, 2},
      {{Phase::update, "all_reduce", "dp"}, 2 + 1},
      {{Phase::update, "all_reduce", "tp"}, 1}};
  EXPECT_EQ(split.collectives, counts);
}

// ZeRO 1: the weight is replicated over dp. Each rank of dp reduces and
// updates its own row, and all ranks gather the rows.
const char *const kOwnedWeight = R"({layout = #mtp.layout<[[], ["tp"]]>}
        : tensor<2x2xf64>)";
const char *const kOwnedUpdate = R"(
    %u = mtp.adamw "h.*.w", %gs {decay, layout = #mtp.layout<[["dp"], ["tp"]]>}
        : tensor<1x2xf64> -> tensor<1x2xf64>
    %v = mtp.all_gather %u over "dp" dim 0 cause "h.*.w"
        : (tensor<1x2xf64>) -> tensor<2x2xf64>
    mtp.store "h.*.w", %v : tensor<2x2xf64>)";

std::string withOwnedState() {
  std::string text = replaced(std::string(kPartitioned) + kPartitionedUpdate,
                              R"({layout = #mtp.layout<[["dp"], ["tp"]]>}
        : tensor<1x2xf64>)",
                              kOwnedWeight);
  text = replaced(text,
                  R"(    %w = mtp.all_gather %ws over "dp" dim 0 cause "h.*.w"
        : (tensor<1x2xf64>) -> tensor<2x2xf64>
)",
                  "");
  text = replaced(text, "%ws =", "%w =");
  return replaced(text, R"(
    mtp.adamw "h.*.w", %gs {decay} : tensor<1x2xf64>)",
                  kOwnedUpdate);
}

TEST_F(InterpretRanks, Zero1UpdatesTheOwnShard) {
  const Comparison comparison = compare(kLogical, kMesh, withOwnedState());
  expectEqual(comparison);
  EXPECT_EQ(comparison.tensors, 1 + 4 + 4);
  EXPECT_EQ((split.collectives[{Phase::forward, "all_gather", "dp"}]), 0);
  EXPECT_EQ((split.collectives[{Phase::update, "all_gather", "dp"}]), 2);
  EXPECT_EQ((split.collectives[{Phase::update, "reduce_scatter", "dp"}]), 2);
}

TEST_F(InterpretRanks, AnUpdateThatIsNotStoredIsFound) {
  const Comparison comparison =
      compare(kLogical, kMesh,
              replaced(withOwnedState(),
                       R"(    mtp.store "h.*.w", %v : tensor<2x2xf64>)", ""));
  EXPECT_GT(comparison.worst, 1e-6);
  EXPECT_EQ(comparison.kind, "parameter");
}

TEST_F(InterpretRanks, PartialAccumulatorsAreReducedBeforeTheyAreCompared) {
  const std::string logical = kLogical;
  expectEqual(compare(logical.substr(0, logical.find("mtp.update")), kMesh,
                      kPartitioned));
}

TEST_F(InterpretRanks, AForgottenSumIsFoundAndNamed) {
  const std::string whole = std::string(kPartitioned) + kPartitionedUpdate;
  Comparison comparison = compare(
      kLogical, kMesh,
      replaced(whole, R"(mtp.adamw "h.*.b", %hs)", R"(mtp.adamw "h.*.b", %h)"));
  EXPECT_GT(comparison.worst, 1e-3);
  EXPECT_EQ(comparison.kind, "gradient");
  EXPECT_TRUE(comparison.name == "h.4.b" || comparison.name == "h.5.b");
  comparison = compare(kLogical, kMesh,
                       replaced(whole, R"(mtp.result "loss", %l2)",
                                R"(mtp.result "loss", %l1)"));
  EXPECT_GT(comparison.worst, 1e-3);
  EXPECT_EQ(comparison.kind, "result");
  EXPECT_EQ(comparison.name, "loss");
}

TEST_F(InterpretRanks, ShapesThatDoNotFitTheMeshAreErrors) {
  const auto errorWith = [&](const std::string &from, const std::string &to) {
    return errorOf("module attributes {mtp.partitioned, mtp.mesh = #mtp.mesh<" +
                       std::string(kMesh) + ">} {" +
                       replaced(kPartitioned, from, to) + "}",
                   /*verify=*/false);
  };
  EXPECT_NE(errorWith(R"("tp" = "o")", R"("tp" = "z")").find("\"z\""),
            std::string::npos);
  EXPECT_NE(errorWith(R"("tp" = "o")", R"("pp" = "o")").find("\"pp\""),
            std::string::npos);
  EXPECT_NE(
      errorWith(R"([["dp"], ["tp"]])", R"([["pp"], ["tp"]])").find("layout"),
      std::string::npos);
  EXPECT_NE(errorWith(R"(over "dp" dim 0)", R"(over "dp" dim 7)"), "");
}

//===----------------------------------------------------------------------===//
// Offsets in the global tensor
//===----------------------------------------------------------------------===//

TEST_F(InterpretRanks, DropoutMasksDoNotDependOnTheLayout) {
  const char *const logical = R"(mtp.segment @m () {
      %x = mtp.input "x" dims ["batch", "other"] : tensor<4x8xf64>
      %y = mtp.dropout "d" (%x) {rate = 0.5 : f64, mask = "d"} : tensor<4x8xf64>
      mtp.accumulate "y", %y : tensor<4x8xf64>
      mtp.yield })";
  // Columns are sharded over two axes, with the later mesh axis as the major
  // one.
  const std::string partitioned = R"(mtp.segment @m () {
      %x = mtp.input "x" dims ["batch", "other"]
          {layout = #mtp.layout<[["b"], ["c", "a"]]>} : tensor<2x2xf64>
      %y = mtp.dropout "d" (%x) {rate = 0.5 : f64, mask = "d",
          mtp.strategy = #mtp.strategy<"b" = "d0", "c" = "d1", "a" = "d1">}
          : tensor<2x2xf64>
      mtp.accumulate "y", %y {layout = #mtp.layout<[["b"], ["c", "a"]]>}
          : tensor<2x2xf64>
      mtp.yield })";
  const std::string mesh = R"("a" = 2, "b" = 2, "c" = 2)";
  EXPECT_EQ(compare(logical, mesh, partitioned).worst, 0.0);
  EXPECT_GT(compare(logical, mesh,
                    replaced(partitioned, R"("c" = "d1", "a" = "d1")",
                             R"("a" = "d1", "c" = "d1")"))
                .worst,
            0.1);
}

TEST_F(InterpretRanks, AttentionSplitOverSamplesHeadsAndQueries) {
  const char *const logical = R"(mtp.segment @m () {
      %q = mtp.input "q" dims ["batch", "sequence", "other"]
          : tensor<2x4x8xf64>
      %k = mtp.input "k" dims ["batch", "sequence", "other"]
          : tensor<2x4x4xf64>
      %rq = mtp.rope "rope" (%q) {head_dim = 2 : i64, rotary_dim = 2 : i64,
          theta = 100.0 : f64} : tensor<2x4x8xf64>
      %y, %lse = mtp.attention "core" (%rq, %k, %k) {head_dim = 2 : i64,
          causal = true, scale = 0.7 : f64, rate = 0.4 : f64, mask = "core"}
          : (tensor<2x4x8xf64>, tensor<2x4x4xf64>, tensor<2x4x4xf64>)
          -> (tensor<2x4x8xf64>, tensor<2x4x4xf64>)
      %dq, %dk, %dv = mtp.attention_grad "core.grad"
          (%rq, %k, %k, %y, %lse, %q) {head_dim = 2 : i64,
          causal = true, scale = 0.7 : f64, rate = 0.4 : f64, mask = "core"}
          : (tensor<2x4x8xf64>, tensor<2x4x4xf64>, tensor<2x4x4xf64>,
             tensor<2x4x8xf64>, tensor<2x4x4xf64>, tensor<2x4x8xf64>)
          -> (tensor<2x4x8xf64>, tensor<2x4x4xf64>, tensor<2x4x4xf64>)
      mtp.accumulate "y", %y : tensor<2x4x8xf64>
      mtp.accumulate "lse", %lse : tensor<2x4x4xf64>
      mtp.accumulate "dq", %dq : tensor<2x4x8xf64>
      mtp.accumulate "dk", %dk : tensor<2x4x4xf64>
      mtp.accumulate "dv", %dv : tensor<2x4x4xf64>
      mtp.yield })";
  const char *const partitioned = R"(mtp.segment @m () {
      %q = mtp.input "q" dims ["batch", "sequence", "other"]
          {layout = #mtp.layout<[["dp"], ["cp"], ["tp"]]>} : tensor<1x2x4xf64>
      %k = mtp.input "k" dims ["batch", "sequence", "other"]
          {layout = #mtp.layout<[["dp"], [], ["tp"]]>} : tensor<1x4x2xf64>
      %rq = mtp.rope "rope" (%q) {head_dim = 2 : i64, rotary_dim = 2 : i64,
          theta = 100.0 : f64, mtp.strategy =
          #mtp.strategy<"dp" = "b", "cp" = "s", "tp" = "a">}
          : tensor<1x2x4xf64>
      %y, %lse = mtp.attention "core" (%rq, %k, %k) {head_dim = 2 : i64,
          causal = true, scale = 0.7 : f64, rate = 0.4 : f64, mask = "core",
          mtp.strategy = #mtp.strategy<"dp" = "b", "cp" = "s", "tp" = "g">}
          : (tensor<1x2x4xf64>, tensor<1x4x2xf64>, tensor<1x4x2xf64>)
          -> (tensor<1x2x4xf64>, tensor<1x2x2xf64>)
      %dq, %dk, %dv = mtp.attention_grad "core.grad"
          (%rq, %k, %k, %y, %lse, %q) {head_dim = 2 : i64,
          causal = true, scale = 0.7 : f64, rate = 0.4 : f64, mask = "core",
          mtp.strategy = #mtp.strategy<"dp" = "b", "cp" = "s", "tp" = "g">}
          : (tensor<1x2x4xf64>, tensor<1x4x2xf64>, tensor<1x4x2xf64>,
             tensor<1x2x4xf64>, tensor<1x2x2xf64>, tensor<1x2x4xf64>)
          -> (tensor<1x2x4xf64>, tensor<1x4x2xf64>, tensor<1x4x2xf64>)
      mtp.accumulate "y", %y
          {layout = #mtp.layout<[["dp"], ["cp"], ["tp"]]>} : tensor<1x2x4xf64>
      mtp.accumulate "lse", %lse
          {layout = #mtp.layout<[["dp"], ["cp"], ["tp"]]>} : tensor<1x2x2xf64>
      mtp.accumulate "dq", %dq
          {layout = #mtp.layout<[["dp"], ["cp"], ["tp"]]>} : tensor<1x2x4xf64>
      mtp.accumulate "dk", %dk {layout =
          #mtp.layout<[["dp"], [], ["tp"]], partial = ["cp"]>}
          : tensor<1x4x2xf64>
      mtp.accumulate "dv", %dv {layout =
          #mtp.layout<[["dp"], [], ["tp"]], partial = ["cp"]>}
          : tensor<1x4x2xf64>
      mtp.yield })";
  expectEqual(compare(logical, R"("dp" = 2, "cp" = 2, "tp" = 2)", partitioned));
}

TEST_F(InterpretRanks, AVocabularyWithARankOfPaddingOnly) {
  // Four ranks share eight classes, of which five are real.
  const char *const logical = R"(mtp.segment @m () {
      %z = mtp.input "z" dims ["batch", "sequence", "other"]
          : tensor<2x3x8xf64>
      %t = mtp.input "targets" dims ["batch", "sequence"] below 5
          : tensor<2x3xi32>
      %n = mtp.input "count" dims [] : tensor<f64>
      %m = mtp.vocab_max "max" (%z) {classes = 5 : i64}
          : (tensor<2x3x8xf64>) -> tensor<2x3xf64>
      %e = mtp.vocab_sum_exp "exp" (%z, %m) {classes = 5 : i64}
          : (tensor<2x3x8xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
      %p = mtp.vocab_pick "pick" (%z, %t)
          : (tensor<2x3x8xf64>, tensor<2x3xi32>) -> tensor<2x3xf64>
      %l = mtp.token_loss "loss" (%m, %e, %p, %t, %n)
          : (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>,
             tensor<2x3xi32>, tensor<f64>) -> tensor<f64>
      %d = mtp.cross_entropy_grad "loss.grad" (%z, %m, %e, %t, %n)
          {classes = 5 : i64}
          : (tensor<2x3x8xf64>, tensor<2x3xf64>, tensor<2x3xf64>,
             tensor<2x3xi32>, tensor<f64>) -> tensor<2x3x8xf64>
      mtp.accumulate "loss", %l : tensor<f64>
      mtp.accumulate "dz", %d : tensor<2x3x8xf64>
      mtp.yield })";
  const char *const partitioned = R"(mtp.segment @m () {
      %z = mtp.input "z" dims ["batch", "sequence", "other"]
          {layout = #mtp.layout<[[], [], ["tp"]]>} : tensor<2x3x2xf64>
      %t = mtp.input "targets" dims ["batch", "sequence"] below 5
          {layout = #mtp.layout<[[], []]>} : tensor<2x3xi32>
      %n = mtp.input "count" dims [] {layout = #mtp.layout<[]>} : tensor<f64>
      %mp = mtp.vocab_max "max" (%z)
          {classes = 5 : i64, mtp.strategy = #mtp.strategy<"tp" = "v">}
          : (tensor<2x3x2xf64>) -> tensor<2x3xf64>
      %m = mtp.all_reduce %mp over "tp" max cause "max" : tensor<2x3xf64>
      %ep = mtp.vocab_sum_exp "exp" (%z, %m)
          {classes = 5 : i64, mtp.strategy = #mtp.strategy<"tp" = "v">}
          : (tensor<2x3x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
      %e = mtp.all_reduce %ep over "tp" cause "exp" : tensor<2x3xf64>
      %pp = mtp.vocab_pick "pick" (%z, %t)
          {mtp.strategy = #mtp.strategy<"tp" = "v">}
          : (tensor<2x3x2xf64>, tensor<2x3xi32>) -> tensor<2x3xf64>
      %p = mtp.all_reduce %pp over "tp" cause "pick" : tensor<2x3xf64>
      %l = mtp.token_loss "loss" (%m, %e, %p, %t, %n)
          {mtp.strategy = #mtp.strategy<>}
          : (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>,
             tensor<2x3xi32>, tensor<f64>) -> tensor<f64>
      %d = mtp.cross_entropy_grad "loss.grad" (%z, %m, %e, %t, %n)
          {classes = 5 : i64, mtp.strategy = #mtp.strategy<"tp" = "v">}
          : (tensor<2x3x2xf64>, tensor<2x3xf64>, tensor<2x3xf64>,
             tensor<2x3xi32>, tensor<f64>) -> tensor<2x3x2xf64>
      mtp.accumulate "loss", %l {layout = #mtp.layout<[]>} : tensor<f64>
      mtp.accumulate "dz", %d {layout = #mtp.layout<[[], [], ["tp"]]>}
          : tensor<2x3x2xf64>
      mtp.yield })";
  expectEqual(compare(logical, R"("tp" = 4)", partitioned));
}

TEST_F(InterpretRanks, TablesSplitByRowsAndByPositions) {
  const char *const logical = R"(mtp.segment @m () {
      %i = mtp.input "ids" dims ["batch", "sequence"] below 6 : tensor<2x4xi32>
      %w = mtp.parameter "wte" : tensor<6x2xf64>
      %p = mtp.parameter "wpe" : tensor<4x2xf64>
      %x = mtp.embedding "e" (%i, %w)
          : (tensor<2x4xi32>, tensor<6x2xf64>) -> tensor<2x4x2xf64>
      %y = mtp.position_embedding "p" (%x, %p)
          : (tensor<2x4x2xf64>, tensor<4x2xf64>) -> tensor<2x4x2xf64>
      %dw = mtp.embedding_grad "e.dw" (%i, %y)
          : (tensor<2x4xi32>, tensor<2x4x2xf64>) -> tensor<6x2xf64>
      %dp = mtp.position_embedding_grad "p.dw" (%y)
          : (tensor<2x4x2xf64>) -> tensor<4x2xf64>
      mtp.accumulate "wte", %dw : tensor<6x2xf64>
      mtp.accumulate "wpe", %dp : tensor<4x2xf64>
      mtp.yield })";
  const char *const partitioned = R"(mtp.segment @m () {
      %i = mtp.input "ids" dims ["batch", "sequence"] below 6
          {layout = #mtp.layout<[[], ["cp"]]>} : tensor<2x2xi32>
      %w = mtp.parameter "wte" {layout = #mtp.layout<[["tp"], []]>}
          : tensor<2x2xf64>
      %p = mtp.parameter "wpe" {layout = #mtp.layout<[["cp"], []]>}
          : tensor<2x2xf64>
      %xp = mtp.embedding "e" (%i, %w)
          {mtp.strategy = #mtp.strategy<"cp" = "d1", "tp" = "v">}
          : (tensor<2x2xi32>, tensor<2x2xf64>) -> tensor<2x2x2xf64>
      %x = mtp.all_reduce %xp over "tp" cause "e" : tensor<2x2x2xf64>
      %y = mtp.position_embedding "p" (%x, %p)
          {mtp.strategy = #mtp.strategy<"cp" = "s">}
          : (tensor<2x2x2xf64>, tensor<2x2xf64>) -> tensor<2x2x2xf64>
      %dw = mtp.embedding_grad "e.dw" (%i, %y)
          {mtp.strategy = #mtp.strategy<"cp" = "d1", "tp" = "v">}
          : (tensor<2x2xi32>, tensor<2x2x2xf64>) -> tensor<2x2xf64>
      %dp = mtp.position_embedding_grad "p.dw" (%y)
          {mtp.strategy = #mtp.strategy<"cp" = "s">}
          : (tensor<2x2x2xf64>) -> tensor<2x2xf64>
      mtp.accumulate "wte", %dw
          {layout = #mtp.layout<[["tp"], []], partial = ["cp"]>}
          : tensor<2x2xf64>
      mtp.accumulate "wpe", %dp {layout = #mtp.layout<[["cp"], []]>}
          : tensor<2x2xf64>
      mtp.yield })";
  expectEqual(compare(logical, R"("cp" = 2, "tp" = 3)", partitioned));
}

//===----------------------------------------------------------------------===//
// The comparison itself
//===----------------------------------------------------------------------===//

RunResult holding(double large, double small) {
  RunResult result;
  result.gradients[{"large", 0}].ranks = {tensor({2}, {large, 0})};
  result.gradients[{"small", 0}].ranks = {tensor({1}, {small})};
  return result;
}

TEST(InterpretCompare, ErrorsAreRelativeToTheLargestElement) {
  const Comparison found = compareRuns(holding(4, 2), holding(4, 3));
  EXPECT_DOUBLE_EQ(found.worst, 0.5);
  EXPECT_EQ(found.name, "small");
  EXPECT_EQ(found.kind, "gradient");
  EXPECT_EQ(found.tensors, 2);
}

TEST(InterpretCompare, RoundingOfAZeroIsNotAnError) {
  // 1e-17 and -1e-17 differ by 200 %, but little relative to the largest
  // gradient.
  EXPECT_LT(compareRuns(holding(4, 1e-17), holding(4, -1e-17)).worst, 1e-11);
}

TEST(InterpretCompare, NaNAbsenceAndOtherShapesAreInfinitelyWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(compareRuns(holding(1, 1), holding(1, nan)).worst, infinity);
  EXPECT_EQ(compareRuns(holding(1, nan), holding(1, nan)).worst, infinity);
  EXPECT_EQ(compareRuns(holding(1, infinity), holding(1, infinity)).worst,
            infinity);
  RunResult other = holding(1, 1);
  other.gradients.erase({"small", 0});
  EXPECT_EQ(compareRuns(holding(1, 1), other).worst, infinity);
  EXPECT_EQ(compareRuns(other, holding(1, 1)).worst, infinity);
  other = holding(1, 1);
  other.gradients[{"small", 0}].ranks = {tensor({2}, {1, 1})};
  EXPECT_EQ(compareRuns(holding(1, 1), other).worst, infinity);
}

} // namespace
} // namespace mtplan::ir

//===- gradient_test.cpp - Gradients against difference quotients ---------===//
//
// Differentiates small models, one for each family of operators, and interprets
// the step in double precision. The accumulated gradients of sampled parameter
// elements must equal difference quotients of the loss. Dropout is on, since
// masks depend on names only and so are equal in all runs.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "ir/interpret/interpret.h"
#include "passes/passes.h"

namespace mtplan::passes {
namespace {

/// Describes a model. `block` computes %y from %x, both tensor<2x4x8xf32>, and
/// is repeated; `tail` computes %y after the embedding. The first `classes` of
/// 11 logits count. A `seed` other than 1 keeps inputs away from kinks of the
/// nonlinearity.
struct Family {
  std::string name;
  std::string block;
  std::string tail = R"(%y = mtp.scale "tail" (%x) by 1.5 : $T)";
  int classes = 11;
  std::uint64_t seed = 1;
};

void PrintTo(const Family &family, std::ostream *out) { *out << family.name; }

// Replaces $T, $W, ... by frequent types.
std::string expand(std::string text) {
  const std::pair<std::string, std::string> types[] = {
      {"$T", "tensor<2x4x8xf32>"},  {"$W", "tensor<8x8xf32>"},
      {"$V", "tensor<8xf32>"},      {"$K", "tensor<2x4x4xf32>"},
      {"$L", "tensor<2x4x11xf32>"}, {"$M", "tensor<2x4xf32>"},
      {"$I", "tensor<2x4xi32>"},    {"$E", "tensor<11x8xf32>"}};
  for (const auto &[mark, type] : types)
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;)
      text.replace(at, mark.size(), type);
  return text;
}

// Returns a program: the embedding, two layers, and a head tied to the
// embedding.
std::string program(const Family &family) {
  const std::string classes =
      "{classes = " + std::to_string(family.classes) + " : i64}";
  return expand(R"(
    mtp.segment @embed () {
      %ids = mtp.input "ids" dims ["batch", "sequence"] below 11 : $I
      %w = mtp.parameter "wte.weight" : $E
      %x = mtp.embedding "wte" (%ids, %w) : ($I, $E) -> $T
      )" + family.tail +
                R"(
      mtp.yield %y : $T
    }
    mtp.segment @h repeat 2 (%x: $T) {
      )" + family.block +
                R"(
      mtp.yield %y : $T
    }
    mtp.segment @head (%x: $T) {
      %targets = mtp.input "targets" dims ["batch", "sequence"] below )" +
                std::to_string(family.classes) + R"( : $I
      %count = mtp.input "count" dims [] : tensor<f32>
      %w = mtp.parameter "wte.weight" : $E
      %l = mtp.einsum "lm_head" "bsi,vi->bsv" (%x, %w) : ($T, $E) -> $L
      %m = mtp.vocab_max "loss.max" (%l) )" +
                classes + R"( : ($L) -> $M
      %s = mtp.vocab_sum_exp "loss.sum_exp" (%l, %m) )" +
                classes + R"( : ($L, $M) -> $M
      %p = mtp.vocab_pick "loss.pick" (%l, %targets) : ($L, $I) -> $M
      %loss = mtp.token_loss "loss" (%m, %s, %p, %targets, %count)
          : ($M, $M, $M, $I, tensor<f32>) -> tensor<f32>
      mtp.yield
    })");
}

class Gradient : public ::testing::TestWithParam<Family> {
protected:
  Gradient() { context.loadDialect<ir::MtpDialect>(); }

  static ir::RunOptions unperturbed() {
    ir::RunOptions options;
    options.seed = GetParam().seed;
    return options;
  }

  /// Returns the sum of all losses, with one element changed by `delta`.
  double lossAt(mlir::ModuleOp module, const ir::TensorKey &key,
                std::int64_t element, double delta) {
    ir::RunOptions options = unperturbed();
    options.perturbation = {key.label, key.copy, element, delta};
    auto run = ir::interpret(module, options);
    if (mlir::failed(run)) {
      ADD_FAILURE() << "does not run";
      return 0.0;
    }
    double loss = 0.0;
    for (const auto &[label, result] : run->results)
      loss += result.ranks.front().data.front();
    return loss;
  }

  /// Returns the difference quotient of five points. Its error is of fourth
  /// order in `delta`, far below the tolerance, and rounding adds about 1e-12.
  double quotient(mlir::ModuleOp module, const ir::TensorKey &key,
                  std::int64_t element) {
    const double delta = 1e-4;
    const auto loss = [&](double steps) {
      return lossAt(module, key, element, steps * delta);
    };
    return (8 * (loss(1) - loss(-1)) - (loss(2) - loss(-2))) / (12 * delta);
  }

  mlir::MLIRContext context;
};

// Returns the first, the last and up to six other elements.
std::set<std::int64_t> sample(std::int64_t count, std::mt19937_64 &random) {
  std::set<std::int64_t> elements = {0, count - 1};
  for (int i = 0; i < 6; ++i)
    elements.insert(static_cast<std::int64_t>(random() % count));
  return elements;
}

TEST_P(Gradient, EqualsTheDifferenceQuotient) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      program(GetParam()), mlir::ParserConfig(&context));
  ASSERT_TRUE(module);
  mlir::PassManager manager(&context);
  manager.addPass(createDifferentiatePass());
  manager.addPass(createVerifyGradientsPass());
  ASSERT_TRUE(mlir::succeeded(manager.run(*module)));
  auto run = ir::interpret(*module, unperturbed());
  ASSERT_TRUE(mlir::succeeded(run));
  ASSERT_FALSE(run->gradients.empty());
  std::mt19937_64 random(7);
  for (const auto &[key, gradient] : run->gradients) {
    const std::vector<double> &values = gradient.ranks.front().data;
    double largest = 0.0;
    for (double value : values)
      largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 1e-5) << key.name() << " is hardly tested";
    for (std::int64_t element :
         sample(static_cast<std::int64_t>(values.size()), random))
      EXPECT_NEAR(values[element], quotient(*module, key, element),
                  1e-6 * std::abs(values[element]) + 1e-9 * largest + 1e-10)
          << key.name() << ", element " << element;
  }
}

//===----------------------------------------------------------------------===//
// The families
//===----------------------------------------------------------------------===//

// Multiplies by a parameter, in blocks that have no other parameter.
const std::string kProduct = R"(
  %w = mtp.parameter "h.*.fc.weight" : $W
  %p = mtp.einsum "h.*.fc" "bsi,io->bso" (%x, %w) : ($T, $W) -> $T
)";

Family activation(const std::string &kind, std::uint64_t seed = 1) {
  Family family;
  family.name = kind;
  family.block =
      kProduct + "%y = mtp.activation \"h.*.act\" " + kind + " (%p) : $T";
  family.seed = seed;
  return family;
}

Family attention(const std::string &name, const std::string &causal) {
  return {name, R"(
  %wq = mtp.parameter "h.*.q.weight" : $W
  %wk = mtp.parameter "h.*.k.weight" : tensor<8x4xf32>
  %wv = mtp.parameter "h.*.v.weight" : tensor<8x4xf32>
  %q = mtp.einsum "h.*.q" "bsi,io->bso" (%x, %wq) : ($T, $W) -> $T
  %k = mtp.einsum "h.*.k" "bsi,io->bso" (%x, %wk) : ($T, tensor<8x4xf32>) -> $K
  %v = mtp.einsum "h.*.v" "bsi,io->bso" (%x, %wv) : ($T, tensor<8x4xf32>) -> $K
  %y, %lse = mtp.attention "h.*.core" (%q, %k, %v)
      {head_dim = 2 : i64, causal = )" +
                    causal + R"(, scale = 0.7 : f64, rate = 0.25 : f64,
       mask = "h.*.core"} : ($T, $K, $K) -> ($T, $K))"};
}

// Returns an attention block with a table of relative position biases, which
// all layers share.
Family biased(const std::string &name, const std::string &causal) {
  Family family = attention(name, causal);
  family.block =
      "  %t = mtp.parameter \"bias.weight\" : tensor<6x4xf32>" + family.block;
  for (auto [from, to] :
       {std::pair<std::string, std::string>{"(%q, %k, %v)", "(%q, %k, %v, %t)"},
        {"rate = 0.25", "max_distance = 3 : i64, rate = 0.25"},
        {"($T, $K, $K) ->", "($T, $K, $K, tensor<6x4xf32>) ->"}})
    family.block.replace(family.block.find(from), from.size(), to);
  return family;
}

// The block multiplies x rotated and unrotated, since rotations alone cancel.
Family rope(const std::string &name, const std::string &form) {
  return {name, kProduct + R"(
  %r = mtp.rope "h.*.rope" (%p) {head_dim = 4 : i64, theta = 10.0 : f64, )" +
                    form + R"(} : $T
  %y = mtp.mul "h.*.mul" (%r, %x) : $T)"};
}

const Family kEinsum = {"einsum_with_bias", R"(
  %w = mtp.parameter "h.*.fc.weight" : $W
  %b = mtp.parameter "h.*.fc.bias" {init = "zeros"} : $V
  %y = mtp.einsum "h.*.fc" "bsi,io->bso" (%x, %w, %b) : ($T, $W, $V) -> $T)"};

const Family kTwoActivations = {"einsum_of_two_activations", R"(
  %t = mtp.einsum "h.*.scores" "bsi,bti->bst" (%x, %x) : ($T, $T) -> $K
  %y = mtp.einsum "h.*.mix" "bst,bti->bsi" (%t, %x) : ($K, $T) -> $T)"};

const Family kFanOut = {"one_value_read_often", kProduct + R"(
  %a = mtp.add "h.*.add" (%p, %x) : $T
  %m = mtp.mul "h.*.mul" (%a, %p) : $T
  %s = mtp.scale "h.*.scale" (%m) by -0.5 : $T
  %q = mtp.mul "h.*.square" (%x, %x) : $T
  %t = mtp.add "h.*.twice" (%q, %q) : $T
  %y = mtp.add "h.*.out" (%s, %t) : $T)"};

const Family kDropout = {"dropout", kProduct + R"(
  %y = mtp.dropout "h.*.drop" (%p) {rate = 0.4 : f64, mask = "h.*.drop"} : $T)"};

const Family kSoftcap = {
    "softcap",
    kProduct +
        R"(%y = mtp.logit_softcap "h.*.cap" (%p) {cap = 1.5 : f64} : $T)"};

const Family kSwiglu = {"swiglu", kProduct + R"(
  %wu = mtp.parameter "h.*.up.weight" : $W
  %u = mtp.einsum "h.*.up" "bsi,io->bso" (%x, %wu) : ($T, $W) -> $T
  %y = mtp.swiglu "h.*.act" (%p, %u) : $T)"};

const Family kSoftmax = {"softmax", kProduct + R"(
  %y = mtp.softmax "h.*.softmax" (%p) : $T)"};

const Family kLayerNorm = {"layer_norm", R"(
  %g = mtp.parameter "h.*.ln.weight" {init = "ones"} : $V
  %b = mtp.parameter "h.*.ln.bias" {init = "zeros"} : $V
  %y = mtp.layer_norm "h.*.ln" (%x, %g, %b) {epsilon = 1.0e-3 : f64}
      : ($T, $V, $V) -> $T)"};

const Family kRmsNorm = {"rms_norm", R"(
  %g = mtp.parameter "h.*.ln.weight" {init = "ones"} : $V
  %y = mtp.rms_norm "h.*.ln" (%x, %g) {epsilon = 1.0e-3 : f64}
      : ($T, $V) -> $T)"};

// Each of two heads is a row.
const Family kLayerNormOfHeads = {"layer_norm_of_heads", R"(
  %g = mtp.parameter "h.*.ln.weight" {init = "ones"} : tensor<4xf32>
  %b = mtp.parameter "h.*.ln.bias" {init = "zeros"} : tensor<4xf32>
  %y = mtp.layer_norm "h.*.ln" (%x, %g, %b)
      {epsilon = 1.0e-3 : f64, head_dim = 4 : i64}
      : ($T, tensor<4xf32>, tensor<4xf32>) -> $T)"};

const Family kRmsNormOfHeads = {"rms_norm_of_heads", R"(
  %g = mtp.parameter "h.*.ln.weight" {init = "ones"} : tensor<4xf32>
  %y = mtp.rms_norm "h.*.ln" (%x, %g)
      {epsilon = 1.0e-3 : f64, head_dim = 4 : i64}
      : ($T, tensor<4xf32>) -> $T)"};

const Family kPositions = {"positions", kProduct + R"(
  %y = mtp.add "h.*.add" (%p, %x) : $T)",
                           R"(
  %t = mtp.parameter "wpe.weight" : tensor<6x8xf32>
  %y = mtp.position_embedding "wpe" (%x, %t) : ($T, tensor<6x8xf32>) -> $T)"};

// Prepends a token to each sample, and reads the first position.
const Family kFirst = {"first_position", kProduct + R"(
  %c = mtp.parameter "h.*.token.weight" : $V
  %f = mtp.put_first "h.*.token" (%p, %c) : ($T, $V) -> $T
  %a = mtp.take_first "h.*.first" (%x) : ($T) -> tensor<2x8xf32>
  %s = mtp.einsum "h.*.spread" "bi,bsi->bsi" (%a, %f)
      : (tensor<2x8xf32>, $T) -> $T
  %y = mtp.add "h.*.add" (%s, %f) : $T)"};

// Each sample has eight choices among four experts with a capacity of two each,
// so that some choices are dropped. With this seed, no perturbation changes a
// choice.
Family experts(const std::string &name, const std::string &choice,
               const std::string &more = "", std::uint64_t seed = 1) {
  return {name,
          R"(
  %wr = mtp.parameter "h.*.router.weight" : tensor<8x4xf32>
  %z = mtp.einsum "h.*.router" "bsi,ie->bse" (%x, %wr)
      : ($T, tensor<8x4xf32>) -> $K
  %g = mtp.moe_gate "h.*.gate" (%z) {)" +
              choice + R"(} : $K
  %t = mtp.moe_slots "h.*.slots" (%z) {top_k = 2 : i64}
      : ($K) -> tensor<2x4x4xi32>
  %d = mtp.moe_dispatch "h.*.dispatch" (%x, %t)
      : ($T, tensor<2x4x4xi32>) -> tensor<4x2x2x8xf32>
  %we = mtp.parameter "h.*.experts.weight" : tensor<4x8x8xf32>
  %e = mtp.einsum "h.*.experts" "ebci,eio->ebco" (%d, %we)
      : (tensor<4x2x2x8xf32>, tensor<4x8x8xf32>) -> tensor<4x2x2x8xf32>
  %c = mtp.moe_combine "h.*.combine" (%e, %g, %t)
      : (tensor<4x2x2x8xf32>, $K, tensor<2x4x4xi32>) -> $T
  %y = mtp.add "h.*.add" (%c, %x) : $T
  )" + more,
          R"(%y = mtp.scale "tail" (%x) by 1.5 : $T)", 11, seed};
}

const std::string kBalance = R"(
  %count = mtp.input "count" dims [] : tensor<f32>
  %l = mtp.balance_loss "h.*.balance" (%z, %count)
      {top_k = 2 : i64, coefficient = 0.5 : f64}
      : ($K, tensor<f32>) -> tensor<f32>)";

const Family kPadding = {"padding_classes", kEinsum.block, kEinsum.tail, 9};

std::string nameOf(const ::testing::TestParamInfo<Family> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Linear, Gradient,
                         ::testing::Values(kEinsum, kTwoActivations, kFanOut,
                                           kPositions, kPadding, kFirst),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    Pointwise, Gradient,
    ::testing::Values(activation("gelu"), activation("gelu_tanh"),
                      activation("silu"), activation("relu", 2),
                      activation("tanh"), activation("sigmoid"), kDropout,
                      kSwiglu, kSoftcap),
    nameOf);
INSTANTIATE_TEST_SUITE_P(Norm, Gradient,
                         ::testing::Values(kSoftmax, kLayerNorm, kRmsNorm,
                                           kLayerNormOfHeads, kRmsNormOfHeads),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    Attention, Gradient,
    ::testing::Values(attention("causal", "true"), attention("full", "false"),
                      biased("causal_by_distance", "true"),
                      biased("full_by_distance", "false"),
                      rope("halves", "rotary_dim = 4 : i64"),
                      rope("neighbours", "rotary_dim = 4 : i64, interleaved"),
                      rope("part_of_a_head", "rotary_dim = 2 : i64")),
    nameOf);
INSTANTIATE_TEST_SUITE_P(
    Experts, Gradient,
    ::testing::Values(experts("gates_normalised", "top_k = 2 : i64, normalise"),
                      experts("gates_as_they_are", "top_k = 2 : i64"),
                      experts("balance", "top_k = 2 : i64, normalise",
                              kBalance)),
    nameOf);

} // namespace
} // namespace mtplan::passes

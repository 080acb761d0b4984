//===- reference_test.cpp - The reference against definitions ---*- C++ -*-===//

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "runtime/backend/signature.h"
#include "tests/runtime/backend/kernel_case.h"

using namespace mtplan::runtime;
using namespace mtplan::runtime::testing;

namespace {

constexpr ElementType kF64 = ElementType::f64;

std::vector<Doubles> run(const Case &one) {
  return one.run(*makeReferenceBackend());
}

double dot(const Doubles &a, const Doubles &b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

Doubles normals(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Doubles values(count);
  for (double &value : values)
    value = normal(random);
  return values;
}

/// Checks the gradient of operand `operand` by central differences along a
/// random direction. The differentiated function is the sum of the forward
/// results, multiplied by `weights`.
void expectSlope(Case forward, std::size_t operand,
                 const std::vector<Doubles> &weights, const Doubles &gradient) {
  const Doubles at = forward.input(operand);
  ASSERT_EQ(at.size(), gradient.size());
  const Doubles direction = normals(at.size(), 99);
  constexpr double kStep = 1e-5;
  double difference = 0.0;
  for (double sign : {1.0, -1.0}) {
    Doubles moved = at;
    for (std::size_t i = 0; i < at.size(); ++i)
      moved[i] += sign * kStep * direction[i];
    forward.setInput(operand, moved);
    const std::vector<Doubles> results = run(forward);
    for (std::size_t i = 0; i < weights.size(); ++i)
      difference += sign * dot(weights[i], results[i]);
  }
  const double expected = difference / (2 * kStep);
  EXPECT_NEAR(dot(direction, gradient), expected,
              1e-7 * std::max(1.0, std::abs(expected)))
      << forward.spec.kernel << ", operand " << operand;
}

TEST(Reference, EinsumIsItsEquation) {
  // The loops below compute bsi,io->bso and bsi,bso->io.
  const TensorView x{kF64, {2, 3, 4}, {}}, w{kF64, {4, 5}, {}},
      y{kF64, {2, 3, 5}, {}}, bias{kF64, {5}, {}};
  const Case forward =
      Case("einsum").set("equation", "bsi,io->bso").in(x).in(w).in(bias).out(y);
  const Doubles a = forward.input(0), b = forward.input(1),
                c = forward.input(2), out = run(forward)[0];
  for (int t = 0; t < 6; ++t)
    for (int o = 0; o < 5; ++o) {
      double sum = c[o];
      for (int i = 0; i < 4; ++i)
        sum += a[t * 4 + i] * b[i * 5 + o];
      EXPECT_NEAR(out[t * 5 + o], sum, 1e-13);
    }
  const Case weights =
      Case("einsum").set("equation", "bsi,bso->io").in(x).in(y).out(w);
  const Doubles p = weights.input(0), q = weights.input(1),
                product = run(weights)[0];
  for (int i = 0; i < 4; ++i)
    for (int o = 0; o < 5; ++o) {
      double sum = 0.0;
      for (int t = 0; t < 6; ++t)
        sum += p[t * 4 + i] * q[t * 5 + o];
      EXPECT_NEAR(product[i * 5 + o], sum, 1e-13);
    }
}

TEST(Reference, AttentionIsSoftmaxOfMaskedScores) {
  // Two query heads share one key head. The queries are positions 1 and 2 of 3.
  const Case one = Case("attention")
                       .set("head_dim", std::int64_t{2})
                       .set("causal", std::int64_t{1})
                       .set("scale", 0.5)
                       .in({kF64, {1, 2, 4}, {{0, 1}, {1, 3}, {0, 4}}})
                       .in({kF64, {1, 3, 2}, {}})
                       .in({kF64, {1, 3, 2}, {}})
                       .out({kF64, {1, 2, 4}, {}})
                       .out({kF64, {1, 2, 2}, {}});
  const Doubles q = one.input(0), k = one.input(1), v = one.input(2);
  const std::vector<Doubles> results = run(one);
  for (int s = 0; s < 2; ++s)
    for (int head = 0; head < 2; ++head) {
      double total = 0.0, out[2] = {0.0, 0.0};
      for (int key = 0; key <= s + 1; ++key) {
        const double weight =
            std::exp(0.5 * (q[s * 4 + head * 2] * k[key * 2] +
                            q[s * 4 + head * 2 + 1] * k[key * 2 + 1]));
        total += weight;
        out[0] += weight * v[key * 2];
        out[1] += weight * v[key * 2 + 1];
      }
      for (int d = 0; d < 2; ++d)
        EXPECT_NEAR(results[0][s * 4 + head * 2 + d], out[d] / total, 1e-13);
      EXPECT_NEAR(results[1][s * 2 + head], std::log(total), 1e-13);
    }
}

TEST(Reference, AttentionHasItsSlope) {
  for (const auto &[biased, softcap] :
       {std::pair{false, 0.0}, {true, 0.0}, {false, 0.6}}) {
    const TensorView query{kF64, {2, 3, 8}, {{1, 4}, {2, 5}, {0, 16}}};
    const TensorView key{kF64, {2, 5, 4}, {}}, lse{kF64, {2, 3, 4}, {}},
        bias{kF64, {8, 4}, {}};
    const auto settings = [biased = biased, softcap = softcap](Case one) {
      if (softcap > 0.0)
        one.set("softcap", softcap);
      one.set("head_dim", std::int64_t{2})
          .set("causal", std::int64_t{biased ? 0 : 1})
          .set("scale", 0.7)
          .set("rate", 0.3)
          .set("mask", "h.*.drop");
      if (biased)
        one.set("max_distance", std::int64_t{6});
      return one;
    };
    Case forward = settings(Case("attention")).in(query).in(key).in(key);
    if (biased)
      forward.in(bias);
    forward.out(query).out(lse);
    const std::vector<Doubles> results = run(forward);
    const Doubles weights = normals(results[0].size(), 4);
    Case backward = settings(Case("attention_grad"))
                        .in(query, forward.input(0))
                        .in(key, forward.input(1))
                        .in(key, forward.input(2))
                        .in(query, results[0])
                        .in(lse, results[1])
                        .in(query, weights);
    if (biased)
      backward.in(bias, forward.input(3));
    backward.out(query).out(key).out(key);
    if (biased)
      backward.out(bias);
    const std::vector<Doubles> gradients = run(backward);
    for (std::size_t operand = 0; operand < gradients.size(); ++operand)
      expectSlope(forward, operand, {weights}, gradients[operand]);
  }
}

TEST(Reference, NormsHaveTheirSlopes) {
  const TensorView x{kF64, {2, 3, 8}, {}}, gamma{kF64, {8}, {}};
  for (bool centred : {true, false}) {
    Case forward = Case(centred ? "layer_norm" : "rms_norm").in(x).in(gamma);
    if (centred)
      forward.in(gamma);
    forward.out(x);
    const Doubles weights = normals(48, 5);
    Case backward = Case(centred ? "layer_norm_grad" : "rms_norm_grad")
                        .in(x, forward.input(0))
                        .in(gamma, forward.input(1))
                        .in(x, weights)
                        .out(x)
                        .out(gamma);
    if (centred)
      backward.out(gamma);
    const std::vector<Doubles> gradients = run(backward);
    for (std::size_t operand = 0; operand < gradients.size(); ++operand)
      expectSlope(forward, operand, {weights}, gradients[operand]);
  }
}

TEST(Reference, NormalisesHeads) {
  const Case heads = Case("rms_norm")
                         .set("epsilon", 0.0)
                         .set("head_dim", std::int64_t{2})
                         .in({kF64, {1, 4}, {}}, Doubles{3, 1, 0, 2})
                         .in({kF64, {2}, {}}, Doubles{1, 10})
                         .out({kF64, {1, 4}, {}});
  // The mean squares are 5 and 2.
  const Doubles out = run(heads)[0];
  EXPECT_NEAR(out[0], 3 / std::sqrt(5.0), 1e-14);
  EXPECT_NEAR(out[1], 10 / std::sqrt(5.0), 1e-14);
  EXPECT_NEAR(out[2], 0.0, 1e-14);
  EXPECT_NEAR(out[3], 20 / std::sqrt(2.0), 1e-14);
}

TEST(Reference, NormalisesRows) {
  const Case one = Case("layer_norm")
                       .set("epsilon", 0.0)
                       .in({kF64, {1, 4}, {}}, Doubles{1, 2, 3, 6})
                       .in({kF64, {4}, {}}, Doubles{1, 1, 1, 2})
                       .in({kF64, {4}, {}}, Doubles{0, 0, 5, 0})
                       .out({kF64, {1, 4}, {}});
  // The mean is 3, and the variance (4 + 1 + 0 + 9) / 4.
  const double scale = 1.0 / std::sqrt(3.5);
  const Doubles out = run(one)[0];
  EXPECT_NEAR(out[0], -2 * scale, 1e-14);
  EXPECT_NEAR(out[1], -scale, 1e-14);
  EXPECT_NEAR(out[2], 5.0, 1e-14);
  EXPECT_NEAR(out[3], 6 * scale, 1e-14);
}

TEST(Reference, PointwiseOnesHaveTheirSlopes) {
  const TensorView x{kF64, {2, 3, 4}, {}};
  const Doubles weights = normals(24, 6);
  for (const char *kind : kActivations) {
    const Case forward = Case("activation").set("kind", kind).in(x).out(x);
    expectSlope(forward, 0, {weights},
                run(Case("activation_grad")
                        .set("kind", kind)
                        .in(x, forward.input(0))
                        .in(x, weights)
                        .out(x))[0]);
  }
  const Case swiglu = Case("swiglu").in(x).in(x).out(x);
  const std::vector<Doubles> gradients = run(Case("swiglu_grad")
                                                 .in(x, swiglu.input(0))
                                                 .in(x, swiglu.input(1))
                                                 .in(x, weights)
                                                 .out(x)
                                                 .out(x));
  expectSlope(swiglu, 0, {weights}, gradients[0]);
  expectSlope(swiglu, 1, {weights}, gradients[1]);
  const Case softcap = Case("logit_softcap").set("cap", 0.8).in(x).out(x);
  expectSlope(softcap, 0, {weights},
              run(Case("logit_softcap_grad")
                      .set("cap", 0.8)
                      .in(x, run(softcap)[0])
                      .in(x, weights)
                      .out(x))[0]);
  const Case softmax = Case("softmax").in(x).out(x);
  expectSlope(softmax, 0, {weights},
              run(Case("softmax_grad")
                      .in(x, run(softmax)[0])
                      .in(x, weights)
                      .out(x))[0]);
}

TEST(Reference, ActivationsHaveKnownValues) {
  const auto at = [](const char *kind, double x) {
    return run(Case("activation")
                   .set("kind", kind)
                   .in({kF64, {1}, {}}, Doubles{x})
                   .out({kF64, {1}, {}}))[0][0];
  };
  EXPECT_NEAR(at("gelu", 1.0), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(at("gelu_tanh", 1.0), 0.841191990607477, 1e-12);
  EXPECT_NEAR(at("silu", 2.0), 1.7615941559557649, 1e-15);
  EXPECT_EQ(at("relu", -3.0), 0.0);
  EXPECT_NEAR(at("sigmoid", 0.0), 0.5, 0.0);
}

TEST(Reference, ASoftCapBoundsLargeNumbersAndKeepsSmallOnes) {
  const auto at = [](double x) {
    return run(Case("logit_softcap")
                   .set("cap", 30.0)
                   .in({kF64, {1}, {}}, Doubles{x})
                   .out({kF64, {1}, {}}))[0][0];
  };
  EXPECT_NEAR(at(30.0), 30.0 * 0.7615941559557649, 1e-13);
  EXPECT_NEAR(at(1e6), 30.0, 1e-13);
  EXPECT_NEAR(at(-1e6), -30.0, 1e-13);
  EXPECT_NEAR(at(1e-3), 1e-3, 1e-12);
}

TEST(Reference, MixturesHaveTheirSlopes) {
  const TensorView logits{kF64, {2, 4, 3}, {}};
  for (std::int64_t normalise : {0, 1}) {
    const Case gate = Case("moe_gate")
                          .set("top_k", std::int64_t{2})
                          .set("normalise", normalise)
                          .in(logits)
                          .out(logits);
    const Doubles weights = normals(24, 7);
    expectSlope(gate, 0, {weights},
                run(Case("moe_gate_grad")
                        .set("top_k", std::int64_t{2})
                        .set("normalise", normalise)
                        .in(logits, gate.input(0))
                        .in(logits, weights)
                        .out(logits))[0]);
  }
  const auto balance = [&](const char *kernel, const Case *like) {
    return Case(kernel)
        .set("top_k", std::int64_t{1})
        .set("coefficient", 0.3)
        .in(logits, like ? std::optional(like->input(0)) : std::nullopt)
        .in({kF64, {}, {}}, Doubles{8.0});
  };
  const Case loss = balance("balance_loss", nullptr).out({kF64, {}, {}});
  expectSlope(loss, 0, {{1.0}},
              run(balance("balance_loss_grad", &loss).out(logits))[0]);
}

TEST(Reference, DispatchAndCombineHaveTheirSlopes) {
  const TensorView tokens{kF64, {2, 3, 4}, {}}, gates{kF64, {2, 3, 2}, {}},
      places{kF64, {2, 2, 2, 4}, {}};
  const Doubles slots = run(Case("moe_slots")
                                .set("top_k", std::int64_t{1})
                                .in(gates)
                                .out({ElementType::i32, {2, 3, 2}, {}}))[0];
  const TensorView held{ElementType::i32, {2, 3, 2}, {}};
  const Case dispatch =
      Case("moe_dispatch").in(tokens).in(held, slots).out(places);
  const Doubles weights = normals(32, 8);
  expectSlope(dispatch, 0, {weights},
              run(Case("moe_dispatch_grad")
                      .in(held, slots)
                      .in(places, weights)
                      .out(tokens))[0]);
  const Case combine =
      Case("moe_combine").in(places).in(gates).in(held, slots).out(tokens);
  const Doubles above = normals(24, 9);
  const std::vector<Doubles> gradients = run(Case("moe_combine_grad")
                                                 .in(places, combine.input(0))
                                                 .in(gates, combine.input(1))
                                                 .in(held, slots)
                                                 .in(tokens, above)
                                                 .out(places)
                                                 .out(gates));
  expectSlope(combine, 0, {above}, gradients[0]);
  expectSlope(combine, 1, {above}, gradients[1]);
}

TEST(Reference, SlotsCountFirstChoicesFirst) {
  // Three tokens choose both of two experts; tokens 0 and 2 prefer expert 1.
  const Doubles slots =
      run(Case("moe_slots")
              .set("top_k", std::int64_t{2})
              .in({kF64, {1, 3, 2}, {}}, Doubles{0, 1, 5, 2, 3, 4})
              .out({ElementType::i32, {1, 3, 2}, {}}))[0];
  EXPECT_EQ(slots, (Doubles{1, 0, 0, 2, 2, 1}));
}

TEST(Reference, CrossEntropyHasItsSlope) {
  // There are five classes and one column of padding. One token has no target.
  const TensorView logits{kF64, {1, 3, 6}, {}}, tokens{kF64, {1, 3}, {}},
      targets{ElementType::i32, {1, 3}, {}}, scalar{kF64, {}, {}};
  const Doubles chosen{4, -1, 0};
  const Doubles at = normals(18, 10);
  Doubles maximum, sumExp;
  const auto loss = [&](const Doubles &values) {
    const auto classes = std::int64_t{5};
    maximum = run(Case("vocab_max")
                      .set("classes", classes)
                      .in(logits, values)
                      .out(tokens))[0];
    sumExp = run(Case("vocab_sum_exp")
                     .set("classes", classes)
                     .in(logits, values)
                     .in(tokens, maximum)
                     .out(tokens))[0];
    const Doubles picked = run(Case("vocab_pick")
                                   .in(logits, values)
                                   .in(targets, chosen)
                                   .out(tokens))[0];
    return run(Case("token_loss")
                   .in(tokens, maximum)
                   .in(tokens, sumExp)
                   .in(tokens, picked)
                   .in(targets, chosen)
                   .in(scalar, Doubles{2.0})
                   .out(scalar))[0][0];
  };
  const double here = loss(at);
  double byHand = 0.0;
  for (int t : {0, 2}) {
    double total = 0.0;
    for (int v = 0; v < 5; ++v)
      total += std::exp(at[t * 6 + v]);
    byHand += (std::log(total) - at[t * 6 + (t == 0 ? 4 : 0)]) / 2.0;
  }
  EXPECT_NEAR(here, byHand, 1e-13);
  const Doubles gradient = run(Case("cross_entropy_grad")
                                   .set("classes", std::int64_t{5})
                                   .in(logits, at)
                                   .in(tokens, maximum)
                                   .in(tokens, sumExp)
                                   .in(targets, chosen)
                                   .in(scalar, Doubles{2.0})
                                   .out(logits))[0];
  for (std::size_t i = 0; i < at.size(); ++i) {
    Doubles up = at, down = at;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / 2e-5, 1e-9) << i;
  }
}

TEST(Reference, RopeRotatesAndBack) {
  // At position 3, the first pair is rotated by 3 radians, and the rest stays.
  const TensorView x{kF64, {1, 1, 4}, {{0, 1}, {3, 4}, {0, 4}}};
  const auto rope = [&](const Doubles &values, std::int64_t inverse) {
    return run(Case("rope")
                   .set("head_dim", std::int64_t{4})
                   .set("rotary_dim", std::int64_t{2})
                   .set("theta", 10000.0)
                   .set("inverse", inverse)
                   .in(x, values)
                   .out(x))[0];
  };
  const Doubles turned = rope({1, 0, 7, 8}, 0);
  EXPECT_NEAR(turned[0], std::cos(3.0), 1e-14);
  EXPECT_NEAR(turned[1], std::sin(3.0), 1e-14);
  EXPECT_EQ(turned[2], 7.0);
  EXPECT_NEAR(rope(turned, 1)[0], 1.0, 1e-14);
}

TEST(Reference, AdamwFollowsItsPaper) {
  // In step 1 from zero moments, the corrected moments are g and g^2.
  const TensorView one{kF64, {1}, {}};
  Case step = Case("adamw")
                  .set("decay", std::int64_t{1})
                  .in(one, Doubles{4.0})
                  .out(one, Doubles{1.0})
                  .out(one, Doubles{1.0})
                  .out(one, Doubles{0.0})
                  .out(one, Doubles{0.0});
  step.update = {.learningRate = 0.1,
                 .epsilon = 0.0,
                 .weightDecay = 0.5,
                 .step = 1,
                 .gradientFactor = 0.5};
  const std::vector<Doubles> results = run(step);
  EXPECT_NEAR(results[0][0], 1.0 - 0.1 * 0.5 - 0.1, 1e-14);
  EXPECT_NEAR(results[2][0], 0.1 * 2.0, 1e-15);
  EXPECT_NEAR(results[3][0], 0.001 * 4.0, 1e-15);
}

TEST(Reference, InvalidCallsAreReported) {
  const auto message = [](const Case &one) -> std::string {
    try {
      run(one);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(Case("rms_norm")
                        .set("head_dim", std::int64_t{3})
                        .in({kF64, {1, 4}, {}})
                        .in({kF64, {3}, {}})
                        .out({kF64, {1, 4}, {}})),
            "h.*.rms_norm (rms_norm): has head_dim 3 of 4 features and a gain "
            "of 3");
  EXPECT_EQ(message(Case("median")),
            "h.*.median (median): there is no such kernel");
  EXPECT_EQ(message(Case("add")
                        .in({kF64, {2, 3}, {}})
                        .in({kF64, {2, 4}, {}})
                        .out({kF64, {2, 3}, {}})),
            "h.*.add (add): input 1 is [2, 4], whose leading dimensions are "
            "[2, 3] elsewhere");
  EXPECT_EQ(message(Case("layer_norm")
                        .in({kF64, {2, 3}, {}})
                        .in({kF64, {4}, {}})
                        .in({kF64, {3}, {}})
                        .out({kF64, {2, 3}, {}})),
            "h.*.layer_norm (layer_norm): input 1 is [4], where dimension 0 is "
            "3 elsewhere");
  EXPECT_EQ(message(Case("activation")
                        .set("kind", "swish")
                        .in({kF64, {1}, {}})
                        .out({kF64, {1}, {}})),
            "h.*.activation (activation): kind 'swish' is not one of gelu, "
            "gelu_tanh, silu, relu, tanh, sigmoid");
  EXPECT_EQ(
      message(Case("logit_softcap").in({kF64, {1}, {}}).out({kF64, {1}, {}})),
      "h.*.logit_softcap (logit_softcap): needs a cap above 0");
}

} // namespace

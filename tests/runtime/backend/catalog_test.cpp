//===- catalog_test.cpp - Calls that every backend must get right ---------===//

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "runtime/backend/signature.h"
#include "tests/runtime/backend/conformance.h"

namespace mtplan::runtime::testing {
namespace {

constexpr std::int64_t kB = kSamples;

class Writer {
public:
  Writer(ElementType theType, unsigned theSeed)
      : type(theType),
        sum(type == ElementType::f64 ? ElementType::f64 : ElementType::f32),
        seed(theSeed) {}

  void products();
  void sums();
  void pointwise();
  void norms();
  void attention(const Shape &query, const Shape &key,
                 const std::vector<Span> &pieces, double rate, bool causal,
                 bool biased, std::int64_t width = 6, double softcap = 0.0);
  void rope(bool interleaved, bool inverse);
  void embeddings();
  void loss(std::int64_t width, Span classes);
  void mixtures();
  void positions();
  void moves();
  void updates();

  std::vector<Case> cases;

private:
  Case named(const char *kernel) {
    return Case(kernel, seed * 100 + static_cast<unsigned>(cases.size()));
  }
  TensorView of(const Shape &shape, std::vector<Span> pieces = {}) const {
    return {type, shape, std::move(pieces)};
  }
  TensorView summed(const Shape &shape) const { return {sum, shape, {}}; }

  /// Adds an einsum of random operands with the shapes `lhs` and `rhs`.
  void product(const char *equation, const Shape &lhs, const Shape &rhs,
               const TensorView &result, bool biased = false) {
    Case one = named("einsum");
    one.set("equation", equation).in(of(lhs)).in(of(rhs));
    if (biased)
      one.in(of({result.shape.back()}));
    cases.push_back(one.out(result));
  }

  const ElementType type, sum;
  const unsigned seed;
};

void Writer::products() {
  product("bsi,io->bso", {kB, 37, 50}, {50, 23}, of({kB, 37, 23}), true);
  product("bso,io->bsi", {kB, 37, 23}, {50, 23}, of({kB, 37, 50}));
  product("bsi,bso->io", {kB, 37, 50}, {kB, 37, 23}, summed({50, 23}));
  product("bsi,bso->io", {kB, 3, 20}, {kB, 3, 7}, of({20, 7}));
  // The next products are those of a tied head, and one whose result has the
  // right operand's dimensions first.
  product("bsh,vh->bsv", {kB, 9, 24}, {71, 24}, of({kB, 9, 71}));
  product("bsv,vh->bsh", {kB, 9, 71}, {71, 24}, of({kB, 9, 24}));
  product("bsv,bsh->vh", {kB, 9, 71}, {kB, 9, 24}, summed({71, 24}));
  product("io,bsi->bso", {12, 10}, {kB, 5, 12}, of({kB, 5, 10}), true);
  // The rows or columns of the next products fill several tiles and panels.
  product("bsi,io->bso", {kB, 300, 20}, {20, 530}, of({kB, 300, 530}), true);
  product("bsi,bso->io", {kB, 30, 300}, {kB, 30, 270}, summed({300, 270}));
  product("bsi,bso->io", {kB, 5, 300}, {kB, 5, 1300}, summed({300, 1300}));
  product("bi,io->bo", {kB, 30}, {30, 4200}, of({kB, 4200}));
  // The next products are those of classifiers and experts.
  product("bi,io->bo", {kB, 30}, {30, 7}, of({kB, 7}), true);
  product("bi,bo->io", {kB, 30}, {kB, 7}, summed({30, 7}));
  product("ebci,eio->ebco", {3, kB, 5, 12}, {3, 12, 10}, of({3, kB, 5, 10}));
  product("ebci,ebco->eio", {3, kB, 5, 12}, {3, kB, 5, 10},
          summed({3, 12, 10}));
  product("ebco,eio->ebci", {3, kB, 5, 10}, {3, 12, 10}, of({3, kB, 5, 12}));
}

void Writer::sums() {
  cases.push_back(named("sum").in(of({kB, 70, 23})).out(summed({23})));
  cases.push_back(named("sum").in(of({kB, 3, 1030})).out(summed({1030})));
  cases.push_back(named("sum").in(of({kB, 3, 5})).out(summed({3, 5})));
}

void Writer::pointwise() {
  const Shape small{kB, 7, 11}, large{kB, 11, 1500};
  for (const Shape &shape : {small, large}) {
    const TensorView x = of(shape);
    for (const char *kernel : {"add", "mul", "swiglu"})
      cases.push_back(named(kernel).in(x).in(x).out(x));
    cases.push_back(named("scale").set("factor", 0.37).in(x).out(x));
    cases.push_back(named("logit_softcap").set("cap", 1.5).in(x).out(x));
    cases.push_back(
        named("logit_softcap_grad").set("cap", 1.5).in(x).in(x).out(x));
    cases.push_back(named("swiglu_grad").in(x).in(x).in(x).out(x).out(x));
    for (const char *kind : kActivations) {
      cases.push_back(named("activation").set("kind", kind).in(x).out(x));
      cases.push_back(
          named("activation_grad").set("kind", kind).in(x).in(x).out(x));
    }
  }
  const std::vector<Span> pieces{{1, kB + 2}, {3, 20}, {11, 44}};
  for (double rate : {0.0, 0.3})
    cases.push_back(named("dropout")
                        .set("rate", rate)
                        .set("mask", "h.*.drop")
                        .in(of(small, pieces))
                        .out(of(small, pieces)));
  cases.push_back(named("dropout")
                      .set("rate", 0.1)
                      .set("mask", "embed.drop")
                      .in(of(large))
                      .out(of(large)));
}

void Writer::norms() {
  for (const Shape &shape : {Shape{kB, 37, 50}, Shape{kB, 3, 1100}}) {
    const TensorView x = of(shape), gamma = of({shape.back()}),
                     slope = summed({shape.back()});
    cases.push_back(named("layer_norm").in(x).in(gamma).in(gamma).out(x));
    cases.push_back(
        named("rms_norm").set("epsilon", 1e-3).in(x).in(gamma).out(x));
    cases.push_back(named("layer_norm_grad")
                        .in(x)
                        .in(gamma)
                        .in(x)
                        .out(x)
                        .out(slope)
                        .out(slope));
    cases.push_back(named("rms_norm_grad")
                        .set("epsilon", 1e-3)
                        .in(x)
                        .in(gamma)
                        .in(x)
                        .out(x)
                        .out(slope));
    // With head_dim, every tenth of the last dimension is a row.
    const std::int64_t width = shape.back() / 10;
    const TensorView head = of({width}), headSlope = summed({width});
    cases.push_back(named("layer_norm")
                        .set("head_dim", width)
                        .in(x)
                        .in(head)
                        .in(head)
                        .out(x));
    cases.push_back(
        named("rms_norm").set("head_dim", width).in(x).in(head).out(x));
    cases.push_back(named("layer_norm_grad")
                        .set("head_dim", width)
                        .in(x)
                        .in(head)
                        .in(x)
                        .out(x)
                        .out(headSlope)
                        .out(headSlope));
    cases.push_back(named("rms_norm_grad")
                        .set("head_dim", width)
                        .in(x)
                        .in(head)
                        .in(x)
                        .out(x)
                        .out(headSlope));
    cases.push_back(named("softmax").in(x).out(x));
    cases.push_back(named("softmax_grad").in(x).in(x).out(x));
  }
}

void Writer::attention(const Shape &query, const Shape &key,
                       const std::vector<Span> &pieces, double rate,
                       bool causal, bool biased, std::int64_t width,
                       double softcap) {
  const std::int64_t heads = query[2] / width;
  const TensorView q = of(query, pieces), k = of(key),
                   lse = summed({query[0], query[1], heads});
  const auto settings = [&](Case one) {
    one.set("head_dim", width)
        .set("causal", std::int64_t{causal ? 1 : 0})
        .set("scale", width < 64 ? 0.4 : 0.125)
        .set("rate", rate)
        .set("mask", "h.*.attn.drop");
    if (biased)
      one.set("max_distance", std::int64_t{16});
    if (softcap > 0.0)
      one.set("softcap", softcap);
    return one;
  };
  Case forward = settings(named("attention")).in(q).in(k).in(k);
  if (biased)
    forward.in(of({8, heads}));
  forward.out(q).out(lse);
  // Backward reads the results of forward.
  const std::vector<Doubles> made = forward.run(*makeReferenceBackend());
  Case backward = settings(named("attention_grad"))
                      .in(q, forward.input(0))
                      .in(k, forward.input(1))
                      .in(k, forward.input(2))
                      .in(q, made[0])
                      .in(lse, made[1])
                      .in(q);
  if (biased)
    backward.in(of({8, heads}), forward.input(3));
  backward.out(q).out(k).out(k);
  if (biased)
    backward.out(summed({8, heads}));
  cases.push_back(forward);
  cases.push_back(backward);
}

void Writer::rope(bool interleaved, bool inverse) {
  const TensorView x = of({kB, 9, 30}, {{0, kB}, {5, 18}, {0, 60}});
  cases.push_back(named("rope")
                      .set("head_dim", std::int64_t{10})
                      .set("rotary_dim", std::int64_t{6})
                      .set("theta", 10000.0)
                      .set("interleaved", std::int64_t{interleaved ? 1 : 0})
                      .set("inverse", std::int64_t{inverse ? 1 : 0})
                      .in(x)
                      .out(x));
}

void Writer::embeddings() {
  // The first embedding and gradient have tables that are shards of rows. The
  // first gradient has fewer ids than its table has rows, the second has more.
  const std::vector<Span> pieces{{20, 700}, {0, 12}};
  cases.push_back(named("embedding")
                      .integers({kB, 9}, 0, 99)
                      .in(of({60, 12}, pieces))
                      .out(of({kB, 9, 12})));
  TensorView table = summed({600, 12});
  table.pieces = pieces;
  cases.push_back(named("embedding_grad")
                      .integers({kB, 90}, 0, 699)
                      .in(of({kB, 90, 12}))
                      .out(table));
  cases.push_back(named("embedding_grad")
                      .integers({kB, 90}, 0, 5)
                      .in(of({kB, 90, 12}))
                      .out(summed({6, 12})));
  const TensorView x = of({kB, 9, 12}, {{0, kB}, {9, 18}, {0, 12}});
  TensorView rows = of({9, 12}, {{9, 18}, {0, 12}});
  cases.push_back(named("position_embedding").in(x).in(rows).out(x));
  cases.push_back(named("position_embedding")
                      .in(of({kB, 9, 12}))
                      .in(of({20, 12}))
                      .out(of({kB, 9, 12})));
  rows.type = sum;
  cases.push_back(named("position_embedding_grad").in(x).out(rows));
  cases.push_back(named("position_embedding_grad")
                      .in(of({kB, 9, 12}))
                      .out(summed({20, 12})));
}

void Writer::loss(std::int64_t width, Span classes) {
  const TensorView logits =
      of({kB, 7, width}, {{0, kB}, {0, 7}, {classes.offset, 2 * width}});
  const TensorView tokens = summed({kB, 7}), count = summed({});
  const auto with = [&](const char *kernel) {
    return named(kernel).set("classes", classes.global);
  };
  const int most = static_cast<int>(classes.global) - 1;
  const Case largest = with("vocab_max").in(logits).out(tokens);
  cases.push_back(largest);
  const Doubles top(static_cast<std::size_t>(kB * 7), 3.0);
  cases.push_back(with("vocab_sum_exp").in(logits).in(tokens, top).out(tokens));
  cases.push_back(
      named("vocab_pick").in(logits).integers({kB, 7}, -1, most).out(tokens));
  const Doubles sums(static_cast<std::size_t>(kB * 7), 5.0);
  cases.push_back(with("cross_entropy_grad")
                      .in(logits)
                      .in(tokens, top)
                      .in(tokens, sums)
                      .integers({kB, 7}, -1, most)
                      .in(count, Doubles{19.0})
                      .out(logits));
  cases.push_back(named("token_loss")
                      .in(tokens)
                      .in(tokens, sums)
                      .in(tokens)
                      .integers({kB, 7}, -1, most)
                      .in(count, Doubles{19.0})
                      .out(count));
}

void Writer::mixtures() {
  const TensorView logits = of({kB, 6, 3}), tokens = of({kB, 6, 10}),
                   places = of({3, kB, 5, 10});
  const TensorView slots{ElementType::i32, {kB, 6, 3}, {}};
  const auto top = [&](const char *kernel) {
    return named(kernel).set("top_k", std::int64_t{2});
  };
  for (std::int64_t normalise : {0, 1}) {
    cases.push_back(
        top("moe_gate").set("normalise", normalise).in(logits).out(logits));
    cases.push_back(top("moe_gate_grad")
                        .set("normalise", normalise)
                        .in(logits)
                        .in(logits)
                        .out(logits));
  }
  const Case queue = top("moe_slots").in(logits).out(slots);
  cases.push_back(queue);
  const Doubles held = queue.run(*makeReferenceBackend())[0];
  cases.push_back(named("moe_dispatch").in(tokens).in(slots, held).out(places));
  cases.push_back(
      named("moe_dispatch_grad").in(slots, held).in(places).out(tokens));
  cases.push_back(
      named("moe_combine").in(places).in(logits).in(slots, held).out(tokens));
  cases.push_back(named("moe_combine_grad")
                      .in(places)
                      .in(logits)
                      .in(slots, held)
                      .in(tokens)
                      .out(places)
                      .out(logits));
  const TensorView count = summed({});
  cases.push_back(top("balance_loss")
                      .set("coefficient", 0.01)
                      .in(logits)
                      .in(count, Doubles{24.0})
                      .out(count));
  cases.push_back(top("balance_loss_grad")
                      .set("coefficient", 0.01)
                      .in(logits)
                      .in(count, Doubles{24.0})
                      .out(logits));
}

void Writer::positions() {
  const TensorView x = of({kB, 5, 10}), vector = of({10}), first = of({kB, 10});
  cases.push_back(named("put_first").in(x).in(vector).out(x));
  cases.push_back(named("put_first_grad").in(x).out(x).out(summed({10})));
  cases.push_back(named("take_first").in(x).out(first));
  cases.push_back(named("take_first_grad").in(first).out(x));
  cases.push_back(named("zeros").out(x));
}

void Writer::moves() {
  const TensorView x = of({kB, 6, 10});
  const auto part = [](Case one, std::int64_t dim, std::int64_t place) {
    return one.set("dim", dim)
        .set("place", place)
        .set("ranks", std::int64_t{2});
  };
  cases.push_back(part(named("slice"), 1, 1).in(x).out(of({kB, 3, 10})));
  cases.push_back(part(named("slice"), 2, 0).in(x).out(of({kB, 6, 5})));
  // `has` and `wants` are shards of a tensor [kB][7][12]. `wants` has rows 2 to
  // 4 and columns 3 to 9.
  TensorView has = x, wants = of({kB, 3, 7});
  has.pieces = {{0, kB}, {1, 7}, {2, 12}};
  wants.pieces = {{0, kB}, {2, 7}, {3, 12}};
  cases.push_back(named("piece").in(has).out(wants));
  cases.push_back(named("transpose").in(x).out(of({6, kB, 10})));
  cases.push_back(named("transpose")
                      .integers({kB, 5, 1}, -5, 5)
                      .out({ElementType::i32, {5, kB, 1}, {}}));
  for (std::int64_t place : {0, 1})
    cases.push_back(named("mask").set("place", place).in(x).out(x));
  cases.push_back(named("copy").in(x).out(x));
  cases.push_back(named("cast").in(x).out(summed({kB, 6, 10})));
  cases.push_back(named("cast").in(summed({kB, 6, 10})).out(x));
  cases.push_back(named("copy")
                      .integers({kB, 9}, -5, 5)
                      .out({ElementType::i32, {kB, 9}, {}}));
}

void Writer::updates() {
  const TensorView kept = summed({2100, 20}), value = of({2100, 20});
  const auto count = static_cast<std::size_t>(kept.elements());
  cases.push_back(named("accumulate").in(value).out(kept, Doubles(count, 0.7)));
  // In micro-batch `first_term`, the value overwrites the accumulator, even if
  // the accumulator contains NaN.
  constexpr std::int64_t kOther = 1;
  const std::int64_t now = cases.back().moment.microBatch;
  for (const auto &[first, before] :
       {std::pair(kOther, 0.7), {now, std::nan("")}})
    cases.push_back(named("accumulate")
                        .set("first_term", first)
                        .in(value)
                        .out(kept, Doubles(count, before)));
  const std::int64_t here = cases.back().moment.copy;
  for (const auto &[copy, before] :
       {std::pair(here + 1, 0.7), {here, std::nan("")}})
    cases.push_back(named("accumulate")
                        .set("first_term", now)
                        .set("first_term_copy", copy)
                        .in(value)
                        .out(kept, Doubles(count, before)));
  const TensorView twice{ElementType::f64, {2}, {}};
  for (std::int64_t counts : {0, 1})
    cases.push_back(named("square_sum")
                        .set("counts", counts)
                        .in(kept)
                        .out(twice, Doubles{2.5, 1e-17}));
  // The limit of the norm is above the norm, below it, or 0 (no clipping). The
  // gradients are finite or infinite. If the NormRule does not apply, the
  // factor must not change.
  for (const double clip : {100.0, 1.0, 0.0})
    for (const double middle : {250.0, HUGE_VAL})
      for (const bool applies : {true, false}) {
        Case one = named("gradient_factor");
        one.in({ElementType::f64, {3, 2}, {}},
               Doubles{1.5, 1e-17, middle, -1e-15, 3.0, 0.0})
            .out(twice, Doubles{0.25, 7.0});
        one.norm = {applies, 8.0, clip};
        cases.push_back(one);
      }
  for (std::int64_t decay : {0, 1})
    for (const double updates : {1.0, 0.0}) {
      Case one = named("adamw");
      one.set("decay", decay)
          .in(kept)
          .out(value)
          .out(kept, Doubles(count, 0.3))
          .out(kept, Doubles(count, -0.01))
          .out(kept, Doubles(count, 0.02));
      one.update.updates = updates;
      cases.push_back(one);
    }
}

} // namespace

std::vector<Case> modelAttention(ElementType type, unsigned seed) {
  Writer writer(type, seed);
  for (const double rate : {0.0, 0.1}) {
    // The first case has the heads of GPT-2 1.2B, the second the grouped heads
    // of Llama. The positions fill several tiles.
    writer.attention({2, 150, 192}, {2, 150, 192}, {}, rate, true, false, 96);
    writer.attention({2, 150, 128}, {2, 150, 64}, {}, rate, true, false, 64);
  }
  // A rank has some of the samples and heads.
  writer.attention({2, 128, 128}, {2, 128, 128}, {{1, 5}, {0, 128}, {64, 256}},
                   0.1, true, false, 64);
  // There are fewer queries than keys, and all keys are visible.
  for (const double rate : {0.0, 0.1})
    writer.attention({1, 70, 64}, {1, 150, 64}, {}, rate, false, false, 64);
  return writer.cases;
}

std::vector<Case> catalog(ElementType type, unsigned seed) {
  Writer writer(type, seed);
  writer.products();
  writer.sums();
  writer.pointwise();
  writer.norms();
  // Some of the next calls have grouped heads, several blocks of queries and
  // keys, shards, or causal masks.
  writer.attention({kB, 9, 12}, {kB, 9, 12}, {}, 0.0, true, false);
  writer.attention({kB, 70, 24}, {kB, 140, 12},
                   {{2, kB + 3}, {70, 140}, {24, 48}}, 0.2, true, false);
  writer.attention({kB, 5, 12}, {kB, 67, 6}, {}, 0.1, false, false);
  writer.attention({kB, 9, 12}, {kB, 9, 12}, {}, 0.1, true, true);
  writer.attention({kB, 70, 12}, {kB, 70, 6}, {}, 0.1, true, false, 6, 0.8);
  // The next heads are wide enough for tensor cores.
  writer.attention({kB, 40, 32}, {kB, 40, 16}, {}, 0.1, true, false, 16);
  for (bool interleaved : {false, true})
    for (bool inverse : {false, true})
      writer.rope(interleaved, inverse);
  writer.embeddings();
  writer.loss(53, {0, 50});
  writer.loss(1100, {1100, 2000});
  writer.loss(20, {20, 20}); // the shard is only padding
  writer.mixtures();
  writer.positions();
  writer.moves();
  writer.updates();
  return writer.cases;
}

TEST(Catalog, HasEveryKernel) {
  std::set<std::string> seen;
  for (const Case &one : catalog(ElementType::f32, 1))
    seen.insert(one.spec.kernel);
  for (const std::string &name : kernelNames())
    EXPECT_TRUE(seen.contains(name)) << name;
}

} // namespace mtplan::runtime::testing

//===- weights_test.cpp - Parameters in files of other tools --------------===//
//
// Every parameter of a model is in exactly one tensor of its family's files.
// The shapes of these tensors, written out by hand from the configurations, are
// those of the model without padding.
//
//===----------------------------------------------------------------------===//

#include <map>

#include <gtest/gtest.h>

#include "ir/model/builder.h"
#include "runtime/weights/weight_rules.h"
#include "tests/ir/model/loading.h"

namespace mtplan {
namespace {

using Shape = std::vector<std::int64_t>;
using Shapes = std::map<std::string, Shape>;

/// Holds the parameters of a model: `labels` with one `*` for all layers, and
/// shapes without padding, layer by layer.
struct Parameters {
  std::vector<std::string> labels;
  Shapes shapes;

  explicit Parameters(mlir::ModuleOp module) {
    for (auto segment : module.getOps<ir::SegmentOp>())
      segment.walk([&](ir::ParameterOp op) {
        std::string label = op.getLabel().str();
        labels.push_back(label);
        llvm::ArrayRef<std::int64_t> sizes =
            op.getUnpadded().value_or(ir::shapeOf(op.getValue()));
        const std::size_t star = label.find('*');
        const auto first = static_cast<std::int64_t>(segment.getFirst());
        const auto copies =
            star == label.npos ? 1
                               : static_cast<std::int64_t>(segment.getRepeat());
        for (std::int64_t copy = first; copy < first + copies; ++copy) {
          std::string own = label;
          if (star != label.npos)
            own.replace(star, 1, std::to_string(copy));
          shapes[own] = Shape(sizes.begin(), sizes.end());
        }
      });
  }
};

struct Example {
  std::string name;    ///< <name> of examples/tiny-<name>.json
  Shapes outside;      ///< tensors outside the layers
  std::string layer;   ///< prefix of layers, such as "transformer.h."
  Shapes inside;       ///< tensors of a layer
  std::string changed; ///< text that `to` replaces
  std::string to;
};

void PrintTo(const Example &example, std::ostream *out) {
  *out << example.name << example.to;
}

// The model has width 64, 8 heads, 500 tokens and 2 layers.
Shapes llamaLayer(std::int64_t kvWidth) {
  return {{"input_layernorm.weight", {64}},
          {"self_attn.q_proj.weight", {64, 64}},
          {"self_attn.k_proj.weight", {kvWidth, 64}},
          {"self_attn.v_proj.weight", {kvWidth, 64}},
          {"self_attn.o_proj.weight", {64, 64}},
          {"post_attention_layernorm.weight", {64}},
          {"mlp.gate_proj.weight", {192, 64}},
          {"mlp.up_proj.weight", {192, 64}},
          {"mlp.down_proj.weight", {64, 192}}};
}

Shapes with(Shapes shapes, const Shapes &more) {
  shapes.insert(more.begin(), more.end());
  return shapes;
}

const Shapes kLlamaOutside = {{"model.embed_tokens.weight", {500, 64}},
                              {"model.norm.weight", {64}}};
const Shapes kHead = {{"lm_head.weight", {500, 64}}};
const Shapes kBiases = {{"self_attn.q_proj.bias", {64}},
                        {"self_attn.k_proj.bias", {64}},
                        {"self_attn.v_proj.bias", {64}}};

const Example kGpt2 = {"gpt2",
                       {{"transformer.wte.weight", {500, 64}},
                        {"transformer.wpe.weight", {32, 64}},
                        {"transformer.ln_f.weight", {64}},
                        {"transformer.ln_f.bias", {64}}},
                       "transformer.h.",
                       {{"ln_1.weight", {64}},
                        {"ln_1.bias", {64}},
                        {"attn.c_attn.weight", {64, 192}},
                        {"attn.c_attn.bias", {192}},
                        {"attn.c_proj.weight", {64, 64}},
                        {"attn.c_proj.bias", {64}},
                        {"ln_2.weight", {64}},
                        {"ln_2.bias", {64}},
                        {"mlp.c_fc.weight", {64, 256}},
                        {"mlp.c_fc.bias", {256}},
                        {"mlp.c_proj.weight", {256, 64}},
                        {"mlp.c_proj.bias", {64}}},
                       "",
                       ""};

const Example kBert = {
    "bert",
    {{"bert.embeddings.word_embeddings.weight", {500, 64}},
     {"bert.embeddings.position_embeddings.weight", {32, 64}},
     {"bert.embeddings.token_type_embeddings.weight", {2, 64}},
     {"bert.embeddings.LayerNorm.weight", {64}},
     {"bert.embeddings.LayerNorm.bias", {64}},
     {"cls.predictions.transform.dense.weight", {64, 64}},
     {"cls.predictions.transform.dense.bias", {64}},
     {"cls.predictions.transform.LayerNorm.weight", {64}},
     {"cls.predictions.transform.LayerNorm.bias", {64}},
     {"cls.predictions.bias", {500}}},
    "bert.encoder.layer.",
    {{"attention.self.query.weight", {64, 64}},
     {"attention.self.query.bias", {64}},
     {"attention.self.key.weight", {64, 64}},
     {"attention.self.key.bias", {64}},
     {"attention.self.value.weight", {64, 64}},
     {"attention.self.value.bias", {64}},
     {"attention.output.dense.weight", {64, 64}},
     {"attention.output.dense.bias", {64}},
     {"attention.output.LayerNorm.weight", {64}},
     {"attention.output.LayerNorm.bias", {64}},
     {"intermediate.dense.weight", {256, 64}},
     {"intermediate.dense.bias", {256}},
     {"output.dense.weight", {64, 256}},
     {"output.dense.bias", {64}},
     {"output.LayerNorm.weight", {64}},
     {"output.LayerNorm.bias", {64}}},
    "",
    ""};

const Example kGptj = {"gptj",
                       {{"transformer.wte.weight", {500, 64}},
                        {"transformer.ln_f.weight", {64}},
                        {"transformer.ln_f.bias", {64}},
                        {"lm_head.weight", {500, 64}},
                        {"lm_head.bias", {500}}},
                       "transformer.h.",
                       {{"ln_1.weight", {64}},
                        {"ln_1.bias", {64}},
                        {"attn.q_proj.weight", {64, 64}},
                        {"attn.k_proj.weight", {64, 64}},
                        {"attn.v_proj.weight", {64, 64}},
                        {"attn.out_proj.weight", {64, 64}},
                        {"mlp.fc_in.weight", {256, 64}},
                        {"mlp.fc_in.bias", {256}},
                        {"mlp.fc_out.weight", {64, 256}},
                        {"mlp.fc_out.bias", {64}}},
                       "",
                       ""};

// These texts switch weight tying off and on in a configuration.
const std::string kUntied = "\"tie_word_embeddings\": false",
                  kTied = "\"tie_word_embeddings\": true";
Example changed(Example example, const std::string &from,
                const std::string &to) {
  example.changed = from;
  example.to = to;
  return example;
}

Example llamaLike(const std::string &name, const Shapes &outside,
                  const Shapes &inside) {
  return {name, outside, "model.layers.", inside, "", ""};
}

class Weights : public ::testing::TestWithParam<Example> {};

TEST_P(Weights, CoverEveryParameterOnce) {
  const Example &example = GetParam();
  std::string text = ir::Loading::example("tiny-" + example.name);
  if (!example.changed.empty())
    text = replaced(text, example.changed, example.to);
  ir::Loading loading(text);
  ASSERT_TRUE(loading.model) << loading.allErrors();
  Parameters parameters(loading.model->module.get());
  runtime::WeightTable table = runtime::weightTable(
      runtime::usualNames(example.name, 2), parameters.labels);

  Shapes expected = example.outside, found;
  for (const char *layer : {"0.", "1."})
    for (const auto &[name, shape] : example.inside)
      expected[example.layer + layer + name] = shape;
  std::map<std::string, int> covered;
  for (const runtime::WeightRule &rule : table.rules) {
    std::vector<Shape> ours;
    for (const std::string &label : rule.labels) {
      ++covered[label];
      ASSERT_TRUE(parameters.shapes.contains(label)) << label;
      ours.push_back(parameters.shapes[label]);
    }
    EXPECT_TRUE(
        found.emplace(rule.name, runtime::shapeInFile(rule, ours)).second)
        << rule.name;
  }
  EXPECT_EQ(found, expected);
  for (const auto &[label, shape] : parameters.shapes)
    EXPECT_EQ(covered[label], 1) << label;
  EXPECT_EQ(covered.size(), parameters.shapes.size());

  // The names alone identify the family.
  std::vector<std::string> names;
  for (const auto &[name, shape] : found)
    names.push_back(name);
  runtime::WeightNames recognised = runtime::recogniseWeights(names);
  EXPECT_EQ(recognised.family,
            example.name == "mistral" ? "llama" : example.name);
  EXPECT_EQ(recognised.layers, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Families, Weights,
    ::testing::Values(
        kGpt2, kBert, kGptj,
        llamaLike("llama", with(kLlamaOutside, kHead), llamaLayer(64)),
        // Two query heads share one head of keys and values.
        llamaLike("mistral", with(kLlamaOutside, kHead), llamaLayer(32)),
        llamaLike("qwen2", with(kLlamaOutside, kHead),
                  with(llamaLayer(64), kBiases)),
        changed(llamaLike("llama", kLlamaOutside, llamaLayer(64)), kUntied,
                kTied),
        changed(llamaLike("llama", with(kLlamaOutside, kHead),
                          with(with(llamaLayer(64), kBiases),
                               {{"self_attn.o_proj.bias", {64}}})),
                kUntied, kUntied + ", \"attention_bias\": true"),
        changed(llamaLike("llama", with(kLlamaOutside, kHead),
                          with(llamaLayer(64), {{"mlp.gate_proj.bias", {192}},
                                                {"mlp.up_proj.bias", {192}},
                                                {"mlp.down_proj.bias", {64}}})),
                kUntied, kUntied + ", \"mlp_bias\": true")));

// llm.c pads the vocabulary; everything else is as in the model.
TEST(WeightsOfLlmc, CoverEveryParameterOnce) {
  ir::Loading loading(ir::Loading::example("tiny-gpt2"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  Parameters parameters(loading.model->module.get());
  std::map<std::string, int> covered;
  std::int64_t elements = 0;
  for (const runtime::WeightRule &rule : runtime::llmcRules(2)) {
    std::vector<Shape> ours;
    for (const std::string &label : rule.labels) {
      ++covered[label];
      ours.push_back(parameters.shapes.at(label));
    }
    std::int64_t count = 1;
    for (std::int64_t size : runtime::shapeInFile(rule, ours))
      count *= size;
    elements += count;
    if (rule.name == "qkvw.1") {
      EXPECT_EQ(runtime::shapeInFile(rule, ours), (Shape{192, 64}));
    }
    if (rule.name == "fcw.0") {
      EXPECT_EQ(runtime::shapeInFile(rule, ours), (Shape{256, 64}));
    }
  }
  EXPECT_EQ(covered.size(), parameters.shapes.size());
  for (const auto &[label, shape] : parameters.shapes)
    EXPECT_EQ(covered[label], 1) << label;
  // The sum is 2 (12 * 64^2 + 13 * 64) + (500 + 32) * 64 + 2 * 64.
  EXPECT_EQ(elements, 134'144);
}

// Megatron's BERT normalises before each branch; Transformers has no such
// model.
TEST(WeightsOfBert, OtherOrderOfNormsIsRejected) {
  ir::Loading loading(
      replaced(ir::Loading::example("tiny-bert"), "\"post\"", "\"pre\""));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  Parameters parameters(loading.model->module.get());
  EXPECT_THROW((void)runtime::weightTable(runtime::usualNames("bert", 2),
                                          parameters.labels),
               runtime::WeightError);
}

} // namespace
} // namespace mtplan

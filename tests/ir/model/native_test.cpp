//===- native_test.cpp - The native format and textual IR -----------------===//

#include <set>

#include <gtest/gtest.h>

#include "ir/model/native_operators.h"
#include "tests/ir/model/loading.h"

namespace mtplan::ir {
namespace {

std::string input(const std::string &name) {
  return readText(sourcePath("tests/ir/inputs/" + name));
}

// Returns the equations of a module's einsums, by label.
std::map<std::string, std::string> equations(const Loading &loading) {
  std::map<std::string, std::string> found;
  loading.model->module.get().walk([&](EinsumOp op) {
    found[op.getLabel().str()] = op.getEquation().str();
  });
  return found;
}

// The native format gives the same module as config.json.
TEST(Native, TinyGpt2EqualsThatOfTheConfig) {
  Loading native(Loading::example("native/tiny-gpt2"));
  Loading config(Loading::example("tiny-gpt2"));
  ASSERT_TRUE(native.model && config.model)
      << native.allErrors() << config.allErrors();
  EXPECT_EQ(native.model->parameters, config.model->parameters);
  EXPECT_EQ(native.model->paddingParameters, config.model->paddingParameters);
  EXPECT_EQ(native.model->layers, 2);
  EXPECT_EQ(native.model->sequence, 32);
  for (const char *segment : {"embed", "h", "head"})
    EXPECT_EQ(native.labels(segment), config.labels(segment)) << segment;
  // The blocks have equal text; the head reads its inputs in another order.
  auto block = [](const Loading &loading) {
    std::string text = loading.print();
    std::size_t from = text.find("@h"), to = text.find("@head");
    return text.substr(from, to - from);
  };
  EXPECT_EQ(block(native), block(config));
}

TEST(Native, MlpHasTwoMatrices) {
  Loading loading(Loading::example("native/mlp"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  // The parameters are 64 * 256 + 256 + 256 * 512, with 256 * 12 of padding.
  EXPECT_EQ(loading.model->parameters, 147'712);
  EXPECT_EQ(loading.model->paddingParameters, 3072);
  EXPECT_EQ(loading.model->globalBatch, 16);
  std::map<std::string, std::string> found = equations(loading);
  EXPECT_EQ(found["fc1"], "bsi,io->bso");
  EXPECT_EQ(found["fc2"], "bsi,iv->bsv");
}

TEST(Native, EveryForwardOperatorIsReachable) {
  Loading loading(input("native/good/every_operator.json"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  std::set<std::string> reached;
  loading.model->module.get().walk([&](ComputeOp op) {
    reached.insert(op->getName().stripDialect().str());
  });
  // This set has the dialect's operators, except those of backward halves only.
  std::set<std::string> forward;
  for (mlir::RegisteredOperationName name :
       loading.context.getRegisteredOperations())
    if (name.getDialectNamespace() == "mtp" && name.hasInterface<ComputeOp>() &&
        !name.stripDialect().ends_with("_grad") &&
        name.stripDialect() != "zeros")
      forward.insert(name.stripDialect().str());
  EXPECT_EQ(reached, forward);
}

TEST(Native, LettersAreRenamedByTheirRoles) {
  Loading loading(input("native/good/every_operator.json"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  std::map<std::string, std::string> found = equations(loading);
  EXPECT_EQ(found["h.*.q"], "bsi,oi->bso"); // from xyz,wz->xyw
  EXPECT_EQ(found["h.*.k"], "bsi,io->bso"); // from btc, cd -> btd
  EXPECT_EQ(found["lm_head"], "bsi,vi->bsv");
  EXPECT_EQ(found["h.*.router"], "bsi,ie->bse");     // from nsf,fx->nsx
  EXPECT_EQ(found["h.*.experts"], "ebpi,eio->ebpo"); // from xnpf,xfg->xnpg
}

TEST(Native, ExpertCapacityIsADimension) {
  std::string text = input("native/good/every_operator.json");
  Loading loading(text);
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_NE(loading.print().find("(tensor<1x8x32xbf16>, tensor<1x8x4xi32>) -> "
                                 "tensor<4x1x5x32xbf16>"),
            std::string::npos);
  Loading unknown(
      replaced(text, "{\"places\": \"places\"}", "{\"places\": \"place\"}"));
  ASSERT_EQ(unknown.errors.size(), 1U) << unknown.allErrors();
  EXPECT_EQ(unknown.errors[0].rfind(
                "m.json: /segments/1/operators/20/attributes/places: unknown "
                "dimension \"place\"; nearest first, known are places, ",
                0),
            0U)
      << unknown.errors[0];
}

TEST(Native, LettersWithoutARoleAvoidReservedOnes) {
  // Neither operand is a parameter, so that i and o are not used, even where
  // the file uses these letters.
  std::string text = R"({"mtplan": 1,
    "dimensions": {"n": {"role": "batch"}, "t": {"role": "sequence", "size": 4},
                   "f": {"size": 8}},
    "inputs": {"x": {"dims": ["n", "t", "f"], "type": "f32"},
               "y": {"dims": ["n", "t", "f"], "type": "f32"}},
    "parameters": {},
    "segments": [{"name": "all", "operators": [
      {"op": "einsum", "name": "gram", "inputs": ["x", "y"],
       "equation": "ost,osu->"}], "yields": ["gram"]}]})";
  Loading once(text);
  EXPECT_EQ(once.errors.size(), 2U); // t and u occur only once
  Loading loading(replaced(text, "ost,osu->", "osi,osi->"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(equations(loading)["gram"], "bsa,bsa->");
}

TEST(Native, LayersAreCountedFromFirst) {
  Loading loading(input("native/good/every_operator.json"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->layers, 3);
  // There are 128 * 32 + 16 * 32 parameters and a vector of 32 outside the
  // blocks. Each of 3 blocks has 3 norms of 32, q and proj of 1024, k and v of
  // 512, gate, up and down of 1536, a bias of 32, a router of 32 * 4, and 4
  // experts of 32 * 32.
  EXPECT_EQ(loading.model->parameters,
            128 * 32 + 16 * 32 + 32 +
                3 * (96 + 2048 + 1024 + 4608 + 32 + 32 * 4 + 4 * 32 * 32));
}

TEST(Native, OverridesReachTheNamedDimensions) {
  ShapeOverrides overrides;
  overrides.sequence = 16;
  overrides.layers = 5;
  Loading loading(Loading::example("native/tiny-gpt2"), overrides);
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->sequence, 16);
  EXPECT_EQ(loading.model->layers, 5);
  EXPECT_NE(loading.print().find("@h repeat 5 (%arg0: tensor<1x16x64xbf16>)"),
            std::string::npos);
  overrides.sequence.reset();
  Loading mlp(Loading::example("native/mlp"), overrides);
  EXPECT_EQ(mlp.allErrors(),
            "m.json: /segments: the number of layers can be changed where "
            "exactly 1 segment has \"repeat\", but 0 have\n");
}

TEST(Native, ErrorsOfBadFilesNameTheirPath) {
  for (const char *folder : {"bad_schema", "bad_meaning"})
    for (const std::string &path :
         jsonFiles(std::string("tests/ir/inputs/native/") + folder)) {
      Loading loading(readText(path));
      EXPECT_FALSE(loading.model) << path;
      ASSERT_FALSE(loading.errors.empty()) << path;
      for (const std::string &error : loading.errors)
        EXPECT_EQ(error.rfind("m.json: /", 0), 0U) << path << '\n' << error;
    }
}

TEST(Native, UnknownOperatorNamesTheNearest) {
  Loading loading(input("native/bad_schema/unknown_operator.json"));
  ASSERT_EQ(loading.errors.size(), 1U) << loading.allErrors();
  EXPECT_EQ(loading.errors[0].rfind(
                "m.json: /segments/0/operators/1/op: unknown operator "
                "\"activaton\"; nearest first, known are activation, ",
                0),
            0U)
      << loading.errors[0];
}

TEST(Native, SeveralMistakesAreReportedTogether) {
  std::string text = Loading::example("native/mlp");
  text = replaced(text, "\"fc1.weight\": {\"dims\": [\"features\"",
                  "\"fc1.weight\": {\"dims\": [\"fetures\"");
  text = replaced(text, "gelu_tanh", "gelu_tan");
  text = replaced(text, "\"takes\": [\"act\"]", "\"takes\": [\"act\", \"b\"]");
  text = replaced(text, "bsh,hc->bsc", "bsh,hc");
  Loading loading(text);
  // The activation is not checked, because its operand is unknown already.
  ASSERT_EQ(loading.errors.size(), 2U) << loading.allErrors();
  EXPECT_NE(
      loading.errors[0].find("/parameters/fc1.weight/dims/0: unknown "
                             "dimension \"fetures\"; nearest first, known "
                             "are features"),
      std::string::npos);
  EXPECT_NE(loading.errors[1].find("/segments/1/takes: 2 names, but the "
                                   "segment before yields 1"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// Textual IR
//===----------------------------------------------------------------------===//

TEST(MlirText, ErrorsHaveLineAndColumn) {
  Loading syntax("module {\n  mtp.segment @a (\n}\n", {}, "a.mlir");
  ASSERT_FALSE(syntax.errors.empty());
  EXPECT_EQ(syntax.errors[0].rfind("a.mlir:2:19: ", 0), 0U) << syntax.errors[0];
  // Two operators are wrong, and both are reported.
  Loading wrong(input("ir_text/two_bad_rates.txt"), {}, "b.mlir");
  ASSERT_EQ(wrong.errors.size(), 2U) << wrong.allErrors();
  EXPECT_EQ(
      wrong.errors[0],
      "b.mlir:4:10: 'mtp.dropout' op needs a rate of at least 0 and below "
      "1, got 1.500000e+00");
  EXPECT_EQ(wrong.errors[1].rfind("b.mlir:5:10: ", 0), 0U) << wrong.errors[1];
}

TEST(MlirText, DeepNestingIsRefused) {
  Loading loading("module attributes {a = " + std::string(5'000'000, '['), {},
                  "a.mlir");
  ASSERT_EQ(loading.errors.size(), 1U);
  EXPECT_NE(loading.errors[0].find("nested more than 256 levels deep"),
            std::string::npos);
}

TEST(MlirText, ShapesCannotBeChanged) {
  ShapeOverrides overrides;
  overrides.layers = 2;
  Loading model(Loading::example("tiny-gpt2"));
  ASSERT_TRUE(model.model);
  Loading loading(model.print(), overrides, "a.mlir");
  EXPECT_EQ(loading.allErrors(),
            "a.mlir: textual IR fixes its shapes: the number of layers cannot "
            "be changed; edit the file\n");
}

TEST(MlirText, EmptyModulesAndOtherDialectsAreRefused) {
  EXPECT_EQ(Loading("module {}", {}, "a.mlir").allErrors(),
            "a.mlir: has no mtp.segment\n");
  EXPECT_FALSE(Loading("module { func.func @f() }", {}, "a.mlir").model);
}

} // namespace
} // namespace mtplan::ir

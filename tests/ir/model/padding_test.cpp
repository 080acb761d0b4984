//===- padding_test.cpp - Padding of parameters ---------------------------===//

#include <map>

#include <gtest/gtest.h>

#include "tests/ir/model/loading.h"

namespace mtplan::ir {
namespace {

using Extents = std::map<std::string, std::vector<std::int64_t>>;

// Returns the extents without padding of the parameters that have padding, by
// label.
Extents unpadded(const Loading &loading) {
  Extents found;
  loading.model->module.get().walk([&](ParameterOp op) {
    if (auto sizes = op.getUnpadded())
      found[op.getLabel().str()].assign(sizes->begin(), sizes->end());
  });
  return found;
}

TEST(Padding, IsAnAttributeOfParameters) {
  for (const auto &[example, extents] : std::map<std::string, Extents>{
           {"tiny-gpt2", {{"wte.weight", {500, 64}}}},
           {"tiny-gptj",
            {{"wte.weight", {500, 64}},
             {"lm_head.weight", {64, 500}},
             {"lm_head.bias", {500}}}},
           {"tiny-t5", {{"wte.weight", {500, 64}}}},
           {"native/tiny-gpt2", {{"wte.weight", {500, 64}}}}}) {
    Loading loading(Loading::example(example));
    ASSERT_TRUE(loading.model) << example << loading.allErrors();
    EXPECT_EQ(unpadded(loading), extents) << example;
  }
}

TEST(Padding, IsAbsentIfAllRowsAreUsed) {
  for (const char *vocabulary : {"512", "500, \"padded_vocab_size\": 500"}) {
    Loading loading(replaced(Loading::example("tiny-gpt2"), "500", vocabulary));
    ASSERT_TRUE(loading.model) << loading.allErrors();
    EXPECT_EQ(loading.model->paddingParameters, 0);
    EXPECT_EQ(unpadded(loading), Extents());
  }
}

// In every example, the parameters' padding sums to the reported padding.
TEST(Padding, OfParametersSumsToTheReport) {
  for (const char *folder : {"examples", "examples/native"})
    for (const std::string &path : jsonFiles(folder)) {
      Loading loading(readText(path));
      if (!loading.model)
        continue; // The file is no model.
      std::map<std::string, std::int64_t> padding;
      loading.model->module.get().walk([&](ParameterOp op) {
        auto sizes = op.getUnpadded();
        if (!sizes)
          return;
        std::int64_t used = 1;
        for (std::int64_t size : *sizes)
          used *= size;
        padding[op.getLabel().str()] =
            llvm::cast<mlir::RankedTensorType>(op.getValue().getType())
                .getNumElements() -
            used;
      });
      std::int64_t all = 0;
      for (const auto &[label, count] : padding) {
        EXPECT_EQ(label.find('*'), label.npos) << path;
        all += count;
      }
      EXPECT_EQ(all, loading.model->paddingParameters) << path;
    }
}

} // namespace
} // namespace mtplan::ir

//===- bias_gradients_test.cpp - Sums beside products of gradients --------===//

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/bias_gradients.h"
#include "runtime/plan/first_term.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan {
namespace {

using runtime::Instruction, runtime::KernelCall, runtime::Program,
    runtime::Setting, runtime::Stage, runtime::Tensor;
using testing::ElementsAre;

enum Where { x, above, dw, dwSum, db, dbSum, other, buffers };

const std::vector<Setting> kAdded = {
    {runtime::kThen, std::string("accumulate")},
    {runtime::kFirstTerm, std::int64_t{0}}};

Instruction product(std::vector<Setting> after = kAdded) {
  after.insert(after.begin(), {"equation", std::string("bi,bo->io")});
  return runtime::kernelCall(
      "fc.dw", "einsum", std::move(after),
      {runtime::tensorAt(x, {2, 6}), runtime::tensorAt(above, {2, 4})},
      {runtime::tensorAt(dw, {6, 4}), runtime::tensorAt(dwSum, {6, 4})});
}

Instruction sum(std::vector<Setting> after = kAdded) {
  return runtime::kernelCall(
      "fc.db", "sum", std::move(after), {runtime::tensorAt(above, {2, 4})},
      {runtime::tensorAt(db, {4}), runtime::tensorAt(dbSum, {4})});
}

Instruction copy(Where from, Where to) {
  return runtime::kernelCall("copy", "copy", {},
                             {runtime::tensorAt(from, {2, 4})},
                             {runtime::tensorAt(to, {2, 4})});
}

/// Labels of what becomes of a program, run once, whose tensors lie apart but
/// for what `change` does.
std::vector<std::string> joined(
    std::vector<Instruction> instructions,
    const std::function<void(Stage &)> &change = [](Stage &) {}) {
  Stage stage;
  stage.arenas = {{runtime::MemoryClass::workspace, 256 * buffers}};
  for (int i = 0; i < buffers; ++i) {
    stage.buffers.emplace_back();
    stage.buffers.back().offset = 256L * i;
    stage.buffers.back().size = 96;
  }
  stage.programs = {{"backward", std::move(instructions)}};
  stage.schedule = {{.program = 0, .microBatch = 0}};
  change(stage);
  Program &program = stage.programs[0];
  codegen::joinBiasGradients(program, codegen::Meetings(stage, 0));
  std::vector<std::string> labels;
  for (const Instruction &one : program.instructions) {
    labels.push_back(one.label);
    for (const Setting &setting : std::get<KernelCall>(one.what).settings)
      if (setting.name == runtime::kBiasGradient)
        labels.back() += " with " + std::to_string(one.outputs.size());
  }
  return labels;
}

TEST(BiasGradients, AreMadeBesideTheirWeights) {
  EXPECT_THAT(joined({product(), sum()}), ElementsAre("fc.dw with 4"));
  EXPECT_THAT(joined({product(), copy(x, other), sum(), copy(dbSum, other)}),
              ElementsAre("fc.dw with 4", "copy", "copy"));
  // Of what is not added up, as well.
  Instruction weight = product({}), bias = sum({});
  weight.outputs.pop_back();
  bias.outputs.pop_back();
  EXPECT_THAT(joined({weight, copy(dw, other), bias}),
              ElementsAre("fc.dw with 2", "copy"));
}

TEST(BiasGradients, AreWhatIsFollowedLikeTheProduct) {
  EXPECT_THAT(joined({product({}), sum()}), ElementsAre("fc.dw", "fc.db"));
  EXPECT_THAT(joined({product(), sum({kAdded[0]})}),
              ElementsAre("fc.dw", "fc.db"));
  EXPECT_THAT(
      joined({product(),
              sum({kAdded[0], {runtime::kFirstTerm, std::int64_t{1}}})}),
      ElementsAre("fc.dw", "fc.db"));
}

TEST(BiasGradients, AreSumsOfTheSecondOperandOfAnEarlierProduct) {
  Instruction turned = product();
  std::swap(turned.inputs[0], turned.inputs[1]);
  EXPECT_THAT(joined({turned, sum()}), ElementsAre("fc.dw", "fc.db"));
  EXPECT_THAT(joined({sum(), product()}), ElementsAre("fc.db", "fc.dw"));
  Instruction biased = product();
  biased.inputs.push_back(runtime::tensorAt(other, {4}));
  EXPECT_THAT(joined({biased, sum()}), ElementsAre("fc.dw", "fc.db"));
}

TEST(BiasGradients, PassNobodyWhoTouchesWhatTheyDo) {
  for (const Instruction &between :
       {copy(other, above), copy(other, dbSum), copy(dbSum, other)})
    EXPECT_THAT(joined({product(), between, sum()}),
                ElementsAre("fc.dw", "copy", "fc.db"));
}

// What is made of an operand that is read for the last time may lie there.
TEST(BiasGradients, AreNotWrittenWhereTheProductStillReads) {
  for (const Where place : {x, dw})
    EXPECT_THAT(joined({product(), sum()},
                       [&](Stage &stage) {
                         stage.buffers[db].offset = stage.buffers[place].offset;
                       }),
                ElementsAre("fc.dw", "fc.db"));
}

} // namespace
} // namespace mtplan

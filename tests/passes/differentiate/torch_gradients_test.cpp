//===- torch_gradients_test.cpp - The interpreter and PyTorch agree -------===//
//
// The interpreter is the reference for every plan, and PyTorch the reference
// for the interpreter. Differentiates each tiny model of tests/parity and
// interprets the first step of PyTorch's training run. Loss and gradients must
// agree.
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include "ir/interpret/interpret.h"
#include "ir/model/load.h"
#include "passes/passes.h"

namespace mtplan::passes {
namespace {

using Json = nlohmann::json;

std::string textOf(const std::string &file) {
  std::stringstream text;
  text << std::ifstream(std::string(MTPLAN_SOURCE_DIR) + "/tests/parity/" +
                        file)
              .rdbuf();
  return text.str();
}

double largestOf(const std::vector<double> &numbers) {
  double largest = 0.0;
  for (double number : numbers)
    largest = std::max(largest, std::abs(number));
  return largest;
}

class TorchGradients : public ::testing::TestWithParam<const char *> {
protected:
  TorchGradients() : golden(Json::parse(textOf(goldenFile()))) {
    context.loadDialect<ir::MtpDialect>();
  }

  static std::string goldenFile() {
    return std::string("goldens/") + GetParam() + ".json";
  }

  /// Returns the differentiated model for one sample.
  mlir::OwningOpRef<mlir::ModuleOp> differentiated() {
    std::vector<std::string> errors;
    ir::ShapeOverrides overrides;
    overrides.elementType = "f32";
    const std::string file = std::string(GetParam()) + ".json";
    auto model = ir::loadModel(context, textOf(file), file, overrides, errors);
    EXPECT_EQ(errors, std::vector<std::string>());
    mlir::PassManager manager(&context);
    manager.addPass(createDifferentiatePass());
    EXPECT_TRUE(mlir::succeeded(manager.run(*model->module)));
    return std::move(model->module);
  }

  /// Makes each sample a micro-batch: gradients sum over micro-batches, too.
  ir::RunOptions firstStep() const {
    const Json &parameters = golden.at("parameters");
    const Json &step = golden.at("steps").at(0);
    const int samples = golden.at("global_batch");
    ir::RunOptions options;
    options.microBatches = samples;
    options.given = {
        [&parameters](const ir::TensorKey &key, std::int64_t element) {
          return parameters.at(key.name())
              .at("initial")
              .at(static_cast<std::size_t>(element))
              .get<double>();
        },
        [&step, samples](const std::string &label, std::int64_t sample,
                         std::int64_t element) {
          const Json &all = step.at(label);
          const std::size_t each = all.size() / samples;
          return all.at(sample * each + element).get<double>();
        }};
    return options;
  }

  const Json golden;
  mlir::MLIRContext context;
};

TEST_P(TorchGradients, EqualTheInterpreters) {
  auto module = differentiated();
  auto run = ir::interpret(*module, firstStep());
  ASSERT_TRUE(mlir::succeeded(run));
  const double loss = golden.at("steps").at(0).at("loss");
  EXPECT_NEAR(run->results.at({"loss", 0}).ranks.front().data.front(), loss,
              1e-12 * loss);
  const Json &parameters = golden.at("parameters");
  EXPECT_EQ(run->gradients.size(), parameters.size());
  double largest = 0.0;
  for (const Json &parameter : parameters)
    largest = std::max(largest, largestOf(parameter.at("gradient")));
  for (const auto &[key, gradient] : run->gradients) {
    SCOPED_TRACE(key.name());
    const std::vector<double> expected =
        parameters.at(key.name()).at("gradient");
    const std::vector<double> &found = gradient.ranks.front().data;
    ASSERT_EQ(found.size(), expected.size());
    // Softmax cancels the keys' bias, so that its gradient is rounding error.
    const double scale = std::max(largestOf(expected), 1e-6 * largest);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-9 * scale) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TorchGradients,
                         ::testing::Values("gpt2", "bert", "llama", "gemma2",
                                           "mixtral", "t5", "vit"),
                         [](const auto &each) {
                           return std::string(each.param);
                         });

} // namespace
} // namespace mtplan::passes

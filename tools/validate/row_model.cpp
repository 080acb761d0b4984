//===- row_model.cpp - The model of a published run -----------------------===//

#include "tools/validate/row_model.h"

#include <algorithm>
#include <cmath>

#include "mlir/Pass/PassManager.h"

#include "passes/layout/bridge.h"
#include "passes/passes.h"
#include "tools/driver/diagnostics.h"

namespace mtplan::tools {

namespace {

bool has(const std::string &text, std::initializer_list<const char *> words) {
  return std::ranges::any_of(words, [&](const char *word) {
    return text.find(word) != std::string::npos;
  });
}

// An MLP is gated if three matrices explain the stated parameters better than
// two; for some names it is known.
bool isGated(const RunRow &row, double inner, double headDim) {
  if (has(row.model, {"GPT", "gpt", "MPT", "Pythia", "BLOOM", "BERT"}))
    return false;
  double hidden = row.hidden, layers = row.layers;
  if (!row.parametersB || *row.parametersB == 0)
    return has(row.model, {"lama", "Intern", "Mistral", "Qwen", "Mixtral"});
  double keys = row.kvHeads.value_or(row.heads) * headDim;
  double queries = row.heads * headDim;
  double attention = layers * hidden * (2 * queries + 2 * keys);
  auto distance = [&](int matrices) {
    double least = INFINITY;
    for (int tables : {1, 2})
      least = std::min(
          least,
          std::fabs(std::log((attention + matrices * layers * hidden * inner +
                              tables * double(row.vocabulary) * hidden) /
                             (*row.parametersB * 1e9))));
    return least;
  };
  return distance(3) < distance(2);
}

} // namespace

ir::Transformer transformerOf(const RunRow &row, const std::string &software) {
  ir::Transformer model;
  model.sequence = row.sequence;
  model.layers = row.layers;
  model.hidden = row.hidden;
  model.heads = row.heads;
  model.kvHeads = row.kvHeads.value_or(row.heads);
  model.headDim = row.hidden / row.heads;
  model.inner = row.inner.value_or(4 * row.hidden);
  model.attentionScale = 1.0 / std::sqrt(double(model.headDim));
  // All software except llm-foundry pads the vocabulary, so that tensor ranks
  // divide it.
  std::int64_t unit = software == "mosaic" ? 1 : 128 * row.tp;
  model.vocabulary = model.paddedVocabulary =
      (row.vocabulary + unit - 1) / unit * unit;

  bool neox = software == "gpt-neox" || has(row.model, {"Pythia"});
  bool nemotron = has(row.model, {"Nemotron", "emotron"});
  model.gated =
      !nemotron && isGated(row, double(model.inner), double(model.headDim));
  model.rms = model.gated;
  if (model.gated)
    model.activation = ir::Activation::Silu;
  bool rotary = model.gated || nemotron || neox;
  model.positionRows = rotary ? 0 : row.sequence;
  model.rotaryDim =
      neox ? std::max<std::int64_t>(2, model.headDim / 8 * 2) : model.headDim;
  if (neox)
    model.form = ir::BlockForm::parallelTwoNorms;
  model.tied = !rotary;
  model.queryBias = model.projBias = model.mlpBias = !model.gated && !nemotron;
  if (has(software, {"megatron", "deepspeed-2021", "bloom", "vtrain"}))
    model.attentionDropout = model.residualDropout = model.embedDropout = 0.1;
  return model;
}

std::optional<planner::ModelGraph> graphOf(const ir::Transformer &model,
                                           bool half,
                                           std::vector<std::string> &errors) {
  if (model.headDim * model.heads > model.hidden * 4 ||
      model.heads % model.kvHeads != 0) {
    errors.push_back(std::to_string(model.heads) + " heads do not divide by " +
                     std::to_string(model.kvHeads) + " key/value heads");
    return std::nullopt;
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.getOrLoadDialect<ir::MtpDialect>();
  CapturedDiagnostics captured(context, errors);
  mlir::Type element = mlir::BFloat16Type::get(&context);
  if (half)
    element = mlir::Float16Type::get(&context);
  ir::ModelBuilder builder(context, "row", element);
  ir::buildTransformer(builder, model);
  mlir::PassManager passes(&context);
  passes.addPass(passes::createDifferentiatePass());
  passes.addPass(passes::createVerifyGradientsPass());
  if (mlir::failed(passes.run(*builder.module)))
    return std::nullopt;
  return passes::buildModelGraph(*builder.module);
}

} // namespace mtplan::tools

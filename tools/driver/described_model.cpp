//===- described_model.cpp - A model as trainers describe it --------------===//

#include "tools/driver/described_model.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ir/mtp.h"
#include "planner/integers.h"
#include "tools/exchange/megatron.h"

namespace mtplan::tools {

using planner::at;

namespace {

bool hasParameter(const ir::LoadedModel &model, llvm::StringRef label) {
  bool found = false;
  model.module.get().walk([&](ir::ParameterOp parameter) {
    found |= parameter.getLabel() == label;
  });
  return found;
}

void describeExperts(const ir::LoadedModel &model, ModelFacts &facts) {
  mlir::ModuleOp module = model.module.get();
  module.walk([&](ir::MoeGateOp gate) {
    auto type = llvm::cast<mlir::RankedTensorType>(gate.getResult().getType());
    facts.experts = type.getDimSize(2);
    facts.expertsPerToken = static_cast<std::int64_t>(gate.getTopK());
  });
  module.walk([&](ir::MoeDispatchOp dispatch) {
    auto type =
        llvm::cast<mlir::RankedTensorType>(dispatch.getResult().getType());
    facts.expertCapacity =
        static_cast<double>(type.getDimSize(2) * facts.experts) /
        static_cast<double>(model.sequence * facts.expertsPerToken);
  });
  module.walk([&](ir::BalanceLossOp loss) {
    facts.balanceLoss = loss.getCoefficient().convertToDouble();
  });
}

// Returns a power of two, p, such that rounding the vocabulary up to a multiple
// of p times the tensor ranks gives the model's padded vocabulary. Returns 128
// if there is no such p.
std::int64_t vocabularyMultiple(const ir::LoadedModel &model,
                                std::int64_t tensorRanks) {
  constexpr std::int64_t kUsual = 128;
  if (!model.vocabulary || !model.paddedVocabulary)
    return kUsual;
  std::vector<std::int64_t> multiples;
  for (std::int64_t multiple = kUsual; multiple <= 64 * kUsual; multiple *= 2)
    multiples.push_back(multiple);
  for (std::int64_t multiple = kUsual / 2; multiple > 0; multiple /= 2)
    multiples.push_back(multiple);
  for (const std::int64_t multiple : multiples)
    if (megatronVocabulary(*model.vocabulary, multiple, tensorRanks) ==
        *model.paddedVocabulary)
      return multiple;
  return kUsual;
}

} // namespace

void describeModel(const ir::LoadedModel &model, std::int64_t tensorRanks,
                   TrainerConfig &config) {
  ModelFacts &facts = config.model;
  facts.layers = model.layers;
  facts.hidden = model.hidden.value_or(0);
  facts.heads = model.heads.value_or(0);
  facts.kvHeads = model.kvHeads.value_or(facts.heads);
  if (model.headDim && *model.headDim * facts.heads != facts.hidden)
    facts.headWidth = *model.headDim;
  facts.ffn = model.inner.value_or(0);
  facts.vocab = model.vocabulary.value_or(0);
  facts.vocabMultiple = vocabularyMultiple(model, tensorRanks);
  facts.sequence = model.sequence;
  facts.tied = !hasParameter(model, "lm_head.weight");
  facts.linearBias = hasParameter(model, "h.*.attn.proj.bias");
  facts.qkvBias = !facts.linearBias && hasParameter(model, "h.*.attn.q.bias");
  facts.position = PositionKind::none;
  config.training.attentionDropout = config.training.hiddenDropout = 0;
  model.module.get().walk([&](mlir::Operation *op) {
    if (auto norm = llvm::dyn_cast<ir::RmsNormOp>(op)) {
      facts.norm = NormKind::rmsNorm;
      facts.normEpsilon = norm.getEpsilon().convertToDouble();
    } else if (auto layerNorm = llvm::dyn_cast<ir::LayerNormOp>(op)) {
      facts.normEpsilon = layerNorm.getEpsilon().convertToDouble();
    } else if (auto rope = llvm::dyn_cast<ir::RopeOp>(op)) {
      facts.position = PositionKind::rope;
      facts.rotaryBase = rope.getTheta().convertToDouble();
      facts.rotaryShare = static_cast<double>(rope.getRotaryDim()) /
                          static_cast<double>(rope.getHeadDim());
    } else if (llvm::isa<ir::PositionEmbeddingOp>(op)) {
      facts.position = PositionKind::learned;
    } else if (llvm::isa<ir::SwigluOp>(op)) {
      facts.swiglu = true;
    } else if (auto dropout = llvm::dyn_cast<ir::DropoutOp>(op)) {
      config.training.hiddenDropout = dropout.getRate().convertToDouble();
    } else if (auto attention = llvm::dyn_cast<ir::AttentionOp>(op)) {
      config.training.attentionDropout = attention.getRate().convertToDouble();
    }
  });
  describeExperts(model, facts);
}

//===----------------------------------------------------------------------===//
// Megatron-LM's GPT
//===----------------------------------------------------------------------===//

namespace {

// Lists the labels of a GPT's operators, in the order in which Megatron-LM runs
// the operators.
constexpr std::array<std::string_view, 34> kGptLabels = {
    "wte",
    "wpe",
    "embed.drop",
    "h.*.ln_1",
    "h.*.attn.q",
    "h.*.attn.k",
    "h.*.attn.v",
    "h.*.attn.q_rope",
    "h.*.attn.k_rope",
    "h.*.attn.core",
    "h.*.attn.proj",
    "h.*.attn.drop",
    "h.*.attn.add",
    "h.*.ln_2",
    "h.*.mlp.gate",
    "h.*.mlp.up",
    "h.*.mlp.fc1",
    "h.*.mlp.act",
    "h.*.mlp.down",
    "h.*.mlp.fc2",
    "h.*.moe.router",
    "h.*.moe.gates",
    "h.*.moe.slots",
    "h.*.moe.balance",
    "h.*.moe.dispatch",
    "h.*.moe.gate",
    "h.*.moe.up",
    "h.*.moe.act",
    "h.*.moe.down",
    "h.*.moe.combine",
    "h.*.mlp.drop",
    "h.*.mlp.add",
    "ln_f",
    "lm_head",
};

bool isLossPart(std::string_view label) { return label.starts_with("loss"); }

} // namespace

std::vector<std::string> unlikeGpt(const ir::LoadedModel &model) {
  std::vector<std::string> reasons;
  auto add = [&](const std::string &reason) {
    if (reasons.empty())
      reasons.push_back(fmt::format(
          "Megatron-LM's options describe a GPT, but {} is a {}: {}; nearest: "
          "--export dtensor",
          model.name, model.family, reason));
  };
  std::ptrdiff_t before = -1;
  model.module.get().walk([&](mlir::Operation *op) {
    if (!llvm::isa<ir::ComputeOp>(op))
      return;
    const std::string label =
        op->getAttrOfType<mlir::StringAttr>("label").str();
    if (isLossPart(label))
      return;
    const auto *known = std::ranges::find(kGptLabels, label);
    if (known == kGptLabels.end())
      return add("it has no operator like " + label);
    const std::ptrdiff_t place = known - kGptLabels.begin();
    if (place < before)
      add(fmt::format("its {} comes before {}", label, kGptLabels[at(before)]));
    before = place;
    if (auto attention = llvm::dyn_cast<ir::AttentionOp>(op)) {
      if (!attention.getCausal())
        add("its attention is causal, the model's is not");
      if (attention.getSoftcap() || attention.getBias())
        add("its attention has neither soft caps nor biases");
    }
    if (auto activation = llvm::dyn_cast<ir::ActivationOp>(op);
        activation && activation.getKind() != ir::Activation::Gelu &&
        activation.getKind() != ir::Activation::GeluTanh)
      add("its MLP has GELU or SwiGLU, the model's " +
          ir::stringifyActivation(activation.getKind()).str());
  });
  const bool proj = hasParameter(model, "h.*.attn.proj.bias");
  const bool mlp = hasParameter(model, "h.*.mlp.fc2.bias") ||
                   hasParameter(model, "h.*.mlp.down.bias");
  if (proj != mlp || hasParameter(model, "lm_head.bias"))
    add("its products have biases throughout, except for the head, or none");
  return reasons;
}

} // namespace mtplan::tools

//===- exported_model.cpp - A model in the words of trainers --------------===//

#include "tools/report/exported_model.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/mtp.h"
#include "planner/integers.h"
#include "planner/search/space/setting.h"
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

// Returns the power of two whose multiples, times the tensor ranks, give the
// model's padded vocabulary; 128 if none does.
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

// The order of a layer's operators is Megatron-LM's, too.
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

//===----------------------------------------------------------------------===//
// Tensor ranks
//===----------------------------------------------------------------------===//

namespace {

struct ExpectedSplit {
  std::string_view tail; ///< end of the operator's label
  std::string_view word;
};

constexpr ExpectedSplit kExpected[] = {
    {".attn.q", "column"},  {".attn.k", "column"},   {".attn.v", "column"},
    {".attn.core", "head"}, {".attn.proj", "row"},   {".mlp.gate", "column"},
    {".mlp.up", "column"},  {".mlp.fc1", "column"},  {".mlp.down", "row"},
    {".mlp.fc2", "row"},    {".moe.gate", "column"}, {".moe.up", "column"},
    {".moe.down", "row"},
};

constexpr std::array<std::string_view, 4> kSplits = {"column", "row", "head",
                                                     "vocab"};

// Returns the word for the use of the tensor axis, or "" if any use is fine.
std::string_view expectedWord(const planner::Op &op, bool sequence) {
  for (const ExpectedSplit &expected : kExpected)
    if (op.name.ends_with(expected.tail))
      return expected.word;
  if (op.name == "wte" || op.name == "lm_head")
    return "vocab";
  const bool isNorm = op.kind == "layer_norm" || op.kind == "rms_norm";
  if (isNorm || op.kind == "add" || op.kind == "dropout")
    return sequence ? "sequence" : "replicated";
  return "";
}

} // namespace

std::string nameOfLayers(const std::string &label, int first, int count) {
  std::size_t star = label.find('*');
  if (star == label.npos)
    return label;
  std::string copies = std::to_string(first);
  if (count > 1)
    copies += ".." + std::to_string(first + count - 1);
  return label.substr(0, star) + copies + label.substr(star + 1);
}

std::string twoAxesText(const std::string &trainer,
                        const planner::Parallelism &config) {
  return fmt::format(
      "{} has one tensor axis, but the plan has two of {} and {} "
      "ranks; nearest: --tp-axes 1",
      trainer, config.tp / config.tp2, config.tp2);
}

std::vector<std::string> unlikeMegatronSplits(const PlanOutcome &outcome,
                                              const std::string &trainer,
                                              bool sequence) {
  const Problem &problem = *outcome.problem;
  const planner::PlannedCandidate &plan = *outcome.best();
  if (plan.config.tp == 1)
    return {};
  if (plan.config.tp2 > 1)
    return {twoAxesText(trainer, plan.config)};
  const int axis = planner::tensorAxisOf(planner::meshOf(plan.config));
  const bool wholeKeys =
      problem.model.kvHeads && *problem.model.kvHeads % plan.config.tp != 0;
  std::vector<std::string> others, pins;
  bool otherSplits = false;
  for (const planner::SegmentPlan &run : plan.plans()) {
    const planner::SegmentGraph &segment =
        problem.graph.segments[at(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const planner::Op &op = segment.ops[o];
      const std::string_view expected = expectedWord(op, sequence);
      const std::string word = planner::wordOf(op, run.strategies[o], axis);
      const bool isSum = expected == "replicated" && word == "partial";
      const bool isWhole =
          wholeKeys && word == "replicated" &&
          (op.name.ends_with(".attn.k") || op.name.ends_with(".attn.v"));
      if (op.phase != planner::Phase::forward || expected.empty() ||
          word == expected || isSum || isWhole)
        continue;
      others.push_back(fmt::format("{} is {}, not {}",
                                   nameOfLayers(op.name, run.first, run.count),
                                   word, expected));
      const bool isMegatrons =
          std::ranges::find(kSplits, word) != kSplits.end();
      otherSplits |= !sequence && !isMegatrons;
      std::string pin = fmt::format("--pin '{}={}'", op.name, expected);
      if ((sequence || isMegatrons) &&
          std::ranges::find(pins, pin) == pins.end())
        pins.push_back(std::move(pin));
    }
  }
  if (others.empty())
    return {};
  if (otherSplits)
    pins.insert(pins.begin(),
                fmt::format("--splits {}", fmt::join(kSplits, ",")));
  constexpr std::size_t kMostShown = 2;
  const std::size_t shown = std::min(others.size(), kMostShown);
  return {fmt::format(
      "the {} tensor ranks work otherwise than {}'s: {}{}; nearest: {}",
      plan.config.tp, trainer,
      fmt::join(others.begin(),
                others.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      others.size() > shown ? fmt::format(" and {} more", others.size() - shown)
                            : "",
      fmt::join(pins, " "))};
}

} // namespace mtplan::tools

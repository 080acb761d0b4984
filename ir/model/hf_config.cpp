//===- hf_config.cpp - Hugging Face config.json ---------------------------===//

#include "ir/model/hf_config.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ir/model/module_facts.h"

namespace mtplan::ir {

namespace {

// Is the default limit of the sequence length for models with rotary positions.
// The limit in the file of such a model is often longer than the sequences that
// the model was pretrained on.
constexpr std::int64_t kDefaultLongest = 8192;

// The vocabulary is padded to a multiple of this number. If the number of ranks
// that shard the vocabulary divides 128, the padded size therefore does not
// depend on the number of ranks.
constexpr std::int64_t kVocabularyMultiple = 128;

std::string str(std::int64_t value) { return std::to_string(value); }

// Returns the divisors of `whole` nearest to `count`, as "16 and 24".
std::string neighbouringDivisors(std::int64_t whole, std::int64_t count) {
  std::int64_t below = 0, above = 0;
  auto consider = [&](std::int64_t divisor) {
    if (divisor < count)
      below = std::max(below, divisor);
    else if (divisor > count && (above == 0 || divisor < above))
      above = divisor;
  };
  for (std::int64_t d = 1; d * d <= whole; ++d)
    if (whole % d == 0) {
      consider(d);
      consider(whole / d);
    }
  if (below == 0 || above == 0)
    return str(std::max(below, above));
  return str(below) + " and " + str(above);
}

} // namespace

void HfConfig::rejectHeads(const char *key, std::int64_t count,
                           const std::string &of, std::int64_t whole) {
  fields.error(key,
               str(count) + " does not divide " + of + ' ' + str(whole) +
                   "; nearest that do: " + neighbouringDivisors(whole, count));
}

void HfConfig::readBlockSizes(const char *hiddenKey, const char *headsKey,
                              const char *layersKey, const char *kvKey,
                              const char *widthKey) {
  hidden = fields.size(hiddenKey);
  heads = fields.size(headsKey);
  model.hidden = hidden.value_or(1);
  model.heads = model.kvHeads = heads.value_or(1);

  std::optional<std::int64_t> layers = fields.size(layersKey, kMaxLayers);
  model.layers = overrides.layers.value_or(layers.value_or(1));

  if (*kvKey)
    if (auto kvHeads = fields.sizeIfAny(kvKey)) {
      model.kvHeads = *kvHeads;
      if (heads && *heads % *kvHeads != 0)
        rejectHeads(kvKey, *kvHeads, headsKey, *heads);
    }

  if (*kvKey && !*widthKey)
    widthKey = "head_dim";
  headDim = *widthKey ? fields.sizeIfAny(widthKey) : std::nullopt;
  if (!headDim && hidden && heads) {
    if (*hidden % *heads != 0)
      rejectHeads(headsKey, *heads, hiddenKey, *hidden);
    else
      headDim = *hidden / *heads;
  }
  model.headDim = headDim.value_or(1);
  model.attentionScale = 1.0 / std::sqrt(static_cast<double>(model.headDim));
}

void HfConfig::readInner(const char *key, bool required) {
  auto inner = required ? fields.size(key) : fields.sizeIfAny(key);
  model.inner = inner.value_or(4 * model.hidden);
}

void HfConfig::readVocabulary() {
  setVocabulary(fields.size("vocab_size"), "vocab_size");
}

void HfConfig::readClasses() {
  std::int64_t classes = fields.sizeIfAny("num_labels").value_or(2);
  const JsonValue *labels = fields.value("id2label");
  if (labels && labels->kind == JsonValue::Kind::object &&
      !labels->members.empty())
    classes = static_cast<std::int64_t>(labels->members.size());
  setVocabulary(classes, "the number of classes");
}

void HfConfig::setVocabulary(std::optional<std::int64_t> size,
                             const char *name) {
  auto padded = fields.sizeIfAny("padded_vocab_size");
  model.vocabulary = size.value_or(1);
  model.paddedVocabulary = (model.vocabulary + kVocabularyMultiple - 1) /
                           kVocabularyMultiple * kVocabularyMultiple;
  if (!padded)
    return;
  if (size && *padded < *size)
    fields.error("padded_vocab_size",
                 str(*padded) + " is less than " + name + ' ' + str(*size) +
                     "; at least " + str(*size) + " is needed, a multiple of " +
                     str(kVocabularyMultiple) + " such as " +
                     str(model.paddedVocabulary) + " is usual");
  model.paddedVocabulary = *padded;
}

void HfConfig::readLearnedPositions(const char *key, const char *olderKey) {
  std::optional<std::int64_t> older =
      *olderKey ? fields.sizeIfAny(olderKey) : std::nullopt;
  bool onlyOlder = older && !fields.has(key);
  std::optional<std::int64_t> rows = onlyOlder ? older : fields.size(key);
  if (rows && older && *rows != *older)
    fields.error(olderKey, str(*older) + " disagrees with " + key + ' ' +
                               str(*rows) + "; remove one of them");
  model.positionRows = rows.value_or(1);
  model.sequence = overrides.sequence.value_or(model.positionRows);
  if (overrides.sequence && rows && *overrides.sequence > *rows)
    fields.error(onlyOlder ? olderKey : key,
                 "a sequence of " + str(*overrides.sequence) +
                     " was asked for, but there are learned positions for " +
                     str(*rows) + "; at most " + str(*rows) + " is possible");
}

void HfConfig::readTheta(const char *key) {
  constexpr double kLargest = 1.0e15;
  model.theta = fields.number(key, 10000.0, 1.0e-3, kLargest);
  const JsonValue *rope = fields.value("rope_parameters");
  if (rope && rope->kind == JsonValue::Kind::object)
    model.theta = Fields(*rope, fields.at("rope_parameters"), fields.findings)
                      .number("rope_theta", model.theta, 1.0e-3, kLargest);
}

std::optional<std::int64_t> HfConfig::readRotaryShare(const char *key,
                                                      double fallback) {
  constexpr double kWhole = 1.0 + 1.0e-9;
  double share = fields.number(key, fallback, 0.0, kWhole);
  const JsonValue *rope = fields.value("rope_parameters");
  if (rope && rope->kind == JsonValue::Kind::object)
    share = Fields(*rope, fields.at("rope_parameters"), fields.findings)
                .number("partial_rotary_factor", share, 0.0, kWhole);
  readsRotaryShare = true;
  if (!headDim)
    return std::nullopt;
  return static_cast<std::int64_t>(share * static_cast<double>(*headDim));
}

// Returns the longest sequence that needs no RoPE scaling. If the file scales
// positions, the result is the original length, and a note says that scaling is
// not applied. Otherwise the result is `positions`.
std::int64_t HfConfig::longestUnscaled(std::int64_t positions) {
  std::int64_t longest = positions;
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    const JsonValue *value = fields.value(key);
    if (!value)
      continue;
    if (!fields.findings.expectObject(*value, fields.at(key)))
      continue;
    Fields rope(*value, fields.at(key), fields.findings);
    std::string type = rope.text("rope_type", rope.text("type", "default"));
    double share = rope.number("partial_rotary_factor", 1.0, 0.0, 1.01);
    bool isRead =
        readsRotaryShare && key == std::string_view("rope_parameters");
    if (share != 1.0 && !isRead)
      rope.error("partial_rotary_factor", "is supported at the top level only");
    double factor = rope.number("factor", 1.0, 1.0, 1.0e6);
    std::optional<std::int64_t> original =
        rope.sizeIfAny("original_max_position_embeddings");
    if (type == "default")
      continue;
    longest = original.value_or(std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(positions) / factor)));
    fields.findings.note(std::string(key) + " \"" + type +
                         "\" is left out: positions are rotated as for "
                         "sequences up to " +
                         str(longest));
  }
  return longest;
}

void HfConfig::readRotaryPositions(const char *key,
                                   std::optional<std::int64_t> dim,
                                   const char *windowKey) {
  std::optional<std::int64_t> positions = fields.size(key);
  std::int64_t stated = positions.value_or(1);
  std::int64_t unscaled = longestUnscaled(stated);
  // Without a window the limit is larger than any sequence.
  std::int64_t window = kSizeLimit;
  if (*windowKey)
    window = fields.sizeIfAny(windowKey).value_or(kSizeLimit);

  std::int64_t usual = std::min({stated, unscaled, window, kDefaultLongest});
  model.sequence = overrides.sequence.value_or(usual);
  if (!overrides.sequence && usual < stated)
    fields.findings.note("the sequence is " + str(usual) + ", not the " +
                         str(stated) + " of " + key +
                         "; ask for another length to change it");
  if (model.sequence > stated && positions)
    fields.findings.note("the sequence " + str(model.sequence) +
                         " is longer than " + key + ' ' + str(stated));
  if (model.sequence > unscaled && unscaled < stated)
    fields.findings.error("", "a sequence of " + str(model.sequence) +
                                  " needs rope scaling, which is not "
                                  "supported; without it at most " +
                                  str(unscaled) + " is possible");
  if (model.sequence > window)
    fields.error(windowKey,
                 "a sequence of " + str(model.sequence) +
                     " is longer than the window of " + str(window) +
                     "; sliding-window attention is not supported, at most " +
                     str(window) + " is possible");

  model.rotaryDim = dim.value_or(model.headDim);
  if (headDim && (model.rotaryDim % 2 != 0 || model.rotaryDim < 2 ||
                  model.rotaryDim > *headDim))
    fields.findings.error("", str(model.rotaryDim) +
                                  " features of a head are to be rotated; it "
                                  "must be an even number from 2 to the head's "
                                  "width " +
                                  str(*headDim));
}

void HfConfig::readActivation(const char *key, const char *fallback) {
  setActivation(key, fields.text(key, fallback));
}

void HfConfig::setActivation(const char *key, const std::string &name) {
  struct Name {
    const char *text;
    Activation kind;
  };
  static constexpr Name kNames[] = {{"gelu", Activation::Gelu},
                                    {"gelu_new", Activation::GeluTanh},
                                    {"gelu_pytorch_tanh", Activation::GeluTanh},
                                    {"gelu_fast", Activation::GeluTanh},
                                    {"silu", Activation::Silu},
                                    {"swish", Activation::Silu},
                                    {"relu", Activation::Relu},
                                    {"tanh", Activation::Tanh},
                                    {"sigmoid", Activation::Sigmoid}};
  std::vector<std::string> known;
  for (const Name &one : kNames) {
    known.emplace_back(one.text);
    if (name == one.text) {
      model.activation = one.kind;
      return;
    }
  }
  fields.error(key, unknownName("activation", name, known));
}

void HfConfig::require(const char *key, bool value, const char *why) {
  if (fields.flag(key, value) != value)
    fields.error(key, std::string("only ") + (value ? "true" : "false") +
                          " is supported: " + why);
}

namespace {

struct Family {
  const char *modelType;
  const char *architecture; ///< Hugging Face class that the reader builds
  void (*read)(HfConfig &);
};

constexpr Family kFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", readGpt2},
    {"gptj", "GPTJForCausalLM", readGptj},
    {"gpt_neox", "GPTNeoXForCausalLM", readGptNeox},
    {"bert", "BertForMaskedLM", readBert},
    {"llama", "LlamaForCausalLM", readLlama},
    {"mistral", "MistralForCausalLM", readMistral},
    {"gemma2", "Gemma2ForCausalLM", readGemma2},
    {"qwen2", "Qwen2ForCausalLM", readQwen2},
    {"mixtral", "MixtralForCausalLM", readMixtral},
    {"qwen2_moe", "Qwen2MoeForCausalLM", readQwen2Moe},
    {"vit", "ViTForImageClassification", readVit},
    {"t5", "T5ForConditionalGeneration", readT5},
};

const Family *findFamily(Fields &fields) {
  std::string modelType = fields.name("model_type");
  std::vector<std::string> known;
  for (const Family &family : kFamilies) {
    if (modelType == family.modelType)
      return &family;
    known.emplace_back(family.modelType);
  }
  if (!modelType.empty())
    fields.error("model_type", unknownName("architecture", modelType, known));
  return nullptr;
}

void readCommon(Fields &fields, const Family &family,
                const ShapeOverrides &overrides) {
  // These keys describe files, tokens, generation, execution or heads that the
  // model lacks. None of the keys changes the step, except id2label in a
  // classifier.
  fields.ignore({"_name_or_path",
                 "transformers_version",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "use_cache",
                 "task_specific_params",
                 "summary_activation",
                 "summary_first_dropout",
                 "summary_proj_to_labels",
                 "summary_type",
                 "summary_use_proj",
                 "classifier_dropout",
                 "gradient_checkpointing",
                 "pretraining_tp",
                 "auto_map",
                 "output_past",
                 "tokenizer_class",
                 "torchscript",
                 "id2label",
                 "label2id"});
  std::vector<std::string> architectures = fields.texts("architectures");
  if (!architectures.empty() && architectures.front() != family.architecture)
    fields.findings.note(std::string("built as ") + family.architecture +
                         ", not as " + architectures.front());
  double range = fields.number("initializer_range", 0.02, 0.0, 1.0e3);
  if (range != 0.02)
    fields.findings.note("initializer_range is ignored: weights are drawn with "
                         "a standard deviation of 0.02");
  std::string type = fields.text("dtype", fields.text("torch_dtype", ""));
  std::string ours = overrides.elementType == "bf16"  ? "bfloat16"
                     : overrides.elementType == "f16" ? "float16"
                                                      : "float32";
  if (!type.empty() && type != ours)
    fields.findings.note("the file's type " + type +
                         " is ignored: tensors are " + ours);
}

} // namespace

LoadedModel loadHfConfig(mlir::MLIRContext &context, const JsonValue &root,
                         const ShapeOverrides &overrides, Findings &findings) {
  LoadedModel loaded;
  Fields fields(root, "", findings);
  const Family *family = findFamily(fields);
  if (!family)
    return loaded;

  HfConfig config(fields, overrides);
  readCommon(fields, *family, overrides);
  loaded.name = fields.text("name", fields.text("_name_or_path", ""));
  loaded.globalBatch = fields.sizeIfAny("global_batch_size");
  family->read(config);
  fields.noteUnread();
  if (!findings.errors.empty())
    return loaded;

  const Transformer &model = config.model;
  ModelBuilder builder(context, findings.file,
                       elementTypeOf(context, overrides.elementType));
  buildTransformer(builder, model);
  loaded.module = std::move(builder.module);
  loaded.family = family->modelType;
  loaded.sequence = model.sequence;
  loaded.layers = model.layers + model.decoder.layers;
  loaded.hidden = model.hidden;
  loaded.inner = model.inner;
  loaded.heads = model.heads;
  loaded.kvHeads = model.kvHeads;
  loaded.headDim = model.headDim;
  loaded.vocabulary = model.vocabulary;
  loaded.paddedVocabulary = model.paddedVocabulary;
  std::int64_t paddingPerRow =
      model.hidden * (model.tied || model.patchWidth > 0 ? 1 : 2) +
      (model.headBias ? 1 : 0);
  loaded.paddingParameters =
      (model.paddedVocabulary - model.vocabulary) * paddingPerRow;
  return loaded;
}

} // namespace mtplan::ir

//===- hf_families.cpp - Maps model_type to a reader ------------*- C++ -*-===//

#include "ir/model/hf_config.h"
#include "ir/model/module_facts.h"

namespace mtplan::ir {

namespace {

struct Family {
  const char *modelType;
  const char *architecture; ///< what its reader builds
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

// These keys describe files, tokens, generation or other heads, and do not
// change the step.
const std::vector<std::string> kInert = {"_name_or_path",
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
                                         "label2id"};

void readCommon(Fields &fields, const Family &family,
                const ShapeOverrides &overrides) {
  fields.ignore(kInert);
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

//===- hf_config.h - Hugging Face config.json -------------------*- C++ -*-===//
//
// Reads the fields that all families share: block sizes, vocabulary padding and
// sequence length. The reader of a family calls these functions with its own
// key names and sets the other members of `model`. Every family accepts these
// keys of mtplan: name, padded_vocab_size, global_batch_size; models with
// experts also accept capacity_factor.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_HF_CONFIG_H
#define MTPLAN_IR_MODEL_HF_CONFIG_H

#include <optional>
#include <string>

#include "ir/model/fields.h"
#include "ir/model/load.h"
#include "ir/model/transformer.h"

namespace mtplan::ir {

class HfConfig {
public:
  HfConfig(Fields &configFields, const ShapeOverrides &shapeOverrides)
      : fields(configFields), overrides(shapeOverrides) {}

  Fields &fields;
  const ShapeOverrides &overrides;
  Transformer model;

  /// Reads the hidden size, the numbers of heads, key/value heads and layers,
  /// and the width of a head. If `kvKey` is empty or the file lacks it, the
  /// number of key/value heads equals the number of heads. If `widthKey` is
  /// empty and `kvKey` is not, the key of the width is head_dim. If the file
  /// has no width, the width is the hidden size divided by the number of heads.
  void readBlockSizes(const char *hiddenKey, const char *headsKey,
                      const char *layersKey, const char *kvKey = "",
                      const char *widthKey = "");
  void readUsualSizes(const char *kvKey = "") {
    readBlockSizes("hidden_size", "num_attention_heads", "num_hidden_layers",
                   kvKey);
    readInner("intermediate_size", /*required=*/true);
  }
  /// Reads the width inside the MLP. If `key` is absent and not `required`, the
  /// width is four times the hidden size.
  void readInner(const char *key, bool required);
  void readVocabulary();
  /// Reads the number of classes of a classifier: the size of id2label, else
  /// num_labels, else 2.
  void readClasses();
  void readLearnedPositions(const char *key, const char *olderKey = "");
  /// Sets the number of rotated features and the sequence length of a model
  /// with rotary positions. The value of `key` is the maximum length.
  /// \param dim  rotated features per head, by default all
  /// \param windowKey  key of the window of sliding-window attention, or empty
  void readRotaryPositions(const char *key, std::optional<std::int64_t> dim,
                           const char *windowKey = "");
  /// Reads theta from `key`, or in newer files from rope_parameters.
  void readTheta(const char *key);
  /// Reads the fraction of a head that is rotated from `key`, or in newer files
  /// from rope_parameters, and returns the number of rotated features.
  std::optional<std::int64_t> readRotaryShare(const char *key, double fallback);
  void readActivation(const char *key, const char *fallback);
  /// Sets the activation called `name`. Error messages mention `key`, the key
  /// of the file whose value is `name`.
  void setActivation(const char *key, const std::string &name);
  double readDropout(const char *key, double fallback) {
    return fields.number(key, fallback, 0.0, 1.0);
  }
  /// Reports an error unless `key` is absent or equals `value`.
  void require(const char *key, bool value, const char *why);

private:
  std::optional<std::int64_t> hidden, heads, headDim;
  bool readsRotaryShare = false;

  std::int64_t longestUnscaled(std::int64_t positions);
  void setVocabulary(std::optional<std::int64_t> size, const char *name);
  void rejectHeads(const char *key, std::int64_t count, const std::string &of,
                   std::int64_t whole);
};

void readGpt2(HfConfig &config);
void readGptj(HfConfig &config);
void readGptNeox(HfConfig &config);
void readBert(HfConfig &config);
void readLlama(HfConfig &config);
void readMistral(HfConfig &config);
void readQwen2(HfConfig &config);
void readMixtral(HfConfig &config);
void readQwen2Moe(HfConfig &config);
void readVit(HfConfig &config);
void readT5(HfConfig &config);
void readGemma2(HfConfig &config);

/// Builds the model of a parsed config.json. Adds errors and notes to
/// `findings`; on errors the module of the result is null.
LoadedModel loadHfConfig(mlir::MLIRContext &context, const JsonValue &root,
                         const ShapeOverrides &overrides, Findings &findings);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_HF_CONFIG_H

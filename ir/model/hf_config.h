//===- hf_config.h - Hugging Face config.json -------------------*- C++ -*-===//
//
// What the families share: sizes that must fit each other, vocabulary padding,
// the length of a sample. A family's reader calls these in its own words and
// fills in what is left of the record. Keys of mtplan's own, accepted in every
// family: name, padded_vocab_size, global_batch_size; where there are experts,
// capacity_factor.
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

  /// hidden, heads, key/value heads (`kvKey` may be empty: as many as heads),
  /// the width of a head, layers. `widthKey` says where that width may stand;
  /// with key/value heads it is head_dim by default.
  void readBlockSizes(const char *hiddenKey, const char *headsKey,
                      const char *layersKey, const char *kvKey = "",
                      const char *widthKey = "");
  /// Width inside the MLP; four times hidden if absent and not `required`.
  void readInner(const char *key, bool required);
  /// vocab_size and padded_vocab_size.
  void readVocabulary();
  /// Classes of a classifier: those of id2label, or num_labels, or 2.
  void readClasses();
  /// A table of positions; a sample may not be longer.
  void readLearnedPositions(const char *key, const char *olderKey = "");
  /// Rotary positions. `dim` features of every head turn, all if nothing;
  /// `windowKey` names the width of sliding-window attention, if any.
  void readRotaryPositions(const char *key, std::optional<std::int64_t> dim,
                           const char *windowKey = "");
  /// theta, from where old and new files keep it.
  void readTheta(const char *key);
  /// Share of every head that turns, as a number of features.
  std::optional<std::int64_t> readRotaryShare(const char *key, double fallback);
  void readActivation(const char *key, const char *fallback);
  /// The activation called `name`, which `key` asks for.
  void setActivation(const char *key, const std::string &name);
  double readDropout(const char *key, double fallback) {
    return fields.number(key, fallback, 0.0, 1.0);
  }
  /// An error unless `key` is absent or `value`.
  void require(const char *key, bool value, const char *why);

private:
  std::optional<std::int64_t> hidden, heads, headDim;

  std::int64_t longestUnscaled(std::int64_t positions);
  void setVocabulary(std::optional<std::int64_t> size, const char *name);
  void refuseHeads(const char *key, std::int64_t count, const std::string &of,
                   std::int64_t whole);
};

// The families, each in a file of its own.
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

/// Builds the model of a parsed config.json. Adds to `findings`; on errors the
/// result's module is null.
LoadedModel loadHfConfig(mlir::MLIRContext &context, const JsonValue &root,
                         const ShapeOverrides &overrides, Findings &findings);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_HF_CONFIG_H

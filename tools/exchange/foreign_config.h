//===- foreign_config.h - What another trainer was told ---------*- C++ -*-===//
//
// The meeting point of all notations that say how a training run is shared out:
// a reader fills one of these, a writer says one in its own words. A value that
// a notation cannot say keeps its default.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_FOREIGN_CONFIG_H
#define MTPLAN_TOOLS_EXCHANGE_FOREIGN_CONFIG_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/machine/machine.h"
#include "planner/search/parallelism.h"

namespace mtplan::tools {

enum class NormKind : std::uint8_t { layerNorm, rmsNorm };
enum class PositionKind : std::uint8_t { learned, rope, none };

/// Shape of the model as far as a configuration says it; 0: it does not.
struct ModelFacts {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kvHeads = 0;   ///< as many as heads unless they are grouped
  std::int64_t headWidth = 0; ///< only where it is not hidden / heads
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;           ///< without padding
  std::int64_t vocabMultiple = 128; ///< what the vocabulary is padded to
  std::int64_t sequence = 0;
  std::int64_t experts = 0;
  std::int64_t expertsPerToken = 0;
  bool swiglu = false;
  bool linearBias = true;
  bool tied = true;
  NormKind norm = NormKind::layerNorm;
  PositionKind position = PositionKind::learned;
  bool operator==(const ModelFacts &) const = default;
};

/// What else changes the time or the memory of a step.
struct TrainingKnobs {
  double attentionDropout = 0.1;
  double hiddenDropout = 0.1;
  bool overlapGradReduce = false;
  bool overlapParamGather = false;
  bool overlapPipeline = true;   ///< sends between stages beside computation
  bool fp32Gradients = false;    ///< accumulated and reduced in fp32
  std::int64_t reduceBucket = 0; ///< elements; 0: not said
  std::int64_t gatherBucket = 0; ///< elements; 0: not said
  bool operator==(const TrainingKnobs &) const = default;
};

struct ForeignConfig {
  planner::Parallelism parallelism;
  ModelFacts model;
  planner::Precision precision = planner::Precision::fp32;
  TrainingKnobs training;
  /// Options that were understood and change nothing that is planned.
  std::vector<std::string> warnings;
  /// Options that are unknown, contradictory or not planned. If there is one,
  /// the rest is not to be used.
  std::vector<std::string> errors;

  bool ok() const { return errors.empty(); }
};

/// A configuration in another notation.
struct Exported {
  std::string text;
  /// What the notation has no word for, or only a different one.
  std::vector<std::string> notes;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_FOREIGN_CONFIG_H

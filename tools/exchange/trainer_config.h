//===- trainer_config.h - The configuration of a trainer --------*- C++ -*-===//
//
// The common form of all notations of training configurations: readers fill it,
// writers write it. A field that a notation cannot express keeps its default.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TRAINER_CONFIG_H
#define MTPLAN_TOOLS_EXCHANGE_TRAINER_CONFIG_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/machine/machine.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::tools {

enum class NormKind : std::uint8_t { layerNorm, rmsNorm };
enum class PositionKind : std::uint8_t { learned, rope, none };

/// The shape of the model, as far as the configuration has it; 0: unknown.
struct ModelFacts {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kvHeads = 0;   ///< equals heads unless heads are grouped
  std::int64_t headWidth = 0; ///< given only if it is not hidden / heads
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;           ///< rows without padding
  std::int64_t vocabMultiple = 128; ///< padding is to a multiple of this
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

/// Other options that change the time or the memory of a step.
struct TrainingKnobs {
  double attentionDropout = 0.1;
  double hiddenDropout = 0.1;
  bool overlapGradReduce = false;
  bool overlapParamGather = false;
  bool overlapPipeline = true;   ///< sends between stages beside compute
  bool fp32Gradients = false;    ///< accumulated and reduced in fp32
  std::int64_t reduceBucket = 0; ///< elements; 0: unknown
  std::int64_t gatherBucket = 0; ///< elements; 0: unknown
  bool operator==(const TrainingKnobs &) const = default;
};

struct TrainerConfig {
  planner::Parallelism parallelism;
  ModelFacts model;
  planner::Precision precision = planner::Precision::fp32;
  TrainingKnobs training;
  /// Options that were understood and have no effect on the plan.
  std::vector<std::string> warnings;
  /// Options that are unknown, contradictory or not planned. With an error, the
  /// other fields must not be used.
  std::vector<std::string> errors;

  bool ok() const { return errors.empty(); }
};

/// A configuration in another notation.
struct Exported {
  std::string text;
  /// Parts of the configuration that the notation cannot express exactly.
  std::vector<std::string> notes;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TRAINER_CONFIG_H

//===- trainer_config.h - The configuration of a trainer --------*- C++ -*-===//
//
// Readers of all trainers' notations fill a TrainerConfig, and writers print
// one. A field that a notation cannot express keeps its default.
//
// Readers share the checks below. A message has the option's name in the
// notation that is read, both numbers and the nearest that would fit. Numbers
// that are not given are not checked.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TRAINER_CONFIG_H
#define MTPLAN_TOOLS_EXCHANGE_TRAINER_CONFIG_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/machine/machine.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::base {
class JsonFields;
}

namespace mtplan::tools {

enum class NormKind : std::uint8_t { layerNorm, rmsNorm };
enum class PositionKind : std::uint8_t { learned, rope, none };

/// Describes the model, as far as the configuration does; 0: unknown.
struct ModelFacts {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kvHeads = 0;   ///< equals heads unless heads are grouped
  std::int64_t headWidth = 0; ///< given only if it is not hidden / heads
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;           ///< rows without padding
  std::int64_t vocabMultiple = 128; ///< pads vocab to a multiple of this * tp
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

/// Holds the other options that change the time or the memory of a step.
struct TrainingKnobs {
  double attentionDropout = 0.1;
  double hiddenDropout = 0.1;
  bool overlapGradReduce = false;
  bool overlapParamGather = false;
  bool overlapPipeline = true;   ///< sends between stages overlap compute
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
  /// These options have no effect on the plan, or are planned differently.
  std::vector<std::string> warnings;
  /// These options are unknown, contradictory or not planned. With an error,
  /// the other fields must not be used.
  std::vector<std::string> errors;

  bool ok() const { return errors.empty(); }
  void fail(std::string message) { errors.push_back(std::move(message)); }
  void warn(std::string message) { warnings.push_back(std::move(message)); }
};

/// Holds the facts that a trainer reads from its launcher or its code. 0:
/// unknown.
struct Launch {
  std::int64_t gpus = 1;
  int stages = 1;          ///< pipeline stages, if the file lacks them
  std::int64_t layers = 0; ///< layers of the model
  std::int64_t sequence = 0;
  std::int64_t microBatch = 0;  ///< used if the file has none
  std::int64_t globalBatch = 0; ///< used if the file has none
};

/// Holds a configuration in another notation.
struct Exported {
  std::string text;
  /// The notation cannot express these parts of the configuration exactly.
  std::vector<std::string> notes;
};

/// Holds the option names of a notation, and the text between a name and a
/// value: " " for flags, ": " for JSON pointers. An option that the notation
/// lacks has an empty name.
struct TrainerNames {
  std::string assign;
  std::string tp, pp, cp, ep, sequenceParallel, virtualStages;
  std::string microBatch, globalBatch;
  std::string layers, hidden, heads, kvHeads, ffn, sequence, experts, topk;

  /// Returns an option and its value: "--num-layers 4" or "/num_layers: 4".
  std::string say(const std::string &name, std::int64_t value) const;
};

/// Sets dp to the quotient of `gpus` by tp, pp and cp. If they do not divide
/// `gpus`, dp is 1, with an error.
void shareDevices(TrainerConfig &config, std::int64_t gpus,
                  const TrainerNames &names);

/// Checks that tp, cp and ep divide the sizes that they split.
void checkSplits(TrainerConfig &config, const TrainerNames &names);

/// Checks that replicas times micro-batch divide the global batch, and that
/// stages divide the micro-batches if the schedule requires it.
void checkBatches(TrainerConfig &config, const TrainerNames &names);

/// Holds a number, and its name in messages. 0: not given.
struct NamedCount {
  std::string name;
  std::int64_t value = 0;
};

struct BatchTriple {
  NamedCount global; ///< samples per step
  NamedCount micro;  ///< samples per micro-batch
  NamedCount steps;  ///< micro-batches per step and replica
};

/// Fills in missing numbers: two determine the third, and a single batch size
/// means one micro-batch per step. All three must agree for `replicas`; an
/// error names the numbers and the nearest that would agree. Returns whether
/// they agree.
bool completeTriple(BatchTriple &triple, std::int64_t replicas,
                    std::vector<std::string> &errors);

/// Marks `keys` as known, and adds a warning for each that is given.
void noteIrrelevant(base::JsonFields &from,
                    const std::vector<std::string> &keys,
                    TrainerConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TRAINER_CONFIG_H

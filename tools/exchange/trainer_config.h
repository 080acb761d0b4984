//===- trainer_config.h - The configuration of a trainer --------*- C++ -*-===//
//
// The reader of each notation fills a TrainerConfig, and the writer prints a
// TrainerConfig. Fields that a notation cannot express keep their defaults.
//
// Readers share the checks below. A message states the option's name in the
// notation, the two contradicting numbers, and the nearest legal numbers.
// Numbers that are not given are not checked.
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

/// Holds the facts about the model that the configuration states. The number 0
/// means that a fact is unknown.
struct ModelFacts {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kvHeads = 0;   ///< equal to `heads` without grouped heads
  std::int64_t headWidth = 0; ///< given only if it is not hidden / heads
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;           ///< rows without padding
  std::int64_t vocabMultiple = 128; ///< this * tp divides the padded vocab
  std::int64_t sequence = 0;
  std::int64_t experts = 0;
  std::int64_t expertsPerToken = 0;
  /// Limits the tokens of an expert, relative to an even distribution; 0: no
  /// limit.
  double expertCapacity = 0;
  double balanceLoss = 0; ///< coefficient of the experts' balance loss
  bool swiglu = false;
  bool linearBias = true;
  bool qkvBias = false; ///< q, k and v alone have biases
  bool tied = true;
  NormKind norm = NormKind::layerNorm;
  double normEpsilon = 1e-5;
  PositionKind position = PositionKind::learned;
  double rotaryBase = 10'000;
  double rotaryShare = 1; ///< share of a head's features
  bool operator==(const ModelFacts &) const = default;
};

/// Holds other options that change time or memory.
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
  /// Each line names an option that the plan ignores or treats differently.
  std::vector<std::string> warnings;
  /// Each line names an option that is unknown, contradictory or not planned.
  /// If there is an error, the other fields are invalid.
  std::vector<std::string> errors;

  bool ok() const { return errors.empty(); }
  void fail(std::string message) { errors.push_back(std::move(message)); }
  void warn(std::string message) { warnings.push_back(std::move(message)); }
};

/// Holds facts that a trainer reads from its launcher or its code. The number 0
/// means that a fact is unknown.
struct Launch {
  std::int64_t gpus = 1;
  int stages = 1;          ///< pipeline stages, if the file lacks them
  std::int64_t layers = 0; ///< layers of the model
  std::int64_t sequence = 0;
  std::int64_t microBatch = 0;  ///< used if the file has none
  std::int64_t globalBatch = 0; ///< used if the file has none
};

struct Exported {
  std::string text;
  /// Lists settings that the user has to make elsewhere, such as in the model's
  /// code, and differences that change neither the memory nor the messages of
  /// ranks.
  std::vector<std::string> notes;
  /// Lists the reasons why the trainer would run another plan. If there is a
  /// reason, `text` must not be used.
  std::vector<std::string> refusals;

  void note(std::string line) { notes.push_back(std::move(line)); }
  void refuse(std::string reason) { refusals.push_back(std::move(reason)); }
};

/// Refuses a plan whose tensor ranks split the sequence, for a trainer whose
/// tensor ranks hold all positions.
/// \param trainer  name for messages, such as "DeepSpeed"
void refuseSequenceSplit(int tensorRanks, const std::string &trainer,
                         Exported &out);

/// Compares a plan with the configuration that a reader returns for the
/// exported plan. Adds a refusal for each error of the reader or, if there are
/// no errors, for each difference.
/// \param trainer  name for messages, such as "Megatron-LM"
void refuseOtherPlan(const planner::Parallelism &planned,
                     const TrainerConfig &read, const std::string &trainer,
                     Exported &out);

/// Holds the option names of a notation. An option that the notation lacks has
/// an empty name.
struct TrainerNames {
  std::string assign; ///< text between name and value: " " or ": "
  std::string tp, pp, cp, ep, sequenceParallel, virtualStages;
  std::string microBatch, globalBatch;
  std::string layers, hidden, heads, kvHeads, ffn, sequence, experts, topk;

  /// Returns "--num-layers 4" or "/num_layers: 4".
  std::string say(const std::string &name, std::int64_t value) const;
};

/// Sets dp to `gpus` divided by the product of tp, pp and cp. If the product
/// does not divide `gpus`, dp is 1, with an error.
void shareDevices(TrainerConfig &config, std::int64_t gpus,
                  const TrainerNames &names);

/// Checks that tp, cp and ep divide the sizes that they split.
void checkSplits(TrainerConfig &config, const TrainerNames &names);

/// Checks that dp times the micro-batch divides the global batch, and that pp
/// divides the number of micro-batches if the schedule is interleaved.
void checkBatches(TrainerConfig &config, const TrainerNames &names);

struct NamedCount {
  std::string name;
  std::int64_t value = 0; ///< 0: not given
};

struct BatchTriple {
  NamedCount global; ///< samples per step
  NamedCount micro;  ///< samples per micro-batch
  NamedCount steps;  ///< micro-batches per step and replica
};

/// Fills in missing numbers. Two numbers determine the third, and a single
/// batch size means one micro-batch per step. The global batch must be the
/// product of the other two and `replicas`; an error names the nearest global
/// batch that fits. Returns false on an error.
bool completeTriple(BatchTriple &triple, std::int64_t replicas,
                    std::vector<std::string> &errors);

/// Marks `keys` as known, and adds a warning for each key that is given.
void noteIrrelevant(base::JsonFields &from,
                    const std::vector<std::string> &keys,
                    TrainerConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TRAINER_CONFIG_H

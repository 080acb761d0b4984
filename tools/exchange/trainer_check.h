//===- trainer_check.h - Checks that all trainers share ---------*- C++ -*-===//
//
// A message names the option in the notation at hand, both numbers and the
// nearest that would fit. Numbers that are not given are not checked.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TRAINER_CHECK_H
#define MTPLAN_TOOLS_EXCHANGE_TRAINER_CHECK_H

#include <string>

#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// The names of a notation, and the text before a value: a blank for flags, ":
/// " for JSON pointers. A notation that cannot express a number has an empty
/// name for it.
struct TrainerNames {
  std::string assign;
  std::string tp, pp, cp, ep, sequenceParallel, virtualStages;
  std::string microBatch, globalBatch;
  std::string layers, hidden, heads, kvHeads, ffn, sequence, experts, topk;

  std::string say(const std::string &name, std::int64_t value) const;
};

/// Sets dp to the quotient of `gpus` by tp, pp and cp; an error and dp 1 if
/// they do not divide `gpus`.
void shareDevices(TrainerConfig &config, std::int64_t gpus,
                  const TrainerNames &names);

/// Checks that tp, cp and ep divide what they split.
void checkSplits(TrainerConfig &config, const TrainerNames &names);

/// Checks that replicas times micro-batch divide the global batch, and that
/// stages divide the micro-batches if the schedule requires it.
void checkBatches(TrainerConfig &config, const TrainerNames &names);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TRAINER_CHECK_H

//===- foreign_check.h - Numbers that do not go together --------*- C++ -*-===//
//
// The rules that every trainer has, asked in the words of the notation at hand:
// a complaint names the option, both numbers and the nearest that would do. A
// number that was not given is never complained about.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_FOREIGN_CHECK_H
#define MTPLAN_TOOLS_EXCHANGE_FOREIGN_CHECK_H

#include <string>

#include "tools/exchange/foreign_config.h"

namespace mtplan::tools {

/// How a notation calls things. Before a value stands `assign`: a blank for
/// flags, ": " for JSON pointers. A name that is empty: the notation never says
/// that number.
struct ForeignNames {
  std::string assign;
  std::string tp, pp, cp, ep, sequenceParallel, virtualStages;
  std::string microBatch, globalBatch;
  std::string layers, hidden, heads, kvHeads, ffn, sequence, experts, topk;

  std::string say(const std::string &name, std::int64_t value) const;
};

/// Sets dp to what tp, pp and cp leave of `gpus`; an error and dp 1 if they do
/// not divide it.
void shareDevices(ForeignConfig &config, std::int64_t gpus,
                  const ForeignNames &names);

/// Whether tp, cp and ep divide what they split, and what each needs.
void checkSplits(ForeignConfig &config, const ForeignNames &names);

/// Whether the batch divides by the replicas and the micro-batch, and the
/// micro-batches by the stages where the schedule needs that.
void checkBatches(ForeignConfig &config, const ForeignNames &names);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_FOREIGN_CHECK_H

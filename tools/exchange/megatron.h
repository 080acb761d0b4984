//===- megatron.h - Megatron-LM's command line ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_MEGATRON_H
#define MTPLAN_TOOLS_EXCHANGE_MEGATRON_H

#include <cstdint>
#include <string>

#include "tools/exchange/foreign_check.h"
#include "tools/exchange/foreign_config.h"
#include "tools/exchange/megatron_flags.h"

namespace mtplan::tools {

/// What `text`, a command line or a file of options, says for `gpus` devices.
/// Every violation becomes an error; none throws.
ForeignConfig readMegatron(const std::string &text, std::int64_t gpus);

/// The options that say `config`, one a line. For a configuration that
/// readMegatron made, reading them again gives it back.
Exported writeMegatron(const ForeignConfig &config);

/// The rows Megatron-LM stores a vocabulary in: the next multiple of `multiple`
/// times the tensor ranks, so that the shape depends on how many these are.
constexpr std::int64_t megatronVocabulary(std::int64_t vocabulary,
                                          std::int64_t multiple,
                                          std::int64_t tensorRanks) {
  std::int64_t step = multiple * tensorRanks;
  return (vocabulary + step - 1) / step * step;
}

/// Megatron-LM's names for what is checked.
const ForeignNames &megatronNaming();

/// The pipeline's half of reading: parts, schedule and recompute.
void readMegatronPipeline(const MegatronFlags &flags, ForeignConfig &config);
void readMegatronRecompute(const MegatronFlags &flags, ForeignConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_MEGATRON_H

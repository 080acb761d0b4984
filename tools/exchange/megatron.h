//===- megatron.h - Megatron-LM's command line ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_MEGATRON_H
#define MTPLAN_TOOLS_EXCHANGE_MEGATRON_H

#include <cstdint>
#include <string>

#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Reads a command line, or a file of options, for `gpus` devices. Every
/// violation becomes an error; nothing throws.
TrainerConfig readMegatron(const std::string &text, std::int64_t gpus);

/// Writes one option per line. readMegatron() of the result gives the same
/// configuration, except for choices that Megatron-LM cannot express.
Exported writeMegatron(const TrainerConfig &config);

/// Returns the number of rows of Megatron-LM's embedding table.
constexpr std::int64_t megatronVocabulary(std::int64_t vocabulary,
                                          std::int64_t multiple,
                                          std::int64_t tensorRanks) {
  std::int64_t step = multiple * tensorRanks;
  return (vocabulary + step - 1) / step * step;
}

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_MEGATRON_H

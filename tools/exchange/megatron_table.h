//===- megatron_table.h - The options Megatron-LM knows ---------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_MEGATRON_TABLE_H
#define MTPLAN_TOOLS_EXCHANGE_MEGATRON_TABLE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::tools {

enum class MegatronRole : std::uint8_t {
  switched,   ///< planned, no value
  single,     ///< planned, one value
  many,       ///< planned, any number of values
  irrelevant, ///< changes nothing planned
  refused,    ///< changes what is planned in a way mtplan cannot
  unknown,
};

struct MegatronOption {
  MegatronRole role = MegatronRole::unknown;
  std::string_view why; ///< of a refusal
};

/// What is known of the option called `name`, without dashes.
MegatronOption megatronOption(std::string_view name);

/// Every option listed by name, for suggestions.
const std::vector<std::string> &megatronNames();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_MEGATRON_TABLE_H

//===- megatron_table.h - Options that Megatron-LM knows --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_MEGATRON_TABLE_H
#define MTPLAN_TOOLS_EXCHANGE_MEGATRON_TABLE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::tools {

enum class MegatronRole : std::uint8_t {
  switched,   ///< planned, without a value
  single,     ///< planned, with one value
  many,       ///< planned, with any number of values
  irrelevant, ///< has no effect on the plan
  refused,    ///< has an effect that mtplan cannot plan
  unknown,
};

struct MegatronOption {
  MegatronRole role = MegatronRole::unknown;
  std::string_view why; ///< why the option is refused
};

/// Returns the entry of the option `name`, without dashes.
MegatronOption megatronOption(std::string_view name);

/// Returns the names of all options, for suggestions.
const std::vector<std::string> &megatronNames();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_MEGATRON_TABLE_H

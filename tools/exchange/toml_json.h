//===- toml_json.h - TOML as JSON -------------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TOML_JSON_H
#define MTPLAN_TOOLS_EXCHANGE_TOML_JSON_H

#include <string>
#include <vector>

#include "base/json_text.h"

namespace mtplan::tools {

/// Parses TOML 1.0 to an object of its tables. What JSON cannot hold, which are
/// dates, times, infinity and NaN, is an error, as is text that is not TOML.
/// Every error starts with its line; after one the object is not to be used.
base::Json parseToml(const std::string &text, std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TOML_JSON_H

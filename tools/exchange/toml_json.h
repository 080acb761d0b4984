//===- toml_json.h - The plain part of TOML, as JSON ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TOML_JSON_H
#define MTPLAN_TOOLS_EXCHANGE_TOML_JSON_H

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace mtplan::tools {

/// An object of sections. Understood: comments, `[section]`, `[a.b]`,
/// `key = value` with strings of one line, numbers, booleans and arrays of
/// those. Other TOML and keys given twice are errors that start with the line.
nlohmann::json parseToml(const std::string &text,
                         std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TOML_JSON_H

//===- schema_test.cpp - The JSON schema agrees with the reader -----------===//
//
// docs/model.schema.json is for editors and scripts. An independent validator
// applies it to the reader's test files: the reader also rejects what the
// schema rejects, and the schema has every operator.
//
//===----------------------------------------------------------------------===//

#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ir/model/native_operators.h"
#include "tests/ir/model/loading.h"

namespace mtplan::ir {
namespace {

using Json = nlohmann::json;

Json schemaText() {
  return Json::parse(readText(sourcePath("docs/model.schema.json")));
}

bool isValid(const std::string &path) {
  static const Json text = schemaText();
  static const valijson::Schema *schema = [] {
    auto *parsed = new valijson::Schema();
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), *parsed);
    return parsed;
  }();
  Json document = Json::parse(readText(path));
  valijson::Validator validator;
  return validator.validate(
      *schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

TEST(Schema, AcceptsWellFormedFiles) {
  for (const char *folder : {"examples/native", "tests/ir/inputs/native/good",
                             "tests/ir/inputs/native/bad_meaning"}) {
    std::vector<std::string> paths = jsonFiles(folder);
    EXPECT_FALSE(paths.empty()) << folder;
    for (const std::string &path : paths)
      EXPECT_TRUE(isValid(path)) << path;
  }
}

TEST(Schema, RejectsMalformedFiles) {
  std::vector<std::string> paths =
      jsonFiles("tests/ir/inputs/native/bad_schema");
  EXPECT_GE(paths.size(), 20U);
  for (const std::string &path : paths)
    EXPECT_FALSE(isValid(path)) << path;
}

TEST(Schema, KnowsEveryOperatorAndAttribute) {
  Json schema = schemaText();
  std::set<std::string> known;
  for (const Json &name :
       schema["definitions"]["operator"]["properties"]["op"]["enum"])
    known.insert(name);
  std::map<std::string, Json> attributes;
  for (const Json &rule : schema["definitions"]["operator"]["allOf"])
    for (const Json &name : rule["if"]["properties"]["op"]["enum"])
      attributes[name] = rule["then"]["properties"]["attributes"];

  std::set<std::string> expected = {"einsum"};
  for (const OperatorRule &rule : operatorRules()) {
    expected.insert(rule.name);
    std::set<std::string> named, required, given, demanded;
    for (const AttributeRule &attribute : rule.attributes) {
      named.insert(attribute.name);
      if (attribute.required)
        required.insert(attribute.name);
    }
    const Json &stated = attributes[rule.name];
    if (stated.contains("properties"))
      for (const auto &[name, type] : stated["properties"].items())
        given.insert(name);
    if (stated.contains("required"))
      for (const Json &name : stated["required"])
        demanded.insert(name);
    EXPECT_EQ(given, named) << rule.name;
    EXPECT_EQ(demanded, required) << rule.name;
  }
  EXPECT_EQ(known, expected);
}

} // namespace
} // namespace mtplan::ir

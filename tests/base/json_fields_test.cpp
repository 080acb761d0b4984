//===- json_fields_test.cpp - Readers of JSON objects ---------------------===//

#include <array>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_node.h"
#include "base/json_text.h"

namespace mtplan::base {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::array<std::string_view, 2> kWords = {"bf16", "fp32"};

// Reads member "x" by JsonFields (`collect`) and by JsonNode (`read`), and
// expects equal errors. Returns the error; "" if there is none.
template <typename Collect, typename Throw>
std::string faultOf(const std::string &text, Collect collect, Throw read) {
  const Json json = parseJson(text);
  JsonErrors errors;
  JsonFields fields(json, "", errors);
  collect(fields);
  fields.rejectOthers();
  std::string thrown;
  try {
    constexpr std::array<std::string_view, 1> kNames = {"x"};
    const JsonNode root(json);
    const JsonMembers members(root, kNames);
    read(members.need("x"));
  } catch (const JsonError &error) {
    thrown = error.what();
  }
  EXPECT_EQ(joinLines(errors), thrown);
  return thrown;
}

std::string integerFault(const std::string &value, std::int64_t least,
                         std::int64_t most) {
  return faultOf(
      "{\"x\":" + value + "}",
      [&](JsonFields &fields) { fields.integer("x", least, most); },
      [&](const JsonNode &node) { node.integer(least, most); });
}

TEST(JsonReaders, WordIntegerErrorsAlike) {
  EXPECT_EQ(integerFault("3", 1, 3), "");
  EXPECT_EQ(integerFault("4", 1, 3),
            "/x: must be a whole number from 1 to 3, got 4");
  EXPECT_EQ(integerFault("0", 1, 3),
            "/x: must be a whole number from 1 to 3, got 0");
  EXPECT_EQ(integerFault("2.0", 1, 3),
            "/x: must be a whole number from 1 to 3, got 2.0");
  EXPECT_EQ(integerFault("\"2\"", 1, 3),
            "/x: must be a whole number from 1 to 3, got \"2\"");
  EXPECT_EQ(integerFault("9223372036854775807", kLeast, kMost), "");
  EXPECT_EQ(integerFault("-9223372036854775808", kLeast, kMost), "");
  EXPECT_NE(integerFault("9223372036854775808", kLeast, kMost), "");
  EXPECT_NE(integerFault("18446744073709551615", kLeast, kMost), "");
}

TEST(JsonReaders, NameTheNearestWord) {
  const auto fault = [](const std::string &value) {
    return faultOf(
        "{\"x\":" + value + "}",
        [](JsonFields &fields) {
          fields.oneOf("x", {kWords.begin(), kWords.end()});
        },
        [](const JsonNode &node) { node.oneOf(kWords); });
  };
  EXPECT_EQ(fault("\"fp32\""), "");
  EXPECT_EQ(fault("\"fp23\""), "/x: must be one of \"bf16\", \"fp32\", got "
                               "\"fp23\"; the nearest is \"fp32\"");
  EXPECT_EQ(fault("16"), "/x: must be one of \"bf16\", \"fp32\", got 16");
}

TEST(JsonReaders, NameTheNearestKeyAndWhatIsMissing) {
  const auto fault = [](const std::string &text) {
    return faultOf(
        text, [](JsonFields &fields) { fields.text("x"); },
        [](const JsonNode &node) { node.text(); });
  };
  EXPECT_EQ(fault("{\"x\":\"\"}"), "");
  EXPECT_EQ(fault("{}"), "/x: is missing");
  EXPECT_EQ(fault("{\"x\":[]}"), "/x: must be a string, got an array");
  EXPECT_EQ(fault("{\"x\":\"\",\"y/z\":1}"),
            "/y~1z: unknown key; the nearest valid key is \"x\"");
}

TEST(JsonFields, CollectsEveryErrorOfAnObject) {
  const Json json = parseJson(R"({"a": "1", "b": 2, "c": [1, -1], "d": 0})");
  JsonErrors errors;
  JsonFields fields(json, "/at", errors);
  EXPECT_EQ(fields.integer("a", 5, 9), 5);
  EXPECT_FALSE(fields.boolean("b", false));
  EXPECT_EQ(fields.integers("c", 0, 9, true),
            (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(fields.number("d", {.least = 0, .most = 1, .above = true}), 0);
  EXPECT_EQ(fields.text("e", "none"), "none");
  fields.rejectOthers();
  EXPECT_EQ(joinLines(errors),
            "/at/a: must be a whole number from 5 to 9, got \"1\"\n"
            "/at/b: must be true or false, got 2\n"
            "/at/c/1: must be a whole number from 0 to 9, got -1\n"
            "/at/d: must be above 0 and at most 1, got 0");
}

TEST(JsonFields, ReportsOneErrorForANonObject) {
  const Json json = parseJson("[1]");
  JsonErrors errors;
  JsonFields fields(json, "/at", errors);
  EXPECT_EQ(fields.integer("a", 5, 9), 5);
  fields.rejectOthers();
  EXPECT_EQ(joinLines(errors), "/at: must be an object, got an array");
}

TEST(JsonNode, NamesTheFaultyListElementByJsonPointer) {
  const Json json = parseJson(R"({"rows": [[0, 1], [2, "3"]]})");
  constexpr std::array<std::string_view, 1> kNames = {"rows"};
  const JsonNode root(json);
  const JsonMembers members(root, kNames);
  try {
    members.need("rows").list([](const JsonNode &row) {
      return row.list([](const JsonNode &one) { return one.count(0, 9); });
    });
    FAIL() << "took a text for a number";
  } catch (const JsonError &error) {
    EXPECT_STREQ(error.what(),
                 "/rows/1/1: must be a whole number from 0 to 9, got \"3\"");
  }
}

TEST(JsonNode, RejectsACountBeyondInt) {
  const Json json = parseJson("2147483648");
  EXPECT_THROW(JsonNode(json).count(0, kMost), JsonError);
  EXPECT_EQ(JsonNode(json).integer(0, kMost), 2147483648);
}

TEST(DescribedJson, CutsLongStrings) {
  EXPECT_EQ(described(parseJson("{\"a\":1}")), "an object");
  EXPECT_EQ(described(Json(std::string(100, 'a'))),
            '"' + std::string(59, 'a') + "...");
}

} // namespace
} // namespace mtplan::base

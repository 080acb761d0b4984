//===- json_text_test.cpp - Parsing of JSON text --------------------------===//

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace mtplan::base {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string faultOf(std::string_view text, const JsonLimits &limits = {}) {
  try {
    (void)parseJson(text, limits);
  } catch (const JsonError &error) {
    return error.what();
  }
  return "no fault";
}

TEST(ParseJson, KeepsTheOrderOfMembers) {
  const std::string text = R"({"b":[1,{"z":null}],"a":true,"":"x"})";
  EXPECT_EQ(parseJson(text).dump(), text);
}

TEST(ParseJson, KeepsNumbersExactly) {
  const Json numbers =
      parseJson("[9223372036854775807,-9223372036854775808,"
                "18446744073709551615,18446744073709551616,0.1,2.0,-0]");
  EXPECT_EQ(numbers[0], std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(numbers[1], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(numbers[2], std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(numbers[3].is_number_float());
  EXPECT_EQ(numbers[4], 0.1);
  EXPECT_TRUE(numbers[5].is_number_float());
  EXPECT_TRUE(numbers[6].is_number_integer());
}

TEST(ParseJson, NamesLineAndColumn) {
  EXPECT_EQ(faultOf(""),
            "1:1: not JSON: syntax error while parsing value - unexpected "
            "end of input; expected '[', '{', or a literal");
  EXPECT_THAT(faultOf("hello"), StartsWith("1:1: not JSON: syntax error"));
  EXPECT_THAT(faultOf("[1,\n2"), StartsWith("2:2: not JSON: syntax error"));
  EXPECT_THAT(faultOf("[1] 2"), StartsWith("1:5: not JSON: syntax error"));
  EXPECT_THAT(faultOf("{\"a\": 1e999}"),
              StartsWith("1:11: not JSON: number overflow"));
  EXPECT_LT(faultOf('"' + std::string(1'000'000, 'a')).size(), 250U);
}

TEST(ParseJson, RejectsNanAndInfinity) {
  EXPECT_EQ(faultOf("{\n  \"name\": NaN}"),
            "2:11: NaN is not a number that JSON can hold");
  EXPECT_EQ(faultOf("[1, -Infinity]"),
            "1:5: -Infinity is not a number that JSON can hold");
}

TEST(ParseJson, RejectsAZeroByteAfterTheValue) {
  EXPECT_EQ(faultOf(std::string_view("{}\0x", 4)),
            "1:3: not JSON: a zero byte");
}

TEST(ParseJson, RejectsTextThatIsNotUtf8) {
  EXPECT_THAT(faultOf("\"\xff\""), HasSubstr("ill-formed UTF-8 byte"));
}

TEST(ParseJson, NamesEveryKeyThatIsGivenTwice) {
  EXPECT_EQ(faultOf(R"({"a": [0, {"b": 1, "b": 2}], "a": 1})"),
            "/a/1/b: the key is given twice\n/a: the key is given twice");
  EXPECT_EQ(faultOf(R"({"a/b~": {"c": 1, "c": 2}})"),
            "/a~1b~0/c: the key is given twice");
}

TEST(ParseJson, FindsARepeatedKeyAmongManyAndReportsAtMostAHundred) {
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i)
    many += '"' + std::to_string(i) + "\":0,";
  EXPECT_EQ(faultOf(many + "\"x\":0}"), "no fault");
  EXPECT_EQ(faultOf(many + "\"3\":0}"), "/3: the key is given twice");
  EXPECT_EQ(faultOf(many + "\"99999\":0}"), "/99999: the key is given twice");
  const std::string twice = faultOf(many + many.substr(1) + "\"x\":0}");
  EXPECT_EQ(std::count(twice.begin(), twice.end(), '\n'), 99);
}

TEST(ParseJson, AllowsTheSameKeyInDifferentObjects) {
  EXPECT_EQ(faultOf(R"([{"a": {"a": 1}}, {"a": 2}, {"b": {"a": 0}}])"),
            "no fault");
}

TEST(ParseJson, RejectsDeepNestingWithoutStackOverflow) {
  for (const char *open : {"[", "{\"a\":"}) {
    std::string deep;
    while (deep.size() < 10'000'000)
      deep += open;
    EXPECT_THAT(faultOf(deep), HasSubstr(": nested deeper than 64 levels"));
  }
  const std::string most = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(faultOf(most), "no fault");
  EXPECT_EQ(faultOf("\n[" + most + ']'), "2:65: nested deeper than 64 levels");
  // Brackets in strings do not nest, not even after an escaped quote.
  EXPECT_EQ(faultOf("\"\\\"" + std::string(100, '[') + '"'), "no fault");
  EXPECT_EQ(faultOf(R"(["[\"[", [[]]])", {.depth = 2}),
            "1:11: nested deeper than 2 levels");
}

TEST(ParseJson, EnforcesLimitsOnMembersAndBytes) {
  EXPECT_EQ(faultOf(R"({"a": {"b": 1, "c": 2}})", {.members = 2}), "no fault");
  EXPECT_EQ(faultOf(R"({"a": {"b": 1, "c": 2}})", {.members = 1}),
            "/a/c: an object has at most 1 members");
  EXPECT_EQ(faultOf("[1,2]", {.bytes = 5}), "no fault");
  EXPECT_EQ(faultOf("[1,2]", {.bytes = 4}), "1:1: 5 bytes, limit 4");
}

} // namespace
} // namespace mtplan::base

//===- index_test.cpp - The index of a set of files -----------------------===//

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/files.h"
#include "runtime/safetensors/model_files.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string errorOf(const std::string &text) {
  return messageOf<DataError>([&] { parseIndex("i.json", text); });
}

// Python's json.dumps(index, indent=2, sort_keys=True) + "\n" has this form.
constexpr const char *kPlain = R"({
  "metadata": {
    "total_parameters": 7,
    "total_size": 22
  },
  "weight_map": {
    "a": "model-00001-of-00002.safetensors",
    "b.weight": "model-00002-of-00002.safetensors"
  }
}
)";
constexpr const char *kRich = R"({
  "metadata": {
    "deep": {
      "a": [],
      "b": {},
      "c": [
        1,
        -2,
        1e+22,
        1e-07,
        0.1,
        null,
        true,
        {
          "\u00e9": "v{"
        },
        []
      ]
    },
    "note": "\u00e9\u007f\n/\"\ud83d\ude00{",
    "q": -0.0,
    "total_size": 9223372036854775807
  },
  "weight_map": {
    "a.\u00e9": "model.safetensors"
  }
}
)";

TEST(ShardIndex, ReadsWhatTransformersWrites) {
  TestFolder folder;
  const ShardIndex index = readIndex(writeFile(folder / "i.json", kPlain));
  EXPECT_EQ(index.totalSize, 22);
  EXPECT_THAT(index.otherMetadata, ElementsAre(Pair("total_parameters", "7")));
  EXPECT_THAT(
      index.weightMap,
      ElementsAre(Pair("a", "model-00001-of-00002.safetensors"),
                  Pair("b.weight", "model-00002-of-00002.safetensors")));
}

TEST(ShardIndex, WritesTheSameBytes) {
  for (const char *text : {kPlain, kRich})
    EXPECT_EQ(writeIndex(parseIndex("i.json", text)), text);
  EXPECT_THAT(parseIndex("i.json", kRich).weightMap,
              ElementsAre(Pair("a.\xc3\xa9", "model.safetensors")));
}

TEST(ShardIndex, AnySpacingAndOrder) {
  EXPECT_EQ(
      writeIndex(parseIndex(
          "i.json",
          R"({"weight_map":{"b.weight":"model-00002-of-00002.safetensors",)"
          R"("a":"model-00001-of-00002.safetensors"},"more":[{"x":1}],)"
          R"("metadata":{"total_size":22.0, "total_parameters":7}})")),
      kPlain);
}

TEST(ShardIndex, WithoutASize) {
  const char *empty = "{\n  \"metadata\": {},\n  \"weight_map\": {}\n}\n";
  for (const char *text : {empty, R"({"weight_map":{}})"}) {
    const ShardIndex index = parseIndex("i.json", text);
    EXPECT_EQ(index.totalSize, -1);
    EXPECT_THAT(index.weightMap, IsEmpty());
    EXPECT_EQ(writeIndex(index), empty);
  }
}

TEST(ShardIndex, Refused) {
  EXPECT_EQ(errorOf("{}"), "i.json: has no weight_map");
  EXPECT_EQ(errorOf("[]"), "i.json: needs an object, is an array");
  EXPECT_EQ(errorOf("7"), "i.json: needs an object, is 7");
  EXPECT_THAT(errorOf(""), HasSubstr("i.json: byte 0: not JSON"));
  EXPECT_EQ(errorOf(R"({"weight_map":[]})"),
            "i.json: /weight_map: needs an object, is an array");
  EXPECT_EQ(errorOf(R"({"weight_map":"a"})"),
            "i.json: /weight_map: needs an object, is the text 'a'");
  EXPECT_EQ(errorOf(R"({"metadata":[]})"),
            "i.json: /metadata: needs an object, is an array");
  EXPECT_EQ(errorOf(R"({"metadata":null})"),
            "i.json: /metadata: needs an object, is null");
  EXPECT_EQ(errorOf(R"({"weight_map":{"a":1}})"),
            "i.json: /weight_map/a: needs the name of a file, is 1");
  EXPECT_EQ(errorOf(R"({"weight_map":{"a":{}}})"),
            "i.json: /weight_map/a: needs the name of a file, is an object");
  EXPECT_EQ(errorOf(R"({"weight_map":{"a":"m","b":"n","a":"m"}})"),
            "i.json: /weight_map/a: the key is given twice");
}

TEST(ShardIndex, FilesOfOtherFolders) {
  for (const char *name :
       {"", ".", "..", "/etc/x", "../x", "a/x", R"(x\u0000y)"})
    EXPECT_THAT(errorOf(std::string(R"({"weight_map":{"a":")") + name + "\"}}"),
                HasSubstr("/weight_map/a: needs the name of a file in the same "
                          "folder"))
        << name;
}

TEST(ShardIndex, TotalSizesThatAreNone) {
  for (const char *size : {"-1", "1.5", "1e300", "9223372036854775808", "null",
                           "\"22\"", "true", "[]", "{}"})
    EXPECT_THAT(
        errorOf(std::string(R"({"metadata":{"total_size":)") + size + "}}"),
        HasSubstr("i.json: /metadata/total_size: needs a number of "
                  "bytes, is "))
        << size;
}

TEST(ShardIndex, NamesThatCannotBeWritten) {
  ShardIndex index;
  index.weightMap = {{"a\xff", "m"}};
  EXPECT_THAT(messageOf<std::invalid_argument>([&] { writeIndex(index); }),
              HasSubstr("is not UTF-8"));
}

TEST(ShardIndex, ShardNames) {
  EXPECT_EQ(shardName(2, 3), "model-00002-of-00003.safetensors");
  EXPECT_EQ(shardName(100000, 123456), "model-100000-of-123456.safetensors");
}

} // namespace
} // namespace mtplan::runtime

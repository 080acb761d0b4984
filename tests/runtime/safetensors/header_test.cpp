//===- header_test.cpp - Valid and invalid headers ------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/safetensors/safetensors_files.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string errorOf(const std::string &json, std::size_t dataBytes = 0) {
  return errorOfHeader(safetensorsFile(json, dataBytes));
}

TEST(SafetensorsHeader, Golden) {
  TestFolder folder;
  const MappedFile file(
      writeFile(folder / "g.safetensors", kGoldenSafetensors));
  EXPECT_EQ(file.size(), 174);
  const SafetensorsHeader header = readHeader(file);
  EXPECT_THAT(header.metadata, ElementsAre(Pair("format", "pt")));
  EXPECT_EQ(header.dataStart, 152);
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0], (SafeTensor{"a", "F32", {2, 2}, 0, 16}));
  EXPECT_EQ(header.tensors[1], (SafeTensor{"b", "BF16", {3}, 16, 22}));
  EXPECT_EQ(header.find("b"), &header.tensors[1]);
  EXPECT_EQ(header.find("c"), nullptr);
  EXPECT_EQ(file.read<float>(header.dataStart + 12), 4.0F);
  EXPECT_EQ(file.read<std::uint16_t>(header.dataStart + 20), 0x4040); // bf16 3
}

// The following headers must be accepted.

TEST(SafetensorsHeader, NoTensorAtAll) {
  const SafetensorsHeader header = headerOf(safetensorsFile("{}"));
  EXPECT_THAT(header.tensors, IsEmpty());
  EXPECT_THAT(header.metadata, IsEmpty());
  EXPECT_EQ(header.dataStart, 10); // a length that is no multiple of 8
}

TEST(SafetensorsHeader, ScalarHasNoDimension) {
  const auto header =
      headerOf(safetensorsFile(oneTensor("F64", "[]", "[0,8]"), 8));
  EXPECT_EQ(header.tensors[0], (SafeTensor{"a", "F64", {}, 0, 8}));
}

TEST(SafetensorsHeader, TensorsOfNoElements) {
  // Empty tensors are at the start of the data, between other tensors, and at
  // the end. Tensors with equal offsets keep the order of the file.
  const auto header = headerOf(safetensorsFile(
      R"({"last":{"dtype":"F32","shape":[0],"data_offsets":[2,2]},)"
      R"("n":{"dtype":"I64","shape":[4,0],"data_offsets":[0,0]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
      R"("m":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
      R"("mid":{"dtype":"F32","shape":[0],"data_offsets":[1,1]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      2));
  std::vector<std::string> names;
  for (const SafeTensor &tensor : header.tensors)
    names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("n", "m", "a", "mid", "b", "last"));
}

TEST(SafetensorsHeader, WhiteSpaceBehind) {
  EXPECT_EQ(headerOf(safetensorsFile("{}      ")).dataStart, 16);
  EXPECT_EQ(headerOf(safetensorsFile("{}\n\t\r ")).dataStart, 14);
}

TEST(SafetensorsHeader, AnyOrder) {
  const auto header = headerOf(safetensorsFile(
      R"({"a":{"data_offsets":[4,6],"shape":[2],"dtype":"I8"},)"
      R"("b":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},)"
      R"("__metadata__":{"k":"v","":""}})",
      6));
  EXPECT_EQ(header.tensors[0], (SafeTensor{"b", "F16", {2, 1}, 0, 4}));
  EXPECT_EQ(header.tensors[1], (SafeTensor{"a", "I8", {2}, 4, 6}));
  EXPECT_THAT(header.metadata, ElementsAre(Pair("", ""), Pair("k", "v")));
}

TEST(SafetensorsHeader, IgnoredMembersOfTheReference) {
  EXPECT_EQ(errorOf(R"({"__metadata__":null})"), "");
  EXPECT_EQ(errorOf(R"({"a":{"dtype":"U8","x":[1,{"shape":-1e3}],)"
                    R"("shape":[1],"data_offsets":[0,1],"y":"z"}})",
                    1),
            "");
}

TEST(SafetensorsHeader, SmallElements) {
  EXPECT_EQ(errorOf(oneTensor("F4", "[2,2]", "[0,2]"), 2), "");
  EXPECT_EQ(errorOf(oneTensor("F6_E2M3", "[4]", "[0,3]"), 3), "");
}

TEST(SafetensorsHeader, NamesOfAnyCharacters) {
  const auto header = headerOf(safetensorsFile(
      R"({"\u00e9\n\u0000\ud83d\ude00":{"dtype":"U8","shape":[0],)"
      R"("data_offsets":[0,0]}})"));
  EXPECT_EQ(header.tensors[0].name,
            std::string("\xc3\xa9\n\0\xf0\x9f\x98\x80", 8));
}

// The following headers must be rejected.

TEST(SafetensorsHeader, Lengths) {
  EXPECT_EQ(errorOfHeader("1234567"),
            "x.safetensors: has 7 bytes, a header begins with the 8 of its "
            "length");
  EXPECT_EQ(errorOfHeader(""), "x.safetensors: has 0 bytes, a header begins "
                               "with the 8 of its length");
  EXPECT_EQ(errorOfHeader(bytesOfNumbers<std::uint64_t>({100'000'001})),
            "x.safetensors: byte 0: a header of 100000001 bytes, at most "
            "100000000");
  EXPECT_THAT(errorOfHeader(bytesOfNumbers<std::uint64_t>({~0ULL})),
              HasSubstr("a header of 18446744073709551615 bytes"));
  EXPECT_EQ(errorOfHeader(bytesOfNumbers<std::uint64_t>({3}) + "{}"),
            "x.safetensors: byte 0: a header of 3 bytes ends at 11, the file "
            "at 10");
  EXPECT_THAT(errorOfHeader(bytesOfNumbers<std::uint64_t>({100'000'000})),
              HasSubstr("ends at 100000008, the file at 8"));
}

TEST(SafetensorsHeader, OnlyAPartGiven) {
  const std::string bytes = safetensorsFile("{}");
  for (std::size_t given : {7U, 9U})
    EXPECT_THAT(messageOf<DataError>([&] {
                  parseHeader("x", std::as_bytes(std::span(bytes)).first(given),
                              10);
                }),
                HasSubstr("given are " + std::to_string(given)));
}

TEST(SafetensorsHeader, FirstByte) {
  EXPECT_EQ(errorOf(" {}"),
            "x.safetensors: byte 8: the header begins with ' ', needs '{'");
  EXPECT_EQ(errorOf(""),
            "x.safetensors: byte 8: the header is empty, needs '{'");
  EXPECT_THAT(errorOf("[]"), HasSubstr("begins with '[', needs '{'"));
  EXPECT_THAT(errorOf("\xef\xbb\xbf{}"), HasSubstr("byte 8: the header"));
}

TEST(SafetensorsHeader, Hole) {
  EXPECT_EQ(errorOf(oneTensor("U8", "[1]", "[1,2]"), 2),
            "x.safetensors: tensor 'a': begins at byte 1 of the data, the "
            "first begins at 0: 1 bytes belong to no tensor");
  EXPECT_EQ(
      errorOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
              R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})",
              5),
      "x.safetensors: tensor 'b': begins at byte 4 of the data, 'a' before it "
      "ends at 1: 3 bytes belong to no tensor");
}

TEST(SafetensorsHeader, Overlap) {
  EXPECT_EQ(
      errorOf(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
              R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
              3),
      "x.safetensors: tensor 'b': begins at byte 1 of the data, 'a' before it "
      "ends at 2: they overlap");
}

TEST(SafetensorsHeader, EndOfTheFile) {
  const std::string json = oneTensor("U8", "[4]", "[0,4]");
  EXPECT_EQ(errorOf(json, 5),
            "x.safetensors: byte 61: the tensors take 4 bytes from here, the "
            "file has 5: 1 too many");
  EXPECT_EQ(errorOf(json, 1),
            "x.safetensors: byte 61: the tensors take 4 bytes from here, the "
            "file has 1: 3 are missing");
  EXPECT_THAT(errorOf("{}", 1), HasSubstr("take 0 bytes from here"));
}

TEST(SafetensorsHeader, SizeOfATensor) {
  EXPECT_EQ(errorOf(oneTensor("F32", "[2,2]", "[0,12]"), 12),
            "x.safetensors: tensor 'a': its type and shape take 16 bytes, its "
            "data_offsets [0, 12] are 12");
  EXPECT_THAT(errorOf(oneTensor("F4", "[3]", "[0,2]"), 2),
              HasSubstr("tensor 'a': F4 [3] takes 12 bits, no whole number of "
                        "bytes"));
  EXPECT_THAT(errorOf(oneTensor("F6_E3M2", "[2]", "[0,2]"), 2),
              HasSubstr("takes 12 bits"));
  EXPECT_THAT(errorOf(oneTensor("U8", "[2]", "[4,2]"), 4),
              HasSubstr("tensor 'a': data_offsets [4, 2] end before they "
                        "begin"));
}

TEST(SafetensorsHeader, SizesThatOverflow) {
  const std::string side = "4294967296";
  EXPECT_THAT(
      errorOf(oneTensor("U8", "[" + side + "," + side + "]", "[0,0]")),
      HasSubstr("tensor 'a': U8 [4294967296, 4294967296] takes more bits than "
                "64 bits count"));
  // The reference implementation multiplies from the left. Its product reaches
  // 2^64 before the factor 0.
  EXPECT_THAT(
      errorOf(oneTensor("U8", "[" + side + "," + side + ",0]", "[0,0]")),
      HasSubstr("more bits"));
  EXPECT_EQ(errorOf(oneTensor("U8", "[0," + side + "," + side + "]", "[0,0]")),
            "");
  // 2^58 elements fit in 64 bits, but their 2^64 bits do not.
  EXPECT_THAT(errorOf(oneTensor("F64", "[288230376151711744]", "[0,0]")),
              HasSubstr("more bits"));
}

TEST(SafetensorsHeader, NameTwice) {
  const std::string member =
      R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(errorOf("{" + member + "," + member + "}"),
            "x.safetensors: /a: the key is given twice");
  EXPECT_THAT(errorOf(R"({"a":{"dtype":"U8","dtype":"U8"}})"),
              HasSubstr("/a/dtype: the key is given twice"));
  EXPECT_THAT(errorOf(R"({"__metadata__":{"k":"1","\u006b":"2"}})"),
              HasSubstr("/__metadata__/k: the key is given twice"));
  EXPECT_THAT(errorOf(R"({"__metadata__":{},"__metadata__":{}})"),
              HasSubstr("/__metadata__: the key is given twice"));
  EXPECT_THAT(errorOf(R"({"a":{"more":[{"x":1},{"x":1,"x":2}]}})"),
              HasSubstr("/a/more/1/x: the key is given twice"));
}

TEST(SafetensorsHeader, UnknownType) {
  EXPECT_THAT(errorOf(oneTensor("F31", "[1]", "[0,4]"), 4),
              HasSubstr("tensor 'a': type 'F31' is not one of the format's"));
  EXPECT_THAT(errorOf(oneTensor("f32", "[1]", "[0,4]"), 4),
              HasSubstr("type 'f32'"));
  EXPECT_THAT(errorOf(oneTensor("", "[1]", "[0,4]"), 4), HasSubstr("type ''"));
}

TEST(SafetensorsHeader, MetadataOtherThanText) {
  EXPECT_EQ(errorOf(R"({"__metadata__":{"step":1}})"),
            "x.safetensors: /__metadata__/step: needs a text, is 1");
  EXPECT_THAT(errorOf(R"({"__metadata__":{"k":null}})"),
              HasSubstr("needs a text, is null"));
  EXPECT_THAT(errorOf(R"({"__metadata__":{"k":[]}})"),
              HasSubstr("needs a text, is an array"));
  EXPECT_THAT(errorOf(R"({"__metadata__":{"k":{}}})"),
              HasSubstr("needs a text, is an object"));
  EXPECT_THAT(errorOf(R"({"__metadata__":"k"})"),
              HasSubstr("/__metadata__: needs an object, is the text 'k'"));
  EXPECT_THAT(errorOf(R"({"__metadata__":[]})"),
              HasSubstr("/__metadata__: needs an object, is an array"));
}

TEST(SafetensorsHeader, NumbersThatAreNone) {
  auto shape = [](const std::string &value) {
    return errorOf(oneTensor("F32", "[1," + value + "]", "[0,4]"), 4);
  };
  const std::string needs = "x.safetensors: /a/shape/1: needs a whole number "
                            "from 0 to 9223372036854775807, is ";
  EXPECT_EQ(shape("-1"), needs + "-1");
  EXPECT_EQ(shape("-0"), needs + "-0");
  EXPECT_EQ(shape("1.0"), needs + "1.0");
  EXPECT_EQ(shape("1e0"), needs + "1e0");
  EXPECT_EQ(shape("18446744073709551617"), needs + "18446744073709551617");
  EXPECT_EQ(shape("9223372036854775808"), needs + "9223372036854775808");
  EXPECT_EQ(shape("true"), needs + "true");
  EXPECT_EQ(shape("\"1\""), needs + "the text '1'");
  EXPECT_THAT(shape("[1]"),
              HasSubstr("/a/shape/1: needs a whole number, is an array"));
  EXPECT_THAT(errorOf(oneTensor("F32", "[1]", "[18446744073709551615,3]"), 4),
              HasSubstr("/a/data_offsets/0: needs a whole number from 0"));
  EXPECT_THAT(
      errorOf(oneTensor("U8", "[1]", "[0,9223372036854775807]"), 1),
      HasSubstr("take 1 bytes, its data_offsets [0, 9223372036854775807]"));
}

TEST(SafetensorsHeader, MembersMissingOrOfAnotherKind) {
  auto tensor = [](const std::string &members) {
    return errorOf("{\"a\":" + members + "}");
  };
  EXPECT_THAT(tensor("{}"), HasSubstr("/a: has no dtype"));
  EXPECT_THAT(tensor(R"({"dtype":"U8","data_offsets":[0,0]})"),
              HasSubstr("/a: has no shape"));
  EXPECT_THAT(tensor(R"({"dtype":"U8","shape":[0]})"),
              HasSubstr("/a: has no data_offsets"));
  EXPECT_THAT(tensor(R"({"dtype":"U8","shape":[0],"data_offsets":[0]})"),
              HasSubstr("/a: data_offsets are 2 numbers, here 1"));
  EXPECT_THAT(tensor(R"({"dtype":"U8","shape":[0],"data_offsets":[0,0,0]})"),
              HasSubstr("/a/data_offsets/2: data_offsets are 2 numbers"));
  EXPECT_THAT(tensor(R"({"dtype":1})"),
              HasSubstr("/a/dtype: needs a text, is 1"));
  EXPECT_THAT(tensor(R"({"dtype":[]})"),
              HasSubstr("/a/dtype: needs a text, is an array"));
  EXPECT_THAT(tensor(R"({"shape":3})"),
              HasSubstr("/a/shape: needs an array, is 3"));
  EXPECT_THAT(tensor(R"({"shape":{}})"),
              HasSubstr("/a/shape: needs an array, is an object"));
  EXPECT_THAT(tensor(R"({"data_offsets":null})"),
              HasSubstr("/a/data_offsets: needs an array, is null"));
  EXPECT_THAT(tensor(R"(["U8",[0],[0,0]])"),
              HasSubstr("/a: needs an object, is an array"));
  EXPECT_THAT(tensor("7"), HasSubstr("/a: needs an object, is 7"));
  EXPECT_THAT(tensor("null"), HasSubstr("/a: needs an object, is null"));
  // Members of the previous tensor do not replace missing members.
  auto second = [](const std::string &members) {
    return errorOf(
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":)" +
        members + "}");
  };
  EXPECT_THAT(second(R"({"shape":[0],"data_offsets":[0,0]})"),
              HasSubstr("/b: has no dtype"));
  EXPECT_THAT(second(R"({"dtype":"U8","data_offsets":[0,0]})"),
              HasSubstr("/b: has no shape"));
  EXPECT_THAT(second(R"({"dtype":"U8","shape":[0]})"),
              HasSubstr("/b: has no data_offsets"));
}

TEST(SafetensorsHeader, BrokenJson) {
  EXPECT_THAT(errorOf("{\"a\":"),
              HasSubstr("x.safetensors: byte 13: not JSON: "));
  EXPECT_THAT(errorOf("{},"), HasSubstr("byte 10: not JSON: "));
  EXPECT_THAT(errorOf("{\"a\xff\":{}}"),
              HasSubstr("byte 11: not JSON: syntax error while parsing object "
                        "key - invalid string: ill-formed UTF-8 byte"));
  EXPECT_THAT(errorOf("{\"\xed\xa0\x80\":{}}"), HasSubstr("ill-formed"));
  EXPECT_THAT(errorOf(R"({"\ud800":{}})"), HasSubstr("not JSON: "));
  EXPECT_THAT(errorOf("{\"a\n\":{}}"), HasSubstr("not JSON: "));
  EXPECT_THAT(errorOf("{/**/}"), HasSubstr("byte 9: not JSON: "));
  EXPECT_THAT(errorOf(std::string("{}\0\0", 4)),
              HasSubstr("byte 10: not JSON: a zero byte"));
  EXPECT_EQ(errorOf(R"({"a":{"x":NaN}})"),
            "x.safetensors: byte 18: NaN is not a number that JSON can hold");
}

TEST(SafetensorsHeader, Depth) {
  auto nested = [](std::size_t arrays) {
    return errorOf(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],)"
                   R"("x":)" +
                   std::string(arrays, '[') + std::string(arrays, ']') + "}}");
  };
  EXPECT_EQ(nested(125), ""); // the limit of the reference implementation
  EXPECT_THAT(nested(126), HasSubstr("nested deeper than 127 levels"));
  EXPECT_THAT(nested(1'000'000), HasSubstr("nested deeper than 127 levels"));
}

TEST(SafetensorsHeader, LongNamesAreCutInMessages) {
  const std::string message =
      errorOf("{\"" + std::string(1'000'000, 'n') + "\":{\"dtype\":0}}");
  EXPECT_LT(message.size(), 200U);
  EXPECT_THAT(message, HasSubstr("nnn.../dtype: needs a text, is 0"));
}

TEST(SafetensorsHeader, LongPathsAreCutInMessages) {
  const std::string six = R"({"a":{"b":[0,{"c":{"d":{"e":1,"e":2}}}]}})";
  EXPECT_EQ(errorOf(six),
            "x.safetensors: /a/b/1/c/.../e: the key is given twice");
  const std::string five = R"({"a":{"b":[0,{"c":{"e":1,"e":2}}]}})";
  EXPECT_EQ(errorOf(five), "x.safetensors: /a/b/1/c/e: the key is given twice");
}

} // namespace
} // namespace mtplan::runtime

//===- write_header_test.cpp - Headers as the reference writes them -------===//

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/safetensors/safetensors_files.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::string errorOf(SafetensorsHeader header) {
  return messageOf<std::invalid_argument>([&] { layOut(header); });
}

std::string jsonOf(const std::string &bytes) { return bytes.substr(8); }

TEST(LayOut, Golden) {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}};
  header.tensors = {{"b", "BF16", {3}}, {"a", "F32", {2, 2}}};
  sortAsReference(header.tensors);
  EXPECT_EQ(layOut(header), kGoldenSafetensors.substr(0, 152));
  EXPECT_EQ(header.dataStart, 152);
  EXPECT_EQ(header, headerOf(kGoldenSafetensors));
}

TEST(LayOut, PlacesFollowTheOrderGiven) {
  SafetensorsHeader header;
  header.tensors = {{"b", "BF16", {3}, 70, 80}, {"a", "F32", {}, 7, 8}};
  const std::string bytes = layOut(header);
  EXPECT_EQ(header.tensors[0], (SafeTensor{"b", "BF16", {3}, 0, 6}));
  EXPECT_EQ(header.tensors[1], (SafeTensor{"a", "F32", {}, 6, 10}));
  EXPECT_EQ(header.dataStart, static_cast<std::int64_t>(bytes.size()));
  EXPECT_EQ(header, headerOf(bytes + std::string(10, 'x')));
}

// Release 0.8.0 of the reference implementation writes these headers.
TEST(LayOut, OfNothing) {
  SafetensorsHeader header;
  EXPECT_EQ(layOut(header), safetensorsFile("{}      "));
  header.metadata = {{"k", "v"}};
  EXPECT_EQ(layOut(header), safetensorsFile(R"({"__metadata__":{"k":"v"}})"
                                            "      "));
  header.metadata = {{"b", "2"}, {"a", "1"}, {"c", "3"}};
  EXPECT_EQ(layOut(header),
            safetensorsFile(R"({"__metadata__":{"a":"1","b":"2","c":"3"}})"
                            "      "));
}

TEST(LayOut, EscapesAsTheReference) {
  SafetensorsHeader header;
  header.metadata = {{"k\x1f", "\xc3\xa9\""}};
  header.tensors = {{"\xc3\xa9\x01\n\t\b\f\r\"\\/\x7f\xe2\x80\xa8"
                     "\xf0\x9f\x98\x80",
                     "F32",
                     {}},
                    {"z", "F32", {0, 3}},
                    {"b", "F32", {0}}};
  sortAsReference(header.tensors);
  EXPECT_EQ(jsonOf(layOut(header)),
            "{\"__metadata__\":{\"k\\u001f\":\"\xc3\xa9\\\"\"},"
            R"("b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
            R"("z":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},)"
            "\"\xc3\xa9\\u0001\\n\\t\\b\\f\\r\\\"\\\\/\x7f\xe2\x80\xa8"
            "\xf0\x9f\x98\x80\":"
            R"({"dtype":"F32","shape":[],"data_offsets":[0,4]}}       )");
}

TEST(SortAsReference, TypesAsItsWriterHasThem) {
  // The reference implementation wrote a file of all types that PyTorch has,
  // one tensor each, in this order. Its list of types gives the order of 6-bit
  // types.
  const std::vector<std::string> order = {
      "U64",         "I64",     "F64",     "C64",     "F32", "U32",
      "I32",         "BF16",    "F16",     "U16",     "I16", "F8_E5M2FNUZ",
      "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8",  "U8",
      "F6_E3M2",     "F6_E2M3", "F4",      "BOOL"};
  std::vector<SafeTensor> tensors;
  for (const std::string &type : order) {
    tensors.push_back({"y", type, {8}});
    tensors.push_back({"x", type, {8}});
  }
  std::ranges::sort(tensors, {}, &SafeTensor::type);
  sortAsReference(tensors);
  std::vector<std::string> types;
  types.reserve(order.size());
  for (std::size_t i = 0; i < tensors.size(); i += 2) {
    types.push_back(tensors[i].type);
    EXPECT_EQ(tensors[i].name, "x");
    EXPECT_EQ(tensors[i + 1].name, "y");
    EXPECT_EQ(tensors[i + 1].type, tensors[i].type);
  }
  EXPECT_THAT(types, ElementsAreArray(order));
}

TEST(SortAsReference, NamesByTheirBytes) {
  std::vector<SafeTensor> tensors = {{"\xc3\xa9", "U8", {}},
                                     {"h.2", "U8", {}},
                                     {"h.10", "U8", {}},
                                     {"H", "U8", {}},
                                     {"", "U8", {}}};
  sortAsReference(tensors);
  auto called = [](const char *name) {
    return testing::Field(&SafeTensor::name, name);
  };
  EXPECT_THAT(tensors, ElementsAre(called(""), called("H"), called("h.10"),
                                   called("h.2"), called("\xc3\xa9")));
}

TEST(BitsOf, EveryType) {
  EXPECT_EQ(bitsOf("F4"), 4);
  EXPECT_EQ(bitsOf("F6_E2M3"), 6);
  EXPECT_EQ(bitsOf("F6_E3M2"), 6);
  for (const char *type : {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0",
                           "F8_E4M3FNUZ", "F8_E5M2FNUZ"})
    EXPECT_EQ(bitsOf(type), 8) << type;
  for (const char *type : {"I16", "U16", "F16", "BF16"})
    EXPECT_EQ(bitsOf(type), 16) << type;
  for (const char *type : {"I32", "U32", "F32"})
    EXPECT_EQ(bitsOf(type), 32) << type;
  for (const char *type : {"C64", "F64", "I64", "U64"})
    EXPECT_EQ(bitsOf(type), 64) << type;
  EXPECT_EQ(bitsOf("F128"), 0);
  EXPECT_EQ(bitsOf(""), 0);
}

TEST(LayOut, RejectsInvalidHeaders) {
  auto one = [](SafeTensor tensor) {
    SafetensorsHeader header;
    header.tensors = {std::move(tensor)};
    return errorOf(header);
  };
  EXPECT_EQ(one({"a", "F31", {1}}),
            "tensor 'a': type 'F31' is not one of the format's");
  EXPECT_EQ(one({"a", "F32", {2, -1}}),
            "tensor 'a': F32 [2, -1] has a negative dimension");
  EXPECT_EQ(one({"a", "F4", {3}}),
            "tensor 'a': F4 [3] takes 12 bits, no whole number of bytes");
  EXPECT_THAT(one({"a", "U8", {1LL << 32, 1LL << 32}}),
              HasSubstr("more bits than 64 bits count"));
  EXPECT_EQ(one({"__metadata__", "F32", {1}}),
            "tensor '__metadata__': is not allowed as the name of a tensor");
  EXPECT_THAT(one({"a\xff", "F32", {1}}), HasSubstr("is not UTF-8"));

  SafetensorsHeader twice;
  twice.tensors = {{"a", "F32", {1}}, {"b", "F32", {1}}, {"a", "U8", {2}}};
  EXPECT_EQ(errorOf(twice), "tensor 'a': occurs twice");
  SafetensorsHeader together;
  for (const char *name : {"a", "b", "c", "d", "e"})
    together.tensors.push_back({name, "U8", {(1LL << 61) - 1}});
  EXPECT_EQ(errorOf(together), "tensor 'e': ends beyond what 64 bits count");
}

TEST(LayOut, ManyTensorsReadAsTheyWereWritten) {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}};
  for (int i = 0; i < 100'000; ++i)
    header.tensors.push_back(
        {"model.layers." + std::to_string(i) + ".weight", "F16", {i % 3, 2}});
  sortAsReference(header.tensors);
  std::string bytes = layOut(header);
  bytes.resize(bytes.size() +
               static_cast<std::size_t>(header.tensors.back().end));
  EXPECT_EQ(headerOf(bytes), header);
}

} // namespace
} // namespace mtplan::runtime

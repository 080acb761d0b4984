//===- model_files_test.cpp - Models of one file and of many --------------===//

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/safetensors/model_files.h"
#include "tests/runtime/safetensors/safetensors_files.h"

namespace mtplan::runtime {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr const char *kIndex = "model.safetensors.index.json";

std::string errorOf(const std::string &path) {
  return messageOf<DataError>([&] { ModelFiles::open(path); });
}

/// Writes a file of tensors of four bytes, each filled with the first letter of
/// its name.
void writeTensors(const std::string &path,
                  const std::vector<std::string> &names) {
  SafetensorsHeader header;
  std::string data;
  for (const std::string &name : names) {
    header.tensors.push_back({name, "U8", {4}});
    data += std::string(4, name[0]);
  }
  const std::string start = layOut(header);
  writeFile(path, start + data);
}

void writeIndexOf(const TestFolder &folder,
                  std::map<std::string, std::string> weightMap) {
  ShardIndex index;
  index.weightMap = std::move(weightMap);
  writeFile(folder / kIndex, writeIndex(index));
}

std::string dataOf(const ModelFiles &model, const std::string &name) {
  const ModelTensor *found = model.find(name);
  if (!found)
    return "none";
  return {reinterpret_cast<const char *>(found->data()),
          static_cast<std::size_t>(found->tensor->bytes())};
}

TEST(ModelFiles, OneFile) {
  TestFolder folder;
  writeFile(folder / "model.safetensors", kGoldenSafetensors);
  for (const std::string &path : {folder / "", folder / "model.safetensors"}) {
    SCOPED_TRACE(path);
    const ModelFiles model = ModelFiles::open(path);
    EXPECT_EQ(model.index(), nullptr);
    ASSERT_EQ(model.files().size(), 1U);
    EXPECT_EQ(model.files()[0]->header.metadata.at("format"), "pt");
    EXPECT_EQ(model.tensors().size(), 2U);
    const ModelTensor *b = model.find("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->tensor->type, "BF16");
    EXPECT_EQ(b->offset, 168);
    EXPECT_EQ(b->file->path(), folder / "model.safetensors");
    EXPECT_EQ(dataOf(model, "b"), kGoldenSafetensors.substr(168));
    EXPECT_EQ(model.find("c"), nullptr);
  }
}

TEST(ModelFiles, ManyFiles) {
  TestFolder folder;
  writeTensors(folder / "s1.safetensors", {"b", "a"});
  writeTensors(folder / "s2.safetensors", {"c"});
  writeFile(folder / "s3.safetensors", "of no concern");
  writeIndexOf(folder, {{"a", "s1.safetensors"},
                        {"b", "s1.safetensors"},
                        {"c", "s2.safetensors"}});
  for (const std::string &path : {folder / "", folder / kIndex}) {
    SCOPED_TRACE(path);
    ModelFiles opened = ModelFiles::open(path);
    const ModelFiles model = std::move(opened);
    EXPECT_EQ(dataOf(model, "a"), "aaaa");
    EXPECT_EQ(dataOf(model, "b"), "bbbb");
    EXPECT_EQ(dataOf(model, "c"), "cccc");
    EXPECT_EQ(dataOf(model, "d"), "none");
    EXPECT_THAT(model.find("c")->file->path(), EndsWith("s2.safetensors"));
    EXPECT_EQ(model.tensors().size(), 3U);
    EXPECT_EQ(model.files().size(), 2U);
    ASSERT_NE(model.index(), nullptr);
    EXPECT_EQ(model.index()->weightMap.size(), 3U);
  }
}

TEST(ModelFiles, OneFileComesBeforeAnIndex) {
  TestFolder folder;
  writeTensors(folder / "model.safetensors", {"a"});
  writeFile(folder / kIndex, "broken");
  EXPECT_EQ(dataOf(ModelFiles::open(folder / ""), "a"), "aaaa");
}

TEST(ModelFiles, MissingFile) {
  TestFolder folder;
  writeTensors(folder / "s1.safetensors", {"a"});
  writeIndexOf(folder, {{"a", "s1.safetensors"},
                        {"c", "s2.safetensors"},
                        {"b", "s2.safetensors"}});
  EXPECT_EQ(errorOf(folder / ""),
            folder / kIndex + ": file 's2.safetensors' is missing; it should "
                              "hold tensor 'b'");
}

TEST(ModelFiles, TensorInAnotherFile) {
  TestFolder folder;
  writeTensors(folder / "s1.safetensors", {"a", "b"});
  writeTensors(folder / "s2.safetensors", {"c"});
  writeIndexOf(folder, {{"a", "s1.safetensors"},
                        {"b", "s2.safetensors"},
                        {"c", "s2.safetensors"}});
  EXPECT_EQ(errorOf(folder / ""),
            folder / kIndex + ": tensor 'b' is in 's1.safetensors'; it should "
                              "be in 's2.safetensors'");
}

TEST(ModelFiles, TensorInNoFile) {
  TestFolder folder;
  writeTensors(folder / "s1.safetensors", {"a"});
  writeIndexOf(folder, {{"a", "s1.safetensors"}, {"b", "s1.safetensors"}});
  EXPECT_EQ(errorOf(folder / ""),
            folder / kIndex + ": tensor 'b' is in none of the files; it should "
                              "be in 's1.safetensors'");
}

TEST(ModelFiles, TensorTwice) {
  TestFolder folder;
  writeTensors(folder / "s1.safetensors", {"a", "b"});
  writeTensors(folder / "s2.safetensors", {"c", "b"});
  writeIndexOf(folder, {{"a", "s1.safetensors"},
                        {"b", "s1.safetensors"},
                        {"c", "s2.safetensors"}});
  EXPECT_EQ(errorOf(folder / ""),
            folder / kIndex + ": tensor 'b' is in 's1.safetensors' and in "
                              "'s2.safetensors'; it should be in "
                              "'s1.safetensors' alone");
}

TEST(ModelFiles, TensorThatTheIndexDoesNotName) {
  TestFolder folder;
  writeTensors(folder / "s1.safetensors", {"a", "b"});
  writeIndexOf(folder, {{"a", "s1.safetensors"}});
  EXPECT_EQ(errorOf(folder / ""),
            folder / kIndex +
                ": tensor 'b' is in 's1.safetensors', but not in weight_map");
}

TEST(ModelFiles, BrokenFiles) {
  TestFolder folder;
  writeFile(folder / "s1.safetensors", kGoldenSafetensors.substr(0, 173));
  writeIndexOf(folder, {{"a", "s1.safetensors"}, {"b", "s1.safetensors"}});
  EXPECT_EQ(errorOf(folder / ""),
            folder / "s1.safetensors" +
                ": byte 152: the tensors take 22 bytes from here, the file has "
                "21: 1 are missing");
  writeFile(folder / kIndex, "{}");
  EXPECT_EQ(errorOf(folder / ""), folder / kIndex + ": has no weight_map");
}

TEST(ModelFiles, FoldersWithoutAModel) {
  TestFolder folder;
  const std::string what = folder / "" + ": has neither model.safetensors nor "
                                         "model.safetensors.index.json";
  EXPECT_EQ(errorOf(folder / ""), what);
  writeFile(folder / "pytorch_model.bin", "x");
  EXPECT_EQ(errorOf(folder / ""),
            what + "; 'pytorch_model.bin' is of another format: save the model "
                   "as safetensors");
  writeFile(folder / "other.safetensors", "x");
  EXPECT_EQ(errorOf(folder / ""), what + "; name its 'other.safetensors' "
                                         "itself");
  writeFile(folder / "another.safetensors", "x");
  EXPECT_EQ(errorOf(folder / ""), what +
                                      "; it has 2 .safetensors files, such as "
                                      "'another.safetensors', but no index");
  EXPECT_THAT(errorOf(folder / "nothing"),
              HasSubstr("nothing: cannot be read: No such file"));
}

} // namespace
} // namespace mtplan::runtime

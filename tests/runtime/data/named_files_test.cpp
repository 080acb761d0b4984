//===- named_files_test.cpp - Names of the same file ----------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/files.h"
#include "runtime/data/megatron_index.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

TEST(NamedFiles, AliasesOfAFileAreEqual) {
  const TestFolder folder;
  const std::string file = writeFile(folder / "file", "kept");
  std::filesystem::create_symlink("file", folder / "link");
  std::filesystem::create_hard_link(file, folder / "twin");
  std::filesystem::create_directory(folder / "below");
  for (const char *name : {"file", "./file", "link", "twin", "below/../file"}) {
    EXPECT_TRUE(isSameFile(folder / name, file)) << name;
    EXPECT_TRUE(isSameFile(file, folder / name)) << name;
  }
  EXPECT_FALSE(isSameFile(file, folder / "other"));
  EXPECT_FALSE(isSameFile(folder / "other", file));
  EXPECT_FALSE(isSameFile("", ""));
  EXPECT_FALSE(isSameFile(file, ""));
}

// Links, also links to links, lead to a file that does not exist yet.
TEST(NamedFiles, AliasesOfAMissingFileAreEqual) {
  const TestFolder folder;
  std::filesystem::create_symlink("new", folder / "link");
  std::filesystem::create_symlink(folder / "link", folder / "second");
  std::filesystem::create_symlink("round", folder / "round");
  for (const char *name : {"new", "none/../new", "link", "second"}) {
    EXPECT_TRUE(isSameFile(folder / name, folder / "new")) << name;
    EXPECT_TRUE(isSameFile(folder / "new", folder / name)) << name;
  }
  EXPECT_TRUE(isSameFile(folder / "link", folder / "second"));
  EXPECT_FALSE(isSameFile(folder / "link", folder / "newer"));
  EXPECT_FALSE(isSameFile(folder / "round", folder / "new"));
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

TEST(NamedFiles, DevicesAndFoldersAreNeverEqual) {
  const TestFolder folder;
  EXPECT_FALSE(isSameFile("/dev/null", "/dev/null"));
  EXPECT_FALSE(isSameFile(folder / ".", folder / "."));
}

TEST(NamedFiles, ConflictNamesTheOtherOption) {
  const TestFolder folder;
  const std::string read = writeFile(folder / "read", "kept");
  NamedFiles files;
  files.read("MODEL", read);
  files.read("--load", "");
  files.read("--load", read);
  EXPECT_EQ(files.write("--save", folder / "saved"), "");
  EXPECT_EQ(files.write("--trace", read),
            "is what MODEL names; give it another name");
  EXPECT_EQ(files.write("--dot", folder / "./saved"),
            "is what --save names; give it another name");
  EXPECT_EQ(files.write("--report", ""), "");
  EXPECT_EQ(files.write("-o", ""), "");
  EXPECT_EQ(files.write("-o", "-"),
            "means standard output for other flags, but names a file here; "
            "give it another name");
  EXPECT_EQ(files.write("-o", folder / "-"), "");
}

TEST(MegatronFiles, EitherNameMeansBothFiles) {
  for (const char *name : {"a/b.c", "a/b.c.bin", "a/b.c.idx"})
    EXPECT_THAT(megatronFiles(name),
                testing::ElementsAre("a/b.c.bin", "a/b.c.idx"));
}

} // namespace
} // namespace mtplan::runtime

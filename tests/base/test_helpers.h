//===- test_helpers.h - Files, variables and text of tests ------*- C++ -*-===//
//
// Holds helpers that the tests of all rooms may use.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_BASE_TEST_HELPERS_H
#define MTPLAN_TESTS_BASE_TEST_HELPERS_H

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <unistd.h>

#include <gtest/gtest.h>

namespace mtplan {

/// Creates a folder for a test; the destructor removes it.
class TestFolder {
public:
  /// \param parent  "": the folder of temporary files
  explicit TestFolder(const std::string &parent = "") {
    static std::atomic<int> count = 0;
    path = ((parent.empty() ? std::filesystem::temp_directory_path()
                            : std::filesystem::path(parent)) /
            ("mtplan-test-" + std::to_string(::getpid()) + "-" +
             std::to_string(count++)))
               .string();
    std::filesystem::create_directories(path);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TestFolder(const TestFolder &) = delete;
  TestFolder &operator=(const TestFolder &) = delete;
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }

private:
  std::string path;
};

/// Writes a file into a folder of its own; the destructor removes both.
class TestFile {
public:
  explicit TestFile(const std::string &text,
                    const std::string &name = "file.json")
      : path(folder / name) {
    write(text);
  }
  void write(const std::string &text) const {
    std::ofstream(path, std::ios::binary) << text;
  }

private:
  const TestFolder folder;

public:
  const std::string path;
};

/// Sets an environment variable of the process; the destructor restores it.
class ScopedVariable {
public:
  /// \param value  null: unsets the variable
  ScopedVariable(const char *theName, const char *value) : name(theName) {
    if (const char *found = std::getenv(name))
      before = found;
    set(value);
  }
  ~ScopedVariable() { set(before ? before->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable &) = delete;
  ScopedVariable &operator=(const ScopedVariable &) = delete;

private:
  void set(const char *value) const {
    if (value)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }

  const char *const name;
  std::optional<std::string> before;
};

/// Returns `text` with the first `from` replaced. Fails the test if `text` does
/// not contain `from`.
inline std::string replaced(std::string text, const std::string &from,
                            const std::string &to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

} // namespace mtplan

#endif // MTPLAN_TESTS_BASE_TEST_HELPERS_H

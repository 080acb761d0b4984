//===- plan_file.cpp - Executable plans in files --------------------------===//

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "runtime/plan/plan_json.h"

namespace mtplan::runtime {

namespace {

[[noreturn]] void fail(const std::filesystem::path &path,
                       const std::string &what, int error) {
  throw PlanError(path.string() + ": " + what + ": " +
                  std::generic_category().message(error));
}

struct Close {
  void operator()(std::FILE *file) const {
    std::fclose(file); // NOLINT: errors of what is read do not matter here
  }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string readWhole(const std::filesystem::path &path) {
  // A folder can be opened, and then not be read.
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    fail(path, "cannot be read", EISDIR);
  File file(std::fopen(path.c_str(), "rb"));
  if (!file)
    fail(path, "cannot be opened", errno);
  std::string text;
  char block[1 << 16];
  while (std::size_t got = std::fread(block, 1, sizeof block, file.get()))
    text.append(block, got);
  if (std::ferror(file.get()) != 0)
    fail(path, "cannot be read", errno);
  return text;
}

// Whether all of it has reached the file; errno says why not.
bool writeWhole(const std::filesystem::path &path, const std::string &text) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file)
    return false;
  bool written =
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  // A full disk may show only here.
  return std::fclose(file.release()) == 0 && written;
}

} // namespace

void writePlanFile(const std::filesystem::path &path, const Plan &plan) {
  std::string text;
  try {
    text = planText(plan);
  } catch (const PlanError &error) {
    throw PlanError(path.string() + ": " + error.what());
  }
  std::filesystem::path fresh = path;
  fresh += ".part";
  if (!writeWhole(fresh, text)) {
    int error = errno;
    std::error_code ignored;
    std::filesystem::remove(fresh, ignored);
    fail(path, "cannot be written", error);
  }
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(fresh, ignored);
    fail(path, "cannot be replaced", error.value());
  }
}

Plan readPlanFile(const std::filesystem::path &path) {
  std::string text = readWhole(path);
  try {
    return parsePlan(text);
  } catch (const PlanError &error) {
    throw PlanError(path.string() + ": " + error.what());
  }
}

} // namespace mtplan::runtime

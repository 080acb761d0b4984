//===- named_files.cpp - Files that a command names -----------------------===//

#include "runtime/data/named_files.h"

#include <filesystem>

namespace mtplan::runtime {
namespace {

namespace fs = std::filesystem;

/// Where a file will be that is not there yet. A link to nothing leads there.
fs::path placeOf(fs::path name) {
  constexpr int kMostLinks = 40; // as Linux follows
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(name, none); ++i)
    name = name.parent_path() / fs::read_symlink(name, none);
  name = fs::absolute(name, none);
  const fs::path whole = fs::weakly_canonical(name, none);
  return whole.empty() ? name.lexically_normal() : whole;
}

} // namespace

bool isSameFile(const std::string &one, const std::string &other) {
  std::error_code none;
  if (one.empty() || other.empty())
    return false;
  if (fs::exists(one, none))
    return fs::is_regular_file(one, none) && fs::equivalent(one, other, none);
  return placeOf(one) == placeOf(other);
}

void NamedFiles::read(const std::string &by, const std::string &file) {
  named.emplace_back(by, file);
}

std::string NamedFiles::write(const std::string &by, const std::string &file) {
  if (file == "-")
    return "is standard output elsewhere, and would be a file of that name "
           "here; give it another name";
  std::string against;
  for (const auto &[other, name] : named)
    if (against.empty() && isSameFile(file, name))
      against = "is what " + other + " names; give it another name";
  named.emplace_back(by, file);
  return against;
}

} // namespace mtplan::runtime

//===- shared_functions.cpp - Functions that stages share -----------------===//

#include "codegen/source/shared_functions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace mtplan::codegen {

namespace {

constexpr std::size_t kLong = 1000; // characters of a function worth sharing

/// Holds a function without its first line, its comments and its spaces.
struct Comparable {
  std::string body;                 ///< without the names of buffers
  std::vector<std::string> buffers; ///< their names, in order of use
  StageFunction *function;
};

Comparable comparable(StageFunction &function) {
  constexpr std::string_view kBuffer = "buf::";
  Comparable all{{}, {}, &function};
  std::istringstream lines(function.text.text());
  std::string line, words;
  std::getline(lines, line);
  while (std::getline(lines, line))
    if (line.find("//") == std::string::npos)
      words += line;
  std::erase(words, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view left = std::string_view(words).substr(i);
    if (!left.starts_with(kBuffer)) {
      all.body += words[i];
      continue;
    }
    const std::size_t end = std::min(left.find_first_of(",;)}]+"), left.size());
    all.buffers.emplace_back(left.substr(kBuffer.size(), end - kBuffer.size()));
    i += end - 1;
    all.body += kBuffer;
  }
  return all;
}

/// Returns the name in `own` for each buffer that `other` names differently,
/// or nothing if one name in `other` stands for several buffers in `own`.
std::optional<std::map<std::string, std::string>>
differences(const Comparable &own, const Comparable &other) {
  std::map<std::string, std::string> names;
  for (std::size_t b = 0; b < own.buffers.size(); ++b)
    if (names.try_emplace(other.buffers[b], own.buffers[b]).first->second !=
        own.buffers[b])
      return std::nullopt;
  std::erase_if(names, [](const auto &one) { return one.first == one.second; });
  return names;
}

/// Makes `own` a call of the template `other`.
void share(StageFunction &own, const StageFunction &other,
           const std::map<std::string, std::string> &differing) {
  own.isShared = true;
  std::string buffers = "buf";
  if (!differing.empty()) {
    buffers = own.name + "_buf";
    own.buffers.comment("With these buffers " + other.name +
                        " also does what " + own.name + " would do.");
    own.buffers.open("struct " + buffers + " : buf {");
    for (const auto &[name, its] : differing) {
      std::string line = "static constexpr auto ";
      line.append(name).append(" = buf::").append(its).append(";");
      own.buffers.line(line);
    }
    own.buffers.close("};");
  }
  own.call = other.name + "<" + buffers + ">";
}

} // namespace

void shareFunctions(std::vector<std::vector<StageFunction>> &stages) {
  std::vector<Comparable> owners;
  std::set<std::string> templates; // their names
  for (std::vector<StageFunction> &stage : stages)
    for (StageFunction &one : stage) {
      one.call = one.name;
      Comparable own = comparable(one);
      if (!one.isOfSchedule || own.body.size() < kLong)
        continue;
      const auto canShare = [&](const Comparable &other) {
        return other.body == own.body && differences(own, other) &&
               (other.function->isTemplate ||
                !templates.contains(other.function->name)) &&
               std::ranges::none_of(stage, [&](const StageFunction &its) {
                 return &its != &one && &its != other.function &&
                        its.name == other.function->name;
               });
      };
      const auto found = std::ranges::find_if(owners, canShare);
      if (found == owners.end()) {
        owners.push_back(std::move(own));
        continue;
      }
      StageFunction &other = *found->function;
      templates.insert(other.name);
      other.isTemplate = true;
      other.call = other.name + "<buf>";
      share(one, other, *differences(own, *found));
    }
}

} // namespace mtplan::codegen

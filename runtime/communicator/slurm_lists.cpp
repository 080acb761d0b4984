//===- slurm_lists.cpp - Parses Slurm's lists of hosts and tasks ----------===//

#include "runtime/communicator/slurm_lists.h"

#include <charconv>
#include <sstream>

namespace mtplan::runtime {

namespace {

/// Returns the number at the start of a text; 0 if there is none.
int numberAt(const std::string &text, std::size_t at) {
  int number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

} // namespace

std::optional<int> tasksOfNode(const std::string &list, int node) {
  std::istringstream all(list);
  for (std::string part; std::getline(all, part, ',');) {
    const std::size_t times = part.find("(x");
    const int nodes =
        times == std::string::npos ? 1 : numberAt(part, times + 2);
    const int tasks = numberAt(part, 0);
    if (nodes < 1 || tasks < 1)
      return std::nullopt;
    if (node < nodes)
      return tasks;
    node -= nodes;
  }
  return std::nullopt;
}

std::string firstNode(const std::string &list) {
  std::string node;
  // Inside brackets; after their first number.
  bool within = false, skips = false;
  for (const char letter : list) {
    if (letter == '[' && !within) {
      within = true;
      skips = false;
    } else if (letter == ']' && within) {
      within = false;
    } else if (!within && letter == ',') {
      break;
    } else if (within && (letter == ',' || letter == '-')) {
      skips = true;
    } else if (letter == '[' || letter == ']') {
      return {};
    } else if (!within || !skips) {
      node += letter;
    }
  }
  return within ? std::string() : node;
}

} // namespace mtplan::runtime

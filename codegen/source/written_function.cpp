//===- written_function.cpp - Equal functions of two stages ---------------===//

#include "codegen/source/written_function.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

namespace mtplan::codegen {

WrittenFunction comparable(const std::string &function) {
  constexpr std::string_view kBuffer = "buf::", kFirst = "firstLayer";
  WrittenFunction all;
  std::istringstream lines(function);
  std::string line, words;
  std::getline(lines, line);
  while (std::getline(lines, line))
    if (line.find("//") == std::string::npos)
      words += line;
  std::erase(words, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view left = std::string_view(words).substr(i);
    if (left.starts_with(kBuffer)) {
      const std::size_t end = std::min(left.find_first_of(",;)}"), left.size());
      all.buffers.emplace_back(
          left.substr(kBuffer.size(), end - kBuffer.size()));
      i += end - 1;
      all.body += kBuffer;
    } else if (left.starts_with(kFirst)) {
      i += left.find('+'); // "firstLayer + now.layer"
    } else {
      all.body += words[i];
    }
  }
  return all;
}

std::string differencesOf(const WrittenFunction &own,
                          const WrittenFunction &other) {
  std::set<std::string> said;
  std::string buffers;
  for (std::size_t b = 0; b < own.buffers.size(); ++b)
    if (own.buffers[b] != other.buffers[b] &&
        said.insert(own.buffers[b]).second)
      buffers += (buffers.empty() ? ", with " : ", ") + own.buffers[b] +
                 " for " + other.buffers[b];
  return buffers;
}

} // namespace mtplan::codegen

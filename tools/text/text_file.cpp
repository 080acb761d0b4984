//===- text_file.cpp - Text files and tables ------------------------------===//

#include "tools/text/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace mtplan::tools {

std::optional<std::string> readTextFile(const std::string &path,
                                        std::vector<std::string> &errors) {
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  auto refuse = [&](const std::string &why) {
    errors.push_back(path + ": cannot be read: " + why);
    return std::nullopt;
  };
  if (path == "-")
    return readTextFile("/dev/stdin", errors);
  if (path.empty()) {
    errors.emplace_back("MODEL: names no file");
    return std::nullopt;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    // A folder in Hugging Face's form holds the model in config.json.
    const std::string config = std::filesystem::path(path) / "config.json";
    return refuse(std::filesystem::exists(config, ignored)
                      ? "it is a directory; name " + config
                      : "it is a directory");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return refuse(std::strerror(errno));
  std::string text;
  std::string chunk(std::size_t{1} << 16, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) ||
         file.gcount() > 0) {
    text.append(chunk, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostBytes)
      return refuse("it is above 256 MiB");
  }
  if (file.bad())
    return refuse(std::strerror(errno));
  return text;
}

bool writeTextFile(const std::string &path, const std::string &text,
                   std::vector<std::string> &errors) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file)
    return true;
  errors.push_back(path + ": cannot be written: " + std::strerror(errno));
  return false;
}

void addLines(const std::string &text, const std::string &file,
              std::vector<std::string> &errors) {
  std::size_t start = 0;
  while (start < text.size()) {
    std::size_t end = std::min(text.find('\n', start), text.size());
    std::string line = text.substr(start, end - start);
    char first = line.empty() ? ' ' : line.front();
    bool position = first >= '0' && first <= '9';
    errors.push_back(first == '/'   ? fmt::format("{}: {}", file, line)
                     : first == ':' ? file + line // an error of the whole file
                     : position     ? fmt::format("{}:{}", file, line)
                                    : line);
    start = end + 1;
  }
}

std::vector<CsvRecord> csvRecords(const std::string &text) {
  std::vector<CsvRecord> records;
  bool starts = true, quoted = false;
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (starts)
      records.push_back({{""}, line});
    starts = false;
    std::vector<std::string> &cells = records.back().cells;
    const char c = text[at];
    line += c == '\n';
    if (c == '"' && quoted && at + 1 < text.size() && text[at + 1] == '"')
      cells.back() += text[++at];
    else if (c == '"')
      quoted = !quoted;
    else if (quoted || (c != ',' && c != '\n' && c != '\r'))
      cells.back() += c;
    else if (c == ',')
      cells.emplace_back();
    else
      starts = c == '\n';
  }
  return records;
}

} // namespace mtplan::tools

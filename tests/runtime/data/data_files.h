//===- data_files.h - Small token files for tests ---------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_DATA_DATA_FILES_H
#define MTPLAN_TESTS_RUNTIME_DATA_DATA_FILES_H

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/base/test_helpers.h"

namespace mtplan::runtime {

inline std::string writeFile(const std::string &path,
                             const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the bytes of a hexadecimal text: "0a00ff" is three bytes.
inline std::string bytesOfHex(const std::string &hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

template <typename T> std::string bytesOfNumbers(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

/// Holds the files that Megatron-LM writes for two documents of uint16 tokens.
/// The first document has the sequences [10, 11, 12] and [13], the second has
/// [20, 21].
inline const std::string kGoldenBin = bytesOfHex("0a000b000c000d0014001500");
inline const std::string kGoldenIdx = bytesOfHex(
    "4d4d494449445800000100000000000000080300000000000000030000000000000003"
    "0000000100000002000000000000000000000006000000000000000800000000000000"
    "000000000000000002000000000000000300000000000000");

/// Returns a token file of llm.c: a header of 256 int32, then the tokens.
template <typename T>
std::string llmcFile(std::int32_t magic, std::int32_t version,
                     const std::vector<T> &tokens) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = static_cast<std::int32_t>(tokens.size());
  return bytesOfNumbers(header) + bytesOfNumbers(tokens);
}

/// Returns the message of the `Error` that `call` throws; "" if there is none.
template <typename Error, typename F> std::string messageOf(F &&call) {
  try {
    call();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_DATA_DATA_FILES_H

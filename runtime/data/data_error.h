//===- data_error.h - What is wrong with training data ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_DATA_DATA_ERROR_H
#define MTPLAN_RUNTIME_DATA_DATA_ERROR_H

#include <cstdint>
#include <stdexcept>
#include <string>

namespace mtplan::runtime {

/// Data that cannot be trained on. what() starts with the file, then the byte
/// if there is one: "corpus.idx: byte 34: ...".
class DataError : public std::runtime_error {
public:
  DataError(const std::string &file, const std::string &what)
      : std::runtime_error(file + ": " + what) {}
  DataError(const std::string &file, std::int64_t byte, const std::string &what)
      : std::runtime_error(file + ": byte " + std::to_string(byte) + ": " +
                           what) {}
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DATA_ERROR_H

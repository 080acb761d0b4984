//===- data_command.h - mtrun data info, check and convert ------*- C++ -*-===//
//
// What the three commands do, and what they tell a person. They throw DataError
// for what is wrong with a file; everything else is text for standard output.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_DATA_COMMAND_H
#define MTPLAN_RUNTIME_DATA_DATA_COMMAND_H

#include <optional>
#include <string>

#include "runtime/data/convert.h"
#include "runtime/data/dataset.h"

namespace mtplan::runtime {

/// Format, sizes and checksums. With a sequence length also the samples.
std::string dataInfo(const std::string &path, std::optional<TokenFormat> format,
                     std::optional<std::int64_t> sequence);

/// Reads every token.
/// \param vocabulary  that tokens must be below; none: what the format holds
/// \throws DataError at the first fault
std::string dataCheck(const std::string &path,
                      std::optional<TokenFormat> format,
                      std::optional<std::int64_t> vocabulary);

/// \throws DataError if the source is one of the files to be written
std::string dataConvert(const std::string &path,
                        std::optional<TokenFormat> format,
                        const std::string &to, const ConvertOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_DATA_COMMAND_H

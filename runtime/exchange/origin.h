//===- origin.h - Describes imported files of weights -----------*- C++ -*-===//
//
// An origin has the names, types, order and metadata of all tensors, by file,
// and the exact text of each header, so that an export can reproduce the files.
// A checkpoint stores the origin as metadata of origin.safetensors. This file
// also has those tensors of the original files that are not parameters. The
// metadata is plain text that any reader of safetensors shows.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_ORIGIN_H
#define MTPLAN_RUNTIME_EXCHANGE_ORIGIN_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/llmc_file.h"
#include "runtime/safetensors/model_files.h"

namespace mtplan::runtime {

/// Holds the header of one original file.
struct OriginFile {
  std::string name; ///< "model-00001-of-00003.safetensors"
  std::string text; ///< text of the header, without its length
  SafetensorsHeader header;
};

/// Describes the original files of imported weights.
struct Origin {
  std::vector<OriginFile> files;     ///< empty for llm.c
  std::optional<std::string> index;  ///< text of model.safetensors.index.json
  std::optional<std::string> config; ///< text of config.json
  std::optional<LlmcHeader> llmc;

  /// Returns the names of all tensors.
  std::vector<std::string> names() const;
};

/// Returns the description of opened files.
/// \param path  the argument of ModelFiles::open
/// \throws DataError if a text file is not UTF-8
Origin originOf(const ModelFiles &files, const std::string &path);

/// Returns the origin as metadata of safetensors.
std::map<std::string, std::string> originTexts(const Origin &origin);
/// Returns the origin that originTexts() wrote.
/// \param file  name for error messages
/// \throws DataError if a text is invalid
Origin readOrigin(const std::string &file,
                  const std::map<std::string, std::string> &texts);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_ORIGIN_H

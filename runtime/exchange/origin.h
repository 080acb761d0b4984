//===- origin.h - Describes imported files of weights -----------*- C++ -*-===//
//
// Holds names, types, order and metadata of the tensors, file by file, and
// their spelling: enough to write the same bytes again. A checkpoint stores it
// as the metadata of origin.safetensors, whose tensors are those that are no
// parameters here. It is plain text, so any reader of safetensors shows it.
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

struct OriginFile {
  std::string name; ///< "model-00001-of-00003.safetensors"
  std::string text; ///< its header, without the length before it
  SafetensorsHeader header;
};

struct Origin {
  std::vector<OriginFile> files;     ///< none: a file of llm.c
  std::optional<std::string> index;  ///< text of model.safetensors.index.json
  std::optional<std::string> config; ///< text of config.json
  std::optional<LlmcHeader> llmc;

  /// Returns the names of all files.
  std::vector<std::string> names() const;
};

/// \param path  as ModelFiles::open takes it
/// \throws DataError
Origin originOf(const ModelFiles &files, const std::string &path);

std::map<std::string, std::string> originTexts(const Origin &origin);
/// \param file  for messages
/// \throws DataError
Origin readOrigin(const std::string &file,
                  const std::map<std::string, std::string> &texts);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_ORIGIN_H

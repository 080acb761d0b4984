//===- origin.h - Describes imported files of weights -----------*- C++ -*-===//
//
// An origin describes the original files of imported weights: the names, types,
// order and metadata of all tensors, and the exact text of each header. An
// export can therefore reproduce the files. A checkpoint stores the origin as
// metadata of origin.safetensors, together with the original tensors that are
// not parameters.
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
  std::string text; ///< the header's text, without its length
  SafetensorsHeader header;
};

struct Origin {
  /// Has one element per safetensors file; empty for llm.c.
  std::vector<OriginFile> files;
  std::optional<std::string> index;  ///< text of model.safetensors.index.json
  std::optional<std::string> config; ///< text of config.json
  std::optional<LlmcHeader> llmc;

  std::vector<std::string> names() const;
};

/// \param path  the argument of ModelFiles::open
/// \throws DataError if a text file is not UTF-8
Origin originOf(const ModelFiles &files, const std::string &path);

std::map<std::string, std::string> originTexts(const Origin &origin);
/// Reads the texts of originTexts().
/// \param file  name for error messages
/// \throws DataError if a text is invalid
Origin readOrigin(const std::string &file,
                  const std::map<std::string, std::string> &texts);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_ORIGIN_H

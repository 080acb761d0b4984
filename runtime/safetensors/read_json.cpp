//===- read_json.cpp - The JSON of a file of tensors ----------------------===//

#include "runtime/safetensors/read_json.h"

#include "base/json_text.h"
#include "runtime/data/data_error.h"

namespace mtplan::runtime {

void readFileJson(const std::string &file, std::string_view text,
                  std::int64_t firstByte, base::JsonEvents &events) {
  // The limit of serde_json, the parser of the format's own library.
  constexpr std::size_t kMostDepth = 127;
  try {
    base::readJsonEvents(text, kMostDepth, events);
  } catch (const base::JsonTextFault &fault) {
    throw DataError(file, firstByte + static_cast<std::int64_t>(fault.offset),
                    fault.what());
  } catch (const base::JsonError &error) {
    throw DataError(file, error.what());
  }
}

} // namespace mtplan::runtime

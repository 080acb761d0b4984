//===- read_json.h - The JSON of a file of tensors --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_SAFETENSORS_READ_JSON_H
#define MTPLAN_RUNTIME_SAFETENSORS_READ_JSON_H

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_events.h"

namespace mtplan::runtime {

/// Reads the whole of `text`, which begins at `firstByte` of `file`.
/// \throws DataError, beside what `events` throws
void readFileJson(const std::string &file, std::string_view text,
                  std::int64_t firstByte, base::JsonEvents &events);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_READ_JSON_H

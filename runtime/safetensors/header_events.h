//===- header_events.h - The JSON of a header, as tensors -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_SAFETENSORS_HEADER_EVENTS_H
#define MTPLAN_RUNTIME_SAFETENSORS_HEADER_EVENTS_H

#include <string>

#include "base/json_events.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

inline constexpr std::string_view kMetadataKey = "__metadata__";

/// Takes the members of each tensor as they come; what their numbers mean
/// together is not its business. Members that the format does not know are
/// passed over, as the reference does.
class HeaderEvents final : public base::JsonEvents {
public:
  HeaderEvents(const std::string &theFile, SafetensorsHeader &theHeader)
      : file(theFile), header(theHeader) {}

  void scalar(const base::JsonPath &path,
              const base::JsonScalar &value) override;
  void open(const base::JsonPath &path, bool isArray) override;
  void close(const base::JsonPath &path, bool isArray) override;

private:
  enum class Part { metadata, type, shape, offsets, unknown };
  static Part partOf(const base::JsonPath &path);
  [[noreturn]] void refuse(const base::JsonPath &path, const std::string &needs,
                           const std::string &is) const;
  void number(const base::JsonPath &path, Part part,
              const base::JsonScalar &value);
  void finishTensor(const base::JsonPath &path) const;

  const std::string &file;
  SafetensorsHeader &header;
  // Of the tensor that is open.
  bool hasType = false, hasShape = false;
  int offsets = -1; // read; -1: not begun
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_HEADER_EVENTS_H

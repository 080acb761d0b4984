//===- message_header.h - What goes before data between processes ---*- C++
//
//-*-===//
// Plain bytes that identify the call of a message. Names are compared by hash;
// as much of a name as fits is included for error messages.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MESSAGE_HEADER_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MESSAGE_HEADER_H

#include <array>
#include <cstdint>
#include <string>

#include "runtime/communicator/call.h"

namespace mtplan::runtime {

/// Data up to this size travels with the header.
inline constexpr std::int64_t kInlineBytes = 2048;

/// A text, cut to the space in a header.
struct HeaderText {
  std::uint64_t hash = 0; ///< of the full text
  std::array<char, 120> start{};

  HeaderText() = default;
  explicit HeaderText(const std::string &text);
  bool operator==(const HeaderText &other) const { return hash == other.hash; }
  /// Returns `mine` if it is the full text, else the start that was sent.
  std::string text(const std::string &mine) const;
};

struct CallHeader {
  HeaderText group; ///< formatted group
  HeaderText label;
  std::int64_t kind = 0, type = 0, outer = 0, inner = 0, reduction = 0,
               root = 0;

  CallHeader() = default;
  CallHeader(const Call &call, const HeaderText &group);
  Call call(const std::string &mine) const;
};

struct TransferHeader {
  HeaderText label;
  std::int64_t bytes = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MESSAGE_HEADER_H

//===- message_header.cpp - What goes before data between processes
//-----------===//

#include "runtime/communicator/message_header.h"

#include <algorithm>

namespace mtplan::runtime {
namespace {

/// Computes the FNV-1a hash.
std::uint64_t hashOf(const std::string &text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

} // namespace

HeaderText::HeaderText(const std::string &text) : hash(hashOf(text)) {
  std::copy_n(text.begin(), std::min(text.size(), start.size() - 1),
              start.begin());
}

std::string HeaderText::text(const std::string &mine) const {
  return hashOf(mine) == hash ? mine : std::string(start.data());
}

CallHeader::CallHeader(const Call &call, const HeaderText &itsGroup)
    : group(itsGroup), label(call.label),
      kind(static_cast<std::int64_t>(call.kind)),
      type(static_cast<std::int64_t>(call.pieces.type)),
      outer(call.pieces.outer), inner(call.pieces.inner),
      reduction(static_cast<std::int64_t>(call.reduction)), root(call.root) {}

Call CallHeader::call(const std::string &mine) const {
  return {static_cast<CallKind>(kind),
          label.text(mine),
          {static_cast<ElementType>(type), outer, inner},
          static_cast<Reduction>(reduction),
          static_cast<int>(root)};
}

} // namespace mtplan::runtime

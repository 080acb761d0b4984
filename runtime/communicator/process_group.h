//===- process_group.h - Collectives between processes ----------*- C++ -*-===//
//
// In every call, each pair of ranks first exchanges headers, which also carry
// small data. Larger data follow in messages of bounded size, directly between
// the callers' buffers. In an all-reduce of larger data, each rank receives its
// share (reduce.h) of all operands, reduces the share in the same order as
// ThreadGroup, and sends the result to all ranks.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_GROUP_H
#define MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_GROUP_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/communicator/process_link.h"

namespace mtplan::runtime {

/// Data of up to this many bytes is sent within the header's message.
inline constexpr std::int64_t kInlineBytes = 2048;

/// Holds the hash and the start of a text, which fit into a header.
struct HeaderText {
  std::uint64_t hash = 0; ///< hash of the full text
  std::array<char, 120> start{};

  HeaderText() = default;
  explicit HeaderText(const std::string &text);
  bool operator==(const HeaderText &other) const { return hash == other.hash; }
  /// Returns `mine` if its hash matches, else the start of this text.
  std::string text(const std::string &mine) const;
};

/// Encodes a Call in a message. Groups and labels are compared by hash.
struct CallHeader {
  HeaderText group; ///< formatted by wordsOf
  HeaderText label;
  std::int64_t kind = 0, type = 0, outer = 0, inner = 0, reduction = 0,
               root = 0;

  CallHeader() = default;
  CallHeader(const Call &call, const HeaderText &group);
  /// Returns the call, with `mine` as label if the hashes match.
  Call call(const std::string &mine) const;
};

struct TransferHeader {
  HeaderText label;
  std::int64_t bytes = 0;
};

class ProcessGroup final : public CallGroup {
public:
  /// \param channels  the channels between this rank and the group's ranks, by
  /// index in the group
  ProcessGroup(ProcessLink &link, GroupName group, int place,
               std::vector<int> channels);

  int size() const override { return static_cast<int>(name.ranks.size()); }
  int place() const override { return its; }

private:
  /// Returns the memory to send to, or to receive from, the rank at index
  /// `place` of the group. Empty memory means no message.
  using RowsOf = std::function<Rows(int place)>;

  void enter(const Call &call, const RowsOf &inlined);
  const char *inlinedFrom(int place) const;
  void make(const Call &call, const void *in, void *out) override;
  void reduceTo(const Call &call, const void *in, void *out,
                const std::function<bool(int place)> &gets);
  void gather(const Call &call, const void *in, void *out);
  void scatter(const Call &call, const void *in, void *out);
  void exchangePieces(const Call &call, const void *in, void *out);
  void distribute(const Call &call, void *data);
  void exchange(const Call &call, const RowsOf &from, const RowsOf &to);

  ProcessLink &link;
  GroupName name;
  HeaderText shown; ///< the formatted group
  int its;
  std::vector<int> channels;
  std::size_t slot;                 ///< bytes of a header and its inlined data
  std::vector<char> sent, received; ///< by index in the group
  std::vector<char> scratch;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_GROUP_H

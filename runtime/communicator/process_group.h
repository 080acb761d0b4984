//===- process_group.h - The collectives of processes -----------*- C++ -*-===//
//
// Every call starts with a header from each place to each other, which also
// carries small data. Larger data follow in messages of bounded size, straight
// between the callers' buffers. A reduction is an exchange of shares, the same
// ordered sum as among threads, and an exchange of results.
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

/// Identifies a call. Names are compared by hash; as much of a name as fits is
/// included for error messages.
struct CallHeader {
  HeaderText group; ///< formatted group
  HeaderText label;
  std::int64_t kind = 0, type = 0, outer = 0, inner = 0, reduction = 0,
               root = 0;

  CallHeader() = default;
  CallHeader(const Call &call, const HeaderText &group);
  Call call(const std::string &mine) const;
};

/// Precedes the data of a message from one rank to another.
struct TransferHeader {
  HeaderText label;
  std::int64_t bytes = 0;
};

class ProcessGroup final : public CallGroup {
public:
  /// \param channels  by place, the channel between that place and this rank
  ProcessGroup(ProcessLink &link, GroupName group, int place,
               std::vector<int> channels);

  int size() const override { return static_cast<int>(name.ranks.size()); }
  int place() const override { return its; }

private:
  /// Returns the part of a buffer that goes to or comes from a place; no bytes
  /// mean no message.
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
  HeaderText shown; ///< of the group's name
  int its;
  std::vector<int> channels;
  std::size_t slot;                 ///< bytes of a header and its inlined data
  std::vector<char> sent, received; ///< by place
  std::vector<char> scratch;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_GROUP_H

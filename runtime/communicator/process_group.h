//===- process_group.h - The collectives of processes ---------------*- C++
//
//-*-===//
// Every call starts with a header from each place to each other, which also
// carries small data. Larger data follow in messages of bounded size, straight
// between the callers' buffers. A reduction is an exchange of shares, the same
// ordered sum as among threads, and an exchange of results.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_GROUP_H
#define MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_GROUP_H

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/communicator/message_header.h"
#include "runtime/communicator/process_link.h"

namespace mtplan::runtime {

class ProcessGroup final : public Communicator {
public:
  /// \param channels  by place, the channel between that place and this rank
  ProcessGroup(ProcessLink &link, GroupName group, int place,
               std::vector<int> channels);

  int size() const override { return static_cast<int>(name.ranks.size()); }
  int place() const override { return its; }

  void allReduce(const std::string &label, const void *in, void *out,
                 Pieces pieces, Reduction reduction) override;
  void reduce(const std::string &label, const void *in, void *out,
              Pieces pieces, Reduction reduction, int root) override;
  void allGather(const std::string &label, const void *in, void *out,
                 Pieces pieces) override;
  void reduceScatter(const std::string &label, const void *in, void *out,
                     Pieces pieces, Reduction reduction) override;
  void allToAll(const std::string &label, const void *in, void *out,
                Pieces pieces) override;
  void broadcast(const std::string &label, void *data, Pieces pieces,
                 int root) override;
  void barrier(const std::string &label);

private:
  /// Returns the part of a buffer that goes to or comes from a place; no bytes
  /// mean no message.
  using RowsOf = std::function<Rows(int place)>;

  void enter(const Call &call, const RowsOf &inlined);
  const char *inlinedFrom(int place) const;
  void reduceTo(const Call &call, const void *in, void *out,
                const std::function<bool(int place)> &gets);
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

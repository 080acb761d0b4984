//===- process_world.h - Ranks as processes ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_WORLD_H
#define MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_WORLD_H

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "runtime/communicator/process_group.h"
#include "runtime/communicator/process_link.h"
#include "runtime/communicator/tcp_rendezvous.h"

namespace mtplan::runtime {

class ProcessWorld final : public World {
public:
  explicit ProcessWorld(ProcessLink &link);

  int size() const override { return link.size(); }
  int rank() const override { return link.rank(); }

  std::unique_ptr<Communicator> group(const std::string &name,
                                      const std::vector<int> &ranks) override {
    return join({name, ranks});
  }

  void send(const std::string &label, const void *data, std::int64_t bytes,
            int to, int channel) override;
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel) override;

  void barrier(const std::string &label) override { everybody->barrier(label); }

  std::chrono::milliseconds patience() const override {
    return link.patience();
  }
  void check() override { link.listenOnce(); }

  void fail(const std::string &why) noexcept override { link.fail(why); }

  /// Waits until all ranks have ended and all messages have arrived.
  /// \throws CommunicationError if a message was never received
  void end();

private:
  /// Creates a group. Two ranks create the groups that contain both of them in
  /// the same order, so such a group has the same number on both ranks. The
  /// number is the group's channel between the two ranks.
  std::unique_ptr<ProcessGroup> join(GroupName group);
  void checkChannel(const std::string &label, int channel) const;

  ProcessLink &link;
  std::vector<int> shared; ///< number of groups shared with each rank
  std::unique_ptr<ProcessGroup> everybody;
};

/// Runs `body` on a world over `link`, and waits for all other ranks to end.
/// Returns "", or the reason of a failure, which the other ranks have received.
std::string runOver(ProcessLink &link,
                    const std::function<void(World &)> &body) noexcept;

/// Connects to all ranks of `start` and runs `body` as one of them. Returns the
/// reason of a failure, or "". The other ranks have received the reason if they
/// were connected when `body` failed. A rank that has finished waits for the
/// others without a timeout.
/// \param endProcess  called from another thread if this rank still runs
/// `options.ending` after another rank's failure; may be empty
std::string
runTcpRank(const TcpStart &start, const WorldOptions &options,
           const std::function<void(World &)> &body,
           const std::function<void(const std::string &why)> &endProcess = {});

/// Calls runTcpRank for this process. After a failure, all processes print an
/// error message and exit.
void runOverTcp(const TcpStart &start, const WorldOptions &options,
                const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_WORLD_H

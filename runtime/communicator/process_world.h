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

/// One rank's view of a run over its link.
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

  /// Waits until all ranks have ended. All messages have arrived by then.
  void end();

private:
  /// Returns a new group. Ranks ask for shared groups in the same order, so two
  /// ranks number the groups that hold both alike and assign a channel to each
  /// without asking.
  std::unique_ptr<ProcessGroup> join(GroupName group);
  void checkChannel(const std::string &label, int channel) const;

  ProcessLink &link;
  std::vector<int> shared; ///< by rank, number of groups with it so far
  std::unique_ptr<ProcessGroup> everybody;
};

/// Runs `body` on a world over `link` and waits for all others to end. Returns
/// the reason of a failure, which the others have been told; empty if there was
/// none.
std::string runOver(ProcessLink &link,
                    const std::function<void(World &)> &body) noexcept;

/// Runs `body` as one rank of `start`. Returns why it or the rendezvous failed,
/// which the others have been told; empty if neither did. A rank that has ended
/// waits for the others without a limit.
/// \param endProcess  called from another thread if this rank still runs
/// options.ending after another has failed; none: it may go on
std::string
runTcpRank(const TcpStart &start, const WorldOptions &options,
           const std::function<void(World &)> &body,
           const std::function<void(const std::string &why)> &endProcess = {});

/// Does the same on this process, over sockets. If it fails, this process and
/// all others end with the message.
void runOverTcp(const TcpStart &start, const WorldOptions &options,
                const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_WORLD_H

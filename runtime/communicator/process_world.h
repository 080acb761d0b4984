//===- process_world.h - Ranks as processes ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_WORLD_H
#define MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_WORLD_H

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator/process_group.h"
#include "runtime/communicator/process_link.h"

namespace mtplan::runtime {

/// What one rank sees over its link.
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

  /// Waits for all to end. Whatever was sent has arrived by then.
  void end();

private:
  /// Groups are asked for in the same order by all that they share, so two
  /// ranks count those that hold both alike: a channel each, without asking.
  std::unique_ptr<ProcessGroup> join(GroupName group);
  void checkChannel(const std::string &label, int channel) const;

  ProcessLink &link;
  std::vector<int> shared; ///< by rank, groups with it so far
  std::unique_ptr<ProcessGroup> everybody;
};

/// Runs `body` on a world over `link` and waits for all others to end. Returns
/// why it did not end well, which the others have been told; empty if it did.
std::string runOver(ProcessLink &link,
                    const std::function<void(World &)> &body) noexcept;

/// Says on standard error why this rank gives up, and gives the others the time
/// to say theirs.
void sayWhy(const WorldOptions &options, int rank, const std::string &why);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_WORLD_H

//===- mailbox.h - Messages between threads ---------------------*- C++ -*-===//
//
// What was sent to one rank, by sender and channel, in order. Who finds the
// receiver waiting copies straight into its buffer.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MAILBOX_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MAILBOX_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/communicator/hub.h"

namespace mtplan::runtime {

class Mailbox {
public:
  Mailbox(Hub &hub, int owner);

  void send(const std::string &label, const void *data, std::int64_t bytes,
            int from, int channel);
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel);

  /// What to say of the first message that nobody has received.
  std::optional<std::string> leftover();

private:
  struct Message {
    std::string label;
    std::int64_t bytes = 0;
    std::vector<std::byte> data; ///< at least `bytes`
  };
  /// A receiver that waits: until a sender takes its request and delivers, or
  /// queues what it could not deliver since it had not seen the request.
  struct Request {
    const std::string &label;
    void *data;
    std::int64_t bytes;
    enum State { open, taken, delivered, queued };
    std::atomic<State> state{open};
    std::string mismatch; ///< once delivered, if nothing was
  };
  struct Channel {
    std::deque<Message> messages;
    Request *request = nullptr; ///< only while there are no messages
    std::vector<std::vector<std::byte>> spare; ///< memory to use again
  };

  Hub &hub;
  int owner;
  std::mutex mutex;
  std::map<std::pair<int, int>, Channel> channels; ///< by sender and channel
  Gate gate;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MAILBOX_H

//===- mailbox.h - Messages between threads ---------------------*- C++ -*-===//
//
// Holds the messages sent to one rank, by sender and channel, in order. A
// sender that finds the receiver waiting copies straight into its buffer.
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

  /// Describes the first message that was never received, if there is one.
  std::optional<std::string> leftover();

private:
  struct Message {
    std::string label;
    std::int64_t bytes = 0;
    std::vector<std::byte> data; ///< at least `bytes`
  };
  /// A waiting receiver. A sender either takes the request and delivers, or
  /// queues a message because it had not seen the request.
  struct Request {
    const std::string &label;
    void *data;
    std::int64_t bytes;
    enum State { open, taken, delivered, queued };
    std::atomic<State> state{open};
    std::string mismatch; ///< set on delivery if the message does not match
  };
  struct Channel {
    std::deque<Message> messages;
    Request *request = nullptr; ///< only while there are no messages
    std::vector<std::vector<std::byte>> spare; ///< memory for reuse
  };

  Hub &hub;
  int owner;
  std::mutex mutex;
  std::map<std::pair<int, int>, Channel> channels; ///< by sender and channel
  Gate gate;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MAILBOX_H

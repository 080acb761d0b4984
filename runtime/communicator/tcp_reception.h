//===- tcp_reception.h - Accepts connections of ranks -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_RECEPTION_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_RECEPTION_H

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/communicator/tcp_rendezvous.h"
#include "runtime/communicator/tcp_socket.h"

namespace mtplan::runtime {

/// Accepts connections until their Hello has arrived, and closes those that
/// send something else or nothing.
class Reception {
public:
  explicit Reception(Socket listener);

  int port() const { return portOf(listener); }

  struct Guest {
    Socket socket;
    Hello hello; ///< with the right magic; the listener judges the rest
  };
  /// Returns the connections whose Hello has arrived; waits a moment if there
  /// are none.
  std::vector<Guest> receive();

  /// Describes the connections that were no ranks; "" if there were none.
  std::string wordsOfStrangers() const;

private:
  struct Pending {
    Socket socket;
    Hello hello;
    std::size_t have = 0; ///< bytes received
    Until until;
  };

  void accept();
  static bool advance(Pending &one);
  void turnAway(const Pending &one);

  Socket listener;
  std::vector<Pending> pending;
  int strangers = 0;
  std::string lastStranger; ///< address of the last one
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_RECEPTION_H

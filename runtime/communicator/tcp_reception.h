//===- tcp_reception.h - Who connects, and says so --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_RECEPTION_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_RECEPTION_H

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/communicator/tcp_meeting.h"
#include "runtime/communicator/tcp_socket.h"

namespace mtplan::runtime {

/// Takes in connections to a listener until their Hello is there. Those that
/// say something else, or nothing, are closed.
class Reception {
public:
  explicit Reception(Socket listener);

  int port() const { return portOf(listener); }

  struct Guest {
    Socket socket;
    Hello hello; ///< with the right magic; the rest is for the host to judge
  };
  /// Those whose Hello has come by now; waits a moment if there are none.
  std::vector<Guest> receive();

  /// What to say of those that were no ranks; "" if there were none.
  std::string wordsOfStrangers() const;

private:
  struct Pending {
    Socket socket;
    Hello hello;
    std::size_t have = 0; ///< bytes of it
    Until until;
  };

  void accept();
  static bool advance(Pending &one);
  void turnAway(const Pending &one);

  Socket listener;
  std::vector<Pending> pending;
  int strangers = 0;
  std::string lastStranger; ///< its address
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_RECEPTION_H

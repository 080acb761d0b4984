//===- neighbours.cpp - Processes on this machine -------------------------===//

#include "runtime/communicator/neighbours.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace mtplan::runtime {
namespace {

struct Address {
  std::array<char, 256> machine{}; ///< its name
  ino_t names =
      0; ///< process namespace: containers number processes differently
  dev_t device = 0;
  pid_t process = 0;
};

Address ownAddress() {
  Address own;
  gethostname(own.machine.data(), own.machine.size() - 1);
  struct stat status = {};
  if (stat("/proc/self/ns/pid", &status) == 0) {
    own.names = status.st_ino;
    own.device = status.st_dev;
    own.process = getpid();
  }
  return own;
}

} // namespace

Neighbours::Neighbours(MPI_Comm all) {
  int ranks = 0;
  MPI_Comm_size(all, &ranks);
  const Address own = ownAddress();
  std::vector<Address> addresses(static_cast<std::size_t>(ranks));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, addresses.data(), sizeof own,
                MPI_BYTE, all);
  for (const Address &each : addresses)
    processes.push_back(each.machine == own.machine &&
                                each.names == own.names &&
                                each.device == own.device
                            ? each.process
                            : 0);
}

bool Neighbours::hasDied(int rank) const {
  const pid_t process = processes[static_cast<std::size_t>(rank)];
  return process > 0 && kill(process, 0) != 0 && errno == ESRCH;
}

} // namespace mtplan::runtime

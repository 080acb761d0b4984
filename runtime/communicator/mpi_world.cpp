//===- mpi_world.cpp - Ranks as MPI processes -----------------------------===//

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/communicator/mpi_module.h"
#include "runtime/communicator/process_world.h"

namespace mtplan::runtime {
namespace {

/// Lists the processes of an MPI communicator that run on this machine.
class Neighbours {
public:
  /// All ranks of `all` must call this.
  explicit Neighbours(MPI_Comm all);

  /// Returns whether a rank's process has died. Returns false for processes on
  /// other machines.
  bool hasDied(int rank) const;

private:
  std::vector<pid_t> processes; ///< process IDs by rank; 0: on another machine
};

/// Implements a wire over MPI by polling point-to-point messages. MPI's own
/// collectives and waits hang if a rank is missing, and do not report
/// mismatched calls.
class MpiWire final : public Wire {
public:
  /// MPI must be initialized.
  MpiWire();

  int rank() const override { return its; }
  int size() const override { return ranks; }
  int tags() const override { return highestTag; }
  bool servesThreads() const override;

  Ticket send(const Rows &from, int to, int tag) override;
  Ticket receive(const Rows &to, int from, int tag) override;
  void progress() override {}
  bool isThrough(Ticket &ticket) override;

  void sendControl(int to, int topic, const std::string &text) override;
  bool isAllControlSent() override;
  std::optional<Control> nextControl() override;
  std::optional<Stray> stray() override;

  std::string whyLost(int /*rank*/) const override { return {}; }
  bool hasDied(int rank) const override { return neighbours->hasDied(rank); }
  bool rest(int idle) const override;

private:
  MPI_Comm data = MPI_COMM_NULL, control = MPI_COMM_NULL;
  int its = 0, ranks = 1, highestTag = 32767;
  std::optional<Neighbours> neighbours;
  /// Holds the control texts being sent. MPI uses the addresses of the list's
  /// elements, so elements must not move.
  std::list<std::pair<MPI_Request, std::string>> controls;
};

struct Address {
  std::array<char, 256> machine{}; ///< host name
  /// Identifies the process namespace: containers number processes separately.
  ino_t names = 0;
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

void check(int code, int peer) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError("rank " + std::to_string(peer) +
                           " cannot be reached: " + text);
}

// An MPI_Request is an integer in MPICH and a pointer in Open MPI.
static_assert(sizeof(MPI_Request) <= sizeof(Wire::Ticket::handle));

Wire::Ticket ticketOf(MPI_Request request, int peer) {
  Wire::Ticket ticket = {0, peer};
  std::memcpy(&ticket.handle, &request, sizeof(MPI_Request));
  return ticket;
}

/// Holds the MPI datatype of Rows for the duration of a call.
class RowType {
public:
  explicit RowType(const Rows &rows) {
    if (rows.rows == 1 || rows.stride == rows.bytes) {
      count = static_cast<int>(rows.rows * rows.bytes);
      return;
    }
    MPI_Type_create_hvector(static_cast<int>(rows.rows),
                            static_cast<int>(rows.bytes), rows.stride, MPI_BYTE,
                            &type);
    MPI_Type_commit(&type);
  }
  ~RowType() {
    if (type != MPI_BYTE)
      MPI_Type_free(&type);
  }
  RowType(const RowType &) = delete;
  RowType &operator=(const RowType &) = delete;

  MPI_Datatype type = MPI_BYTE;
  int count = 1;
};

MpiWire::MpiWire() {
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  for (MPI_Comm comm : {data, control})
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(data, &its);
  MPI_Comm_size(data, &ranks);
  int *highest = nullptr, found = 0;
  MPI_Comm_get_attr(data, MPI_TAG_UB, &highest, &found);
  if (found)
    highestTag = *highest;
  neighbours.emplace(control);
}

bool MpiWire::servesThreads() const {
  int threads = MPI_THREAD_SINGLE;
  MPI_Query_thread(&threads);
  return threads >= MPI_THREAD_SERIALIZED;
}

Wire::Ticket MpiWire::send(const Rows &from, int to, int tag) {
  const RowType type(from);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(from.base, type.count, type.type, to, tag, data, &request),
        to);
  return ticketOf(request, to);
}

Wire::Ticket MpiWire::receive(const Rows &to, int from, int tag) {
  const RowType type(to);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(to.base, type.count, type.type, from, tag, data, &request),
        from);
  return ticketOf(request, from);
}

bool MpiWire::isThrough(Ticket &ticket) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &ticket.handle, sizeof(MPI_Request));
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), ticket.peer);
  ticket = ticketOf(request, ticket.peer);
  return done != 0;
}

void MpiWire::sendControl(int to, int topic, const std::string &text) {
  controls.emplace_back(MPI_REQUEST_NULL, text.substr(0, kControlBytes));
  auto &[request, kept] = controls.back();
  MPI_Isend(kept.data(), static_cast<int>(kept.size()), MPI_CHAR, to, topic,
            control, &request);
}

bool MpiWire::isAllControlSent() {
  bool all = true;
  for (auto &[request, text] : controls) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    all = all && done;
  }
  return all;
}

std::optional<Wire::Control> MpiWire::nextControl() {
  int there = 0, length = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control, &there, &status) !=
          MPI_SUCCESS ||
      !there)
    return std::nullopt;
  char text[kControlBytes];
  MPI_Get_count(&status, MPI_CHAR, &length);
  MPI_Recv(text, length, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, control,
           MPI_STATUS_IGNORE);
  return Control{status.MPI_SOURCE, status.MPI_TAG, std::string(text, length)};
}

std::optional<Wire::Stray> MpiWire::stray() {
  int there = 0, length = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, data, &there, &status);
  if (!there)
    return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &length);
  Stray found = {std::vector<char>(length), status.MPI_SOURCE, status.MPI_TAG};
  MPI_Recv(found.message.data(), length, MPI_BYTE, status.MPI_SOURCE,
           status.MPI_TAG, data, MPI_STATUS_IGNORE);
  return found;
}

bool MpiWire::rest(int idle) const {
  constexpr int kIdleUntilYield = 100, kIdleUntilSleep = 2000;
  if (idle < kIdleUntilYield)
    pauseProcessor();
  else if (idle < kIdleUntilSleep)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return idle >= kIdleUntilSleep;
}

/// Ends this process after `time` (below one second) if MPI_Abort does not end
/// it.
void endSoon(std::chrono::milliseconds time) {
  struct sigaction action = {};
  action.sa_handler = [](int) { _exit(EXIT_FAILURE); };
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer = {};
  timer.it_value.tv_usec = 1000 * time.count();
  setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Prints why this rank fails, lets other ranks print, and ends all processes.
[[noreturn]] void endAll(const WorldOptions &options, int rank,
                         const std::string &why) {
  std::fprintf(stderr, "rank %d: %s\n", rank, why.c_str());
  std::fflush(nullptr);
  std::this_thread::sleep_for(options.ending);
  endSoon(std::chrono::milliseconds(300));
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

} // namespace

MpiBuild builtMpi() { return kMpiOfBuild; }

void runUnderMpi(int ranks, const WorldOptions &options,
                 const std::function<void(World &)> &body) {
  // With single-copy transfers, Open MPI silently ends a process that reads the
  // memory of a dead process. With shared memory the process waits and reports
  // the dead rank. In a virtual machine with two cores, shared memory is also
  // twice as fast.
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", /*overwrite=*/0);
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MpiWire wire;
  std::optional<ProcessLink> link(std::in_place, wire, options);
  if (link->size() != ranks)
    endAll(options, link->rank(),
           "was started as one of " + std::to_string(ranks) +
               " processes, but MPI knows of " + std::to_string(link->size()) +
               ": start them with this MPI's mpirun, or with srun");
  listenForTermination();
  if (const std::string why = runOver(*link, body); !why.empty())
    endAll(options, link->rank(), why);
  link.reset();
  MPI_Finalize();
}

} // namespace mtplan::runtime

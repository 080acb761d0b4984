//===- mpi_wire.cpp - A wire over MPI -------------------------------------===//

#include "runtime/communicator/mpi_wire.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/communicator/communicator.h"
#include "runtime/communicator/gate.h"

namespace mtplan::runtime {
namespace {

void check(int code, int peer) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError("rank " + std::to_string(peer) +
                           " cannot be reached: " + text);
}

// A request is a number in one MPI and a pointer in another.
static_assert(sizeof(MPI_Request) <= sizeof(Wire::Ticket::handle));

Wire::Ticket ticketOf(MPI_Request request, int peer) {
  Wire::Ticket ticket = {0, peer};
  std::memcpy(&ticket.handle, &request, sizeof(MPI_Request));
  return ticket;
}

/// Owns a datatype while a request is started with it.
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

} // namespace

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

void MpiWire::tell(int to, int topic, const std::string &text) {
  told.emplace_back(MPI_REQUEST_NULL, text.substr(0, kToldBytes));
  auto &[request, kept] = told.back();
  MPI_Isend(kept.data(), static_cast<int>(kept.size()), MPI_CHAR, to, topic,
            control, &request);
}

bool MpiWire::isAllTold() {
  bool all = true;
  for (auto &[request, text] : told) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    all = all && done;
  }
  return all;
}

std::optional<Wire::Told> MpiWire::hear() {
  int there = 0, length = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control, &there, &status) !=
          MPI_SUCCESS ||
      !there)
    return std::nullopt;
  char text[kToldBytes];
  MPI_Get_count(&status, MPI_CHAR, &length);
  MPI_Recv(text, length, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, control,
           MPI_STATUS_IGNORE);
  return Told{status.MPI_SOURCE, status.MPI_TAG, std::string(text, length)};
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

} // namespace mtplan::runtime

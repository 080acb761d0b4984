//===- nccl_clique.h - State that a communicator's ranks share --*- C++ -*-===//

#ifndef MTPLAN_TESTS_EMULATOR_NCCL_CLIQUE_H
#define MTPLAN_TESTS_EMULATOR_NCCL_CLIQUE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <nccl.h>

namespace mtplan::emulator {

enum class Kind {
  allReduce,
  reduce,
  allGather,
  reduceScatter,
  broadcast,
  send,
  receive
};

/// Describes a call of NCCL.
struct Operation {
  Kind kind = Kind::allReduce;
  const void *in = nullptr;
  void *out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduction = ncclSum;
  /// Names the other rank of a message, or the root of a reduce or broadcast.
  int peer = 0;

  bool isTransfer() const {
    return kind == Kind::send || kind == Kind::receive;
  }
  bool matches(const Operation &other) const {
    return kind == other.kind && count == other.count && type == other.type &&
           reduction == other.reduction && peer == other.peer;
  }
};

/// Queues an operation on a stream, or adds it to the open group (nccl.cpp).
ncclResult_t callNccl(ncclComm_t handle, cudaStream_t stream,
                      const Operation &operation);

/// Describes memory that a call reads or writes.
struct Touched {
  const void *data = nullptr;
  std::size_t bytes = 0;
  bool isWritten = false;
};
/// Returns the memory that an operation accesses on `rank`, one of `ranks`.
std::vector<Touched> touchedBy(const Operation &operation, int rank, int ranks);

/// Holds an operation and its number, which all participating ranks share.
struct Numbered {
  Operation operation;
  std::uint64_t number = 0;
};

/// Holds the state that all ranks of a communicator share.
class Clique {
public:
  explicit Clique(int ranks) : devices(ranks, -1), launched(ranks, 0) {}

  int size() const { return static_cast<int>(devices.size()); }

  /// Notes that the device of `rank` has reached the operation.
  void arrive(int rank, const Numbered &one);
  /// Returns whether the operation can run or has run: all ranks that
  /// participate have reached it with matching calls, and no rank had aborted.
  bool isReady(int rank, const Numbered &one);
  /// Executes the operation for all ranks, unless it has been executed.
  void complete(int rank, const Numbered &one);

  std::vector<int> devices; ///< device of each rank; -1: not initialised
  int joined = 0;
  std::vector<int> launched; ///< number of launches so far, by rank
  int finalised = 0;
  bool aborted = false; ///< whether any rank has aborted the communicator

private:
  /// Holds the calls of a collective, by rank.
  struct Collective {
    std::map<int, Operation> calls;
    bool done = false;
  };
  struct Message {
    std::optional<Operation> sent, received;
    bool done = false;
  };

  Message &messageOf(int rank, const Numbered &one);

  std::map<std::uint64_t, Collective> collectives;
  /// Holds messages by sender, receiver and number.
  std::map<std::tuple<int, int, std::uint64_t>, Message> messages;
};

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_NCCL_CLIQUE_H

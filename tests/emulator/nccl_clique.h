//===- nccl_clique.h - What ranks of a communicator do together -*- C++ -*-===//

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

/// A call of NCCL.
struct Operation {
  Kind kind = Kind::allReduce;
  const void *in = nullptr;
  void *out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduction = ncclSum;
  int peer = 0; ///< or root

  bool isTransfer() const {
    return kind == Kind::send || kind == Kind::receive;
  }
  bool matches(const Operation &other) const {
    return kind == other.kind && count == other.count && type == other.type &&
           reduction == other.reduction && peer == other.peer;
  }
};

/// Puts it on the stream, or with the others of a group of calls (nccl.cpp).
ncclResult_t callNccl(ncclComm_t handle, cudaStream_t stream,
                      const Operation &operation);

/// What a call reads or writes.
struct Touched {
  const void *data = nullptr;
  std::size_t bytes = 0;
  bool isWritten = false;
};
/// Of a rank, one of `ranks`.
std::vector<Touched> touchedBy(const Operation &operation, int rank, int ranks);

/// A collective of a communicator, or a message of two ranks: the others have
/// the same number.
struct Numbered {
  Operation operation;
  std::uint64_t number = 0;
};

/// What all ranks of a communicator share.
class Clique {
public:
  explicit Clique(int ranks) : devices(ranks, -1), launched(ranks, 0) {}

  int size() const { return static_cast<int>(devices.size()); }

  /// The rank's device has come to it.
  void arrive(int rank, const Numbered &one);
  /// Whether all have come to it and do the same, before one was aborted.
  bool isMet(int rank, const Numbered &one);
  /// Does all ranks' part of it, the first time.
  void complete(int rank, const Numbered &one);

  std::vector<int> devices; ///< by rank; -1: has not come
  int joined = 0;
  std::vector<int> launched; ///< how many launches, by rank
  int finalised = 0;
  bool aborted = false; ///< one of them

private:
  /// What each rank came with.
  struct Meeting {
    std::map<int, Operation> came;
    bool done = false;
  };
  struct Message {
    std::optional<Operation> sent, received;
    bool done = false;
  };

  Message &messageOf(int rank, const Numbered &one);

  std::map<std::uint64_t, Meeting> meetings;
  /// By sender, receiver and number.
  std::map<std::tuple<int, int, std::uint64_t>, Message> messages;
};

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_NCCL_CLIQUE_H

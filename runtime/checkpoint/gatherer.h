//===- gatherer.h - Gathers the bytes that a rank writes --------*- C++ -*-===//
//
// Writing long runs of bytes is several times as fast as writing pieces of
// rows. Therefore each rank writes its own shard of a tensor if every shard is
// one long run or the whole tensor. Other tensors are divided into parts. A
// part has at most max(bytes of the state / number of ranks, kLongRun) bytes.
// For each part, one of the ranks that hold the tensor gathers the pieces from
// the other ranks and writes the part.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_GATHERER_H
#define MTPLAN_RUNTIME_CHECKPOINT_GATHERER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/checkpoint/model_state.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Writing runs of more than this many bytes is hardly faster.
inline constexpr std::int64_t kLongRun = std::int64_t{256} << 10;

/// Describes a box (hyperrectangle) of a tensor. Its rank contributes the box
/// to the checkpoint.
struct OwnedBox {
  int rank = 0;
  std::int64_t offset = 0; ///< bytes into the rank's snapshot
  TensorView view;
};

/// Describes the elements [first, first + count) of a tensor of the state.
struct Part {
  int tensor = 0; ///< index into ModelState::tensors
  std::int64_t first = 0, count = 0;
  int writer = 0; ///< the rank that writes the part
  bool operator==(const Part &) const = default;
};

/// Divides the state into parts and assigns their writers. The parts cover
/// every element once, are sorted by tensor and first element, and are equal on
/// all ranks.
/// \param boxes  all ranks' boxes, by tensor; they cover each element once
std::vector<Part> assignParts(const ModelState &state,
                              const std::vector<std::vector<OwnedBox>> &boxes,
                              int ranks, std::int64_t longRun = kLongRun);

/// Sends parts of the ranks' snapshots to the ranks that write these parts. A
/// round sends at most kRound bytes to each writer, which bounds the memory of
/// messages in flight. Ranks wait for each other here, but never for a disk.
class Gatherer {
public:
  /// Limits the bytes that a writer gathers in a round.
  static constexpr std::int64_t kRound = std::int64_t{8} << 20;
  /// Limits the bytes of a message, so that it fits a CPU cache.
  static constexpr std::int64_t kPiece = std::int64_t{1} << 20;

  /// All ranks construct their gatherers together. `plan` and `state` must
  /// outlive the gatherer.
  Gatherer(const Plan &plan, const ModelState &state, World &world,
           std::int64_t longRun = kLongRun, std::int64_t roundBytes = kRound);

  const std::vector<Part> &parts() const { return assigned; }
  /// Returns the parts that this rank writes, in the order of parts().
  const std::vector<Part> &mine() const { return own; }
  /// Allocates the memory of gather() in advance.
  void allocate() { gathered.resize(gatheredBytes); }
  /// Sends and receives all parts. Every rank must call this, from a background
  /// thread.
  /// \param snapshot  this rank's owned slices, concatenated
  void gather(std::span<const std::byte> snapshot);
  /// Returns a pointer to the bytes of mine()[i]. The pointer leads into
  /// `snapshot`, or to memory that is valid until the next gather().
  const std::byte *data(std::size_t i,
                        std::span<const std::byte> snapshot) const;

private:
  /// Describes a message, or a copy if sender and receiver are both this rank.
  struct Move {
    int peer = 0;
    std::int64_t round = 0;
    Part piece;             ///< the elements, and their writer
    std::int64_t from = 0;  ///< offset in the sender's snapshot, bytes
    std::int64_t bytes = 0; ///< size of the message
    // Only the receiver uses the following members.
    TensorView view;        ///< the sender's box
    std::int64_t begin = 0; ///< first element of the box that is sent
    std::int64_t to = 0;    ///< offset of the piece in `gathered`, bytes
  };

  using Boxes = std::vector<std::vector<OwnedBox>>;
  void planMoves(const Boxes &boxes, std::int64_t roundBytes);
  void addMoves(const Part &piece, std::int64_t round, std::int64_t to,
                const std::vector<OwnedBox> &owners);
  std::string labelOf(const Move &move) const;
  void place(const Move &move, const std::byte *received);

  const ModelState &state;
  World &world;
  int channel = 0; ///< a channel that the plan does not use
  std::unique_ptr<Communicator> allRanks;
  std::vector<Part> assigned, own;
  /// Locates a part that this rank writes. `offset` is in the rank's snapshot
  /// if the part is one run there, otherwise in `gathered`.
  struct Source {
    bool isDirect = false; ///< the part is in the snapshot
    std::int64_t offset = 0;
  };
  std::vector<Source> sources;
  std::vector<Move> sends, receives; ///< sorted by round
  std::int64_t rounds = 0;           ///< largest number of rounds of a writer
  std::size_t gatheredBytes = 0;
  std::vector<std::byte> gathered, message;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_GATHERER_H

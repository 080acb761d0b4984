//===- gatherer.h - Brings together what a rank writes ----------*- C++ -*-===//
//
// A file takes long runs of bytes several times as fast as pieces of rows. A
// rank therefore writes a shard that is one long run itself. A tensor that is
// split finer is gathered by one of the ranks that have some of it, and written
// as a whole. No rank gathers more of a tensor than an equal share of the
// state.
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

/// The bytes of a run beyond which longer ones are hardly faster to write.
inline constexpr std::int64_t kLongRun = std::int64_t{256} << 10;

/// The box of a tensor that a rank owns.
struct OwnedBox {
  int rank = 0;
  std::int64_t offset = 0; ///< bytes, in the rank's snapshot
  TensorView view;
};

/// Elements [first, first + count) of a tensor of the state.
struct Part {
  int tensor = 0;
  std::int64_t first = 0, count = 0;
  int writer = 0;
  bool operator==(const Part &) const = default;
};

/// Divides the state into parts that hold every element once, and assigns each
/// part to a rank that writes it. The parts are sorted by tensor and first
/// element, and are the same on all ranks.
/// \param boxes  by tensor; all boxes of a tensor hold every element once
std::vector<Part> deal(const ModelState &state,
                       const std::vector<std::vector<OwnedBox>> &boxes,
                       int ranks, std::int64_t longRun = kLongRun);

/// Sends the parts of each rank's snapshot to the ranks that write them, in
/// rounds of at most kRound bytes for each writer, so that little is in flight
/// at a time. Ranks wait for each other here, but only for memory and never for
/// a disk.
class Gatherer {
public:
  /// Bytes of a writer's round, and of a message, which fits a processor's
  /// cache.
  static constexpr std::int64_t kRound = std::int64_t{8} << 20;
  static constexpr std::int64_t kPiece = std::int64_t{1} << 20;

  /// Collective. `plan` and `state` outlive it.
  Gatherer(const Plan &plan, const ModelState &state, World &world,
           std::int64_t longRun = kLongRun, std::int64_t roundBytes = kRound);

  /// Returns the parts that all ranks write.
  const std::vector<Part> &parts() const { return dealt; }
  /// Returns the parts that this rank writes, in the same order.
  const std::vector<Part> &mine() const { return own; }
  /// Allocates the memory that gather() would otherwise allocate.
  void takeRoom() { gathered.resize(gatheredBytes); }
  /// Collective. Every rank calls it from a separate thread.
  /// \param snapshot  this rank's owned slices, one after another
  void gather(std::span<const std::byte> snapshot);
  /// Returns the bytes of mine()[i]: in the snapshot, or valid until the next
  /// gather().
  const std::byte *data(std::size_t i,
                        std::span<const std::byte> snapshot) const;

private:
  /// A message, or a copy where both ends are this rank.
  struct Move {
    int peer = 0;
    std::int64_t round = 0;
    Part piece;             ///< of a part, for its writer
    std::int64_t from = 0;  ///< bytes, in the sender's snapshot
    std::int64_t bytes = 0; ///< there
    // Only the receiver uses the following members.
    TensorView view;        ///< of the sender's box
    std::int64_t begin = 0; ///< first element that is sent, within the box
    std::int64_t to = 0;    ///< bytes before the piece in `gathered`
  };

  using Boxes = std::vector<std::vector<OwnedBox>>;
  void planMoves(const Boxes &boxes, std::int64_t roundBytes);
  void addMoves(const Part &piece, std::int64_t round, std::int64_t to,
                const std::vector<OwnedBox> &owners);
  std::string labelOf(const Move &move) const;
  void place(const Move &move, const std::byte *received);

  const ModelState &state;
  World &world;
  int channel = 0; ///< no instruction of the plan uses it
  std::unique_ptr<Communicator> allRanks;
  std::vector<Part> dealt, own;
  /// The bytes before an own part: in the snapshot if it is one run there,
  /// otherwise in `gathered`.
  struct Source {
    bool isDirect = false;
    std::int64_t offset = 0;
  };
  std::vector<Source> sources;
  std::vector<Move> sends, receives; ///< by round
  std::int64_t rounds = 0;           ///< of the writer with most
  std::size_t gatheredBytes = 0;
  std::vector<std::byte> gathered, message;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_GATHERER_H

//===- gatherer.h - Brings together what a rank writes ----------*- C++ -*-===//
//
// Every rank sends what others write of its snapshot and receives what it
// writes itself, in rounds of at most kRound bytes a writer, so that little is
// under way at a time. Ranks wait for each other here, but for memory alone,
// never for a disk.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_GATHERER_H
#define MTPLAN_RUNTIME_CHECKPOINT_GATHERER_H

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/deal.h"
#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

class Gatherer {
public:
  /// Bytes. What is under way is one round of every writer, in messages that
  /// fit a processor's cache.
  static constexpr std::int64_t kRound = std::int64_t{8} << 20;
  static constexpr std::int64_t kPiece = std::int64_t{1} << 20;

  /// Collective. `plan` and `state` outlive it.
  Gatherer(const Plan &plan, const ModelState &state, World &world,
           std::int64_t longRun = kLongRun, std::int64_t roundBytes = kRound);

  /// What all ranks write.
  const std::vector<Part> &parts() const { return dealt; }
  /// What this one does, in the same order.
  const std::vector<Part> &mine() const { return own; }
  /// Takes the memory that gather() needs, which else takes it itself.
  void takeRoom() { gathered.resize(gatheredBytes); }
  /// Collective; of a thread of its own on all ranks.
  /// \param snapshot  this rank's owned slices, one after another
  void gather(std::span<const std::byte> snapshot);
  /// Of mine()[i]; in the snapshot, or valid until the next gather().
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
    // For the receiver:
    TensorView view;        ///< of the sender's box
    std::int64_t begin = 0; ///< of what is sent, an element of the box
    std::int64_t to = 0;    ///< bytes, in `gathered`, of the piece's first
  };

  using Boxes = std::vector<std::vector<OwnedBox>>;
  void planMoves(const Boxes &boxes, std::int64_t roundBytes);
  void addMoves(const Part &piece, std::int64_t round, std::int64_t to,
                const std::vector<OwnedBox> &owners);
  std::string labelOf(const Move &move) const;
  void place(const Move &move, const std::byte *received);

  const ModelState &state;
  World &world;
  int channel = 0; ///< that no instruction of the plan uses
  std::unique_ptr<Communicator> allRanks;
  std::vector<Part> dealt, own;
  /// By own part: bytes before it in the snapshot if it is one run there, else
  /// in `gathered`.
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

//===- gatherer.cpp - Gathers the bytes that a rank writes ----------------===//

#include "runtime/checkpoint/gatherer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <variant>

#include "base/index.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/model_state.h"

namespace mtplan::runtime {

using base::sized;

//===----------------------------------------------------------------------===//
// Parts and their writers
//===----------------------------------------------------------------------===//

namespace {

class PartAssigner {
public:
  PartAssigner(const ModelState &theState, int ranks, std::int64_t theLongRun)
      : state(theState), longRun(theLongRun), load(sized(ranks), 0) {
    std::int64_t all = 0;
    for (const StateTensor &tensor : state.tensors)
      all += tensor.bytes();
    share = std::max(longRun, (all + ranks - 1) / ranks);
  }

  /// Returns whether each box is empty, a single long run or the whole tensor.
  bool areLong(int tensor, const std::vector<OwnedBox> &boxes) const {
    const StateTensor &whole = at(tensor);
    return std::ranges::all_of(boxes, [&](const OwnedBox &box) {
      const BoxRuns runs(box.view, whole.shape);
      return runs.count() == 0 ||
             (runs.count() == 1 &&
              (runs.length() * bytesOf(whole.type) >= longRun ||
               runs.length() * bytesOf(whole.type) == whole.bytes()));
    });
  }

  void giveToOwners(int tensor, const std::vector<OwnedBox> &boxes) {
    for (const OwnedBox &box : boxes)
      forEachRun(box.view, at(tensor).shape,
                 [&](std::int64_t first, std::int64_t, std::int64_t count) {
                   give({tensor, first, count, box.rank});
                 });
  }

  void giveInShares(int tensor, const std::vector<OwnedBox> &boxes) {
    const StateTensor &whole = at(tensor);
    const std::int64_t size = bytesOf(whole.type);
    const std::int64_t elements = whole.bytes() / size;
    const std::int64_t pieces = (whole.bytes() + share - 1) / share;
    for (std::int64_t k = 0; k < pieces; ++k) {
      const std::int64_t first =
          elements / pieces * k + std::min(k, elements % pieces);
      const std::int64_t count =
          elements / pieces + (k < elements % pieces ? 1 : 0);
      int least = boxes.front().rank;
      for (const OwnedBox &box : boxes)
        if (loadOf(box.rank) < loadOf(least))
          least = box.rank;
      give({tensor, first, count, least});
    }
  }

  std::vector<Part> parts;

private:
  const StateTensor &at(int tensor) const {
    return state.tensors[sized(tensor)];
  }
  std::int64_t &loadOf(int rank) { return load[sized(rank)]; }
  void give(const Part &part) {
    parts.push_back(part);
    loadOf(part.writer) += part.count * bytesOf(at(part.tensor).type);
  }

  const ModelState &state;
  std::int64_t longRun, share = 0;
  std::vector<std::int64_t> load; ///< bytes to write, by rank
};

} // namespace

std::vector<Part> assignParts(const ModelState &state,
                              const std::vector<std::vector<OwnedBox>> &boxes,
                              int ranks, std::int64_t longRun) {
  PartAssigner assigner(state, ranks, longRun);
  std::vector<int> fine;
  for (int t = 0; t < static_cast<int>(state.tensors.size()); ++t) {
    const std::vector<OwnedBox> &owned = boxes[sized(t)];
    if (assigner.areLong(t, owned))
      assigner.giveToOwners(t, owned);
    else
      fine.push_back(t);
  }
  // Larger tensors are assigned first (LPT), so that the smaller tensors
  // balance the load.
  std::ranges::stable_sort(fine, std::greater(), [&](int t) {
    return state.tensors[sized(t)].bytes();
  });
  for (const int t : fine)
    assigner.giveInShares(t, boxes[sized(t)]);
  std::ranges::sort(assigner.parts, {}, [](const Part &part) {
    return std::pair(part.tensor, part.first);
  });
  return std::move(assigner.parts);
}

//===----------------------------------------------------------------------===//
// Moves between ranks
//===----------------------------------------------------------------------===//

namespace {

int channelBesides(const Plan &plan) {
  int channel = 0;
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *transfer = std::get_if<Transfer>(&instruction.what))
          channel = std::max(channel, transfer->channel + 1);
  return channel;
}

std::vector<std::vector<OwnedBox>> boxesOf(const Plan &plan,
                                           const ModelState &state) {
  std::vector<std::vector<OwnedBox>> boxes(state.tensors.size());
  for (int rank = 0; rank < plan.ranks; ++rank) {
    std::int64_t offset = 0;
    for (StateSlice &slice :
         ownedSlices(plan, state, RankCoordinates(plan, rank))) {
      const std::int64_t bytes = slice.bytes();
      boxes[sized(slice.tensor)].push_back(
          {rank, offset, std::move(slice.view)});
      offset += bytes;
    }
  }
  for (std::size_t t = 0; t < boxes.size(); ++t) {
    const StateTensor &tensor = state.tensors[t];
    std::int64_t bytes = 0;
    for (const OwnedBox &box : boxes[t]) {
      const BoxRuns runs(box.view, tensor.shape);
      bytes += runs.count() * runs.length() * bytesOf(tensor.type);
    }
    if (bytes != tensor.bytes())
      throw CheckpointError(tensor.name + ": the plan's ranks write " +
                            std::to_string(bytes) + " bytes of its " +
                            std::to_string(tensor.bytes()));
  }
  return boxes;
}

} // namespace

Gatherer::Gatherer(const Plan &plan, const ModelState &theState,
                   World &theWorld, std::int64_t longRun,
                   std::int64_t roundBytes)
    : state(theState), world(theWorld), channel(channelBesides(plan)) {
  allRanks = world.allRanks("checkpoint: pieces");
  const Boxes boxes = boxesOf(plan, state);
  assigned = assignParts(state, boxes, world.size(), longRun);
  planMoves(boxes, roundBytes);
}

// Divides parts into messages and assigns them to rounds. A part that is one
// run in its writer's own snapshot needs no message.
void Gatherer::planMoves(const Boxes &boxes, std::int64_t roundBytes) {
  std::vector<std::int64_t> filled(sized(world.size()), 0);
  for (const Part &part : assigned) {
    const StateTensor &tensor = state.tensors[sized(part.tensor)];
    const std::vector<OwnedBox> &owners = boxes[sized(part.tensor)];
    const std::int64_t size = bytesOf(tensor.type);
    Source source;
    for (const OwnedBox &box : owners)
      if (box.rank == part.writer)
        forEachRunWithin(
            box.view, tensor.shape, part.first, part.count,
            [&](std::int64_t, std::int64_t inBox, std::int64_t count) {
              if (count == part.count)
                source = {true, box.offset + inBox * size};
            });
    std::int64_t &before = filled[sized(part.writer)];
    if (!source.isDirect) {
      source.offset = before;
      for (std::int64_t done = 0; done < part.count;) {
        const std::int64_t room =
            std::min(kPiece, roundBytes - before % roundBytes);
        const std::int64_t count =
            std::min(part.count - done, std::max<std::int64_t>(1, room / size));
        addMoves({part.tensor, part.first + done, count, part.writer},
                 before / roundBytes, before, owners);
        rounds = std::max(rounds, before / roundBytes + 1);
        before += count * size;
        done += count;
      }
    }
    if (part.writer == world.rank()) {
      own.push_back(part);
      sources.push_back(source);
    }
  }
  gatheredBytes = sized(filled[sized(world.rank())]);
  const auto byRound = [](const Move &move) { return move.round; };
  std::ranges::stable_sort(sends, {}, byRound);
  std::ranges::stable_sort(receives, {}, byRound);
}

void Gatherer::addMoves(const Part &piece, std::int64_t round, std::int64_t to,
                        const std::vector<OwnedBox> &owners) {
  const StateTensor &tensor = state.tensors[sized(piece.tensor)];
  const std::int64_t size = bytesOf(tensor.type);
  for (const OwnedBox &box : owners) {
    const bool isMine = piece.writer == world.rank();
    if (!isMine && box.rank != world.rank())
      continue;
    // The runs have the same order in the box and in the tensor. Therefore one
    // range of the box holds exactly the runs of the piece.
    std::int64_t begin = -1, end = -1;
    forEachRunWithin(box.view, tensor.shape, piece.first, piece.count,
                     [&](std::int64_t, std::int64_t inBox, std::int64_t count) {
                       begin = begin < 0 ? inBox : begin;
                       end = inBox + count;
                     });
    if (begin < 0)
      continue;
    Move move{isMine ? box.rank : piece.writer,
              round,
              piece,
              box.offset + begin * size,
              (end - begin) * size,
              {},
              begin,
              to};
    if (isMine)
      move.view = box.view;
    (isMine ? receives : sends).push_back(std::move(move));
  }
}

void Gatherer::gather(std::span<const std::byte> snapshot) {
  allocate();
  auto send = sends.begin();
  auto receive = receives.begin();
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (; send != sends.end() && send->round == round; ++send)
      world.send(labelOf(*send), snapshot.data() + send->from, send->bytes,
                 send->peer, channel);
    for (; receive != receives.end() && receive->round == round; ++receive) {
      if (receive->peer == world.rank()) {
        place(*receive, snapshot.data() + receive->from);
        continue;
      }
      message.resize(std::max(message.size(), sized(receive->bytes)));
      world.receive(labelOf(*receive), message.data(), receive->bytes,
                    receive->peer, channel);
      place(*receive, message.data());
    }
    // This barrier keeps every rank in the same round.
    double in = 0.0, out = 0.0;
    allRanks->allReduce("checkpoint: pieces received", &in, &out,
                        {ElementType::f64, 1, 1}, Reduction::max);
  }
}

std::string Gatherer::labelOf(const Move &move) const {
  return "checkpoint: " + state.tensors[sized(move.piece.tensor)].name;
}

void Gatherer::place(const Move &move, const std::byte *received) {
  const StateTensor &tensor = state.tensors[sized(move.piece.tensor)];
  const std::int64_t size = bytesOf(tensor.type);
  forEachRunWithin(
      move.view, tensor.shape, move.piece.first, move.piece.count,
      [&](std::int64_t global, std::int64_t inBox, std::int64_t count) {
        std::memcpy(
            gathered.data() + move.to + (global - move.piece.first) * size,
            received + (inBox - move.begin) * size, sized(count * size));
      });
}

const std::byte *Gatherer::data(std::size_t i,
                                std::span<const std::byte> snapshot) const {
  return (sources[i].isDirect ? snapshot.data() : gathered.data()) +
         sources[i].offset;
}

} // namespace mtplan::runtime

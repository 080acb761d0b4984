//===- gatherer.cpp - Brings together what a rank writes ------------------===//

#include "runtime/checkpoint/gatherer.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/state_slices.h"

namespace mtplan::runtime {

namespace {

std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }

int channelBesides(const Plan &plan) {
  int channel = 0;
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *transfer = std::get_if<Transfer>(&instruction.what))
          channel = std::max(channel, transfer->channel + 1);
  return channel;
}

// By tensor, what every rank has of it. All ranks find the same.
std::vector<std::vector<OwnedBox>> boxesOf(const Plan &plan,
                                           const ModelState &state) {
  std::vector<std::vector<OwnedBox>> boxes(state.tensors.size());
  for (int rank = 0; rank < plan.ranks; ++rank) {
    std::int64_t offset = 0;
    for (StateSlice &slice : ownedSlices(plan, state, RankPlace(plan, rank))) {
      const std::int64_t bytes = slice.bytes();
      boxes[at(slice.tensor)].push_back({rank, offset, std::move(slice.view)});
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
  dealt = deal(state, boxes, world.size(), longRun);
  planMoves(boxes, roundBytes);
}

// A part goes in pieces of a round. Nothing moves of one that its writer has.
void Gatherer::planMoves(const Boxes &boxes, std::int64_t roundBytes) {
  std::vector<std::int64_t> filled(at(world.size()), 0);
  for (const Part &part : dealt) {
    const StateTensor &tensor = state.tensors[at(part.tensor)];
    const std::vector<OwnedBox> &owners = boxes[at(part.tensor)];
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
    std::int64_t &before = filled[at(part.writer)];
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
  gatheredBytes = at(filled[at(world.rank())]);
  const auto byRound = [](const Move &move) { return move.round; };
  std::ranges::stable_sort(sends, {}, byRound);
  std::ranges::stable_sort(receives, {}, byRound);
}

void Gatherer::addMoves(const Part &piece, std::int64_t round, std::int64_t to,
                        const std::vector<OwnedBox> &owners) {
  const StateTensor &tensor = state.tensors[at(piece.tensor)];
  const std::int64_t size = bytesOf(tensor.type);
  for (const OwnedBox &box : owners) {
    const bool isMine = piece.writer == world.rank();
    if (!isMine && box.rank != world.rank())
      continue;
    // Neighbours in the whole follow each other in the box.
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
  takeRoom();
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
      message.resize(std::max(message.size(), at(receive->bytes)));
      world.receive(labelOf(*receive), message.data(), receive->bytes,
                    receive->peer, channel);
      place(*receive, message.data());
    }
    // Nobody is a round ahead.
    double in = 0.0, out = 0.0;
    allRanks->allReduce("checkpoint: pieces have come", &in, &out,
                        {ElementType::f64, 1, 1}, Reduction::max);
  }
}

std::string Gatherer::labelOf(const Move &move) const {
  return "checkpoint: " + state.tensors[at(move.piece.tensor)].name;
}

void Gatherer::place(const Move &move, const std::byte *received) {
  const StateTensor &tensor = state.tensors[at(move.piece.tensor)];
  const std::int64_t size = bytesOf(tensor.type);
  forEachRunWithin(
      move.view, tensor.shape, move.piece.first, move.piece.count,
      [&](std::int64_t global, std::int64_t inBox, std::int64_t count) {
        std::memcpy(gathered.data() + move.to +
                        (global - move.piece.first) * size,
                    received + (inBox - move.begin) * size, at(count * size));
      });
}

const std::byte *Gatherer::data(std::size_t i,
                                std::span<const std::byte> snapshot) const {
  return (sources[i].isDirect ? snapshot.data() : gathered.data()) +
         sources[i].offset;
}

} // namespace mtplan::runtime

//===- placement.cpp - Overlap of buffers in memory -----------------------===//

#include "runtime/plan/placement.h"

#include <algorithm>

#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

// These limits are far above those of any model. Without them, the check of a
// malformed plan could take too long.
constexpr std::size_t kMostStagePieces = std::size_t{1} << 22;
constexpr std::size_t kMostStagePairs = std::size_t{1} << 24;

bool isKept(MemoryClass memoryClass) {
  return memoryClass == MemoryClass::parameters ||
         memoryClass == MemoryClass::optimizer;
}

} // namespace

Placement::Placement(const Stage &placed, std::size_t number, Faults &list)
    : stage(placed), s(number), faults(list),
      kept(placed.buffers.size(), false), byArena(placed.arenas.size()) {
  std::vector<int> firstOf(kMemoryClasses.size(), -1);
  for (std::size_t a = 0; a < stage.arenas.size(); ++a) {
    int &first = firstOf[static_cast<std::size_t>(stage.arenas[a].memoryClass)];
    if (first >= 0)
      faults.add(at("stages", s, "arenas", a, "class"),
                 std::string(wordOf(stage.arenas[a].memoryClass)) +
                     " is the class of arena " + std::to_string(first) +
                     " as well");
    else
      first = static_cast<int>(a);
  }
  std::size_t total = 0;
  for (const Buffer &buffer : stage.buffers)
    total += indexed(buffer.entries) * indexed(buffer.slots);
  if (total > kMostStagePieces) {
    faults.add(at("stages", s, "buffers"),
               "have " + std::to_string(total) +
                   " entries and slots; at most " +
                   std::to_string(kMostStagePieces) + " can be checked");
    whole = false;
    return;
  }
  for (std::size_t b = 0; b < stage.buffers.size(); ++b)
    kept[b] = isKept(stage.arenas[indexed(stage.buffers[b].arena)].memoryClass);
  for (const Parameter &parameter : stage.parameters) {
    // Gradients are not kept over steps. A reduce-scattered gradient that waits
    // for the norm may reuse the bytes of activations or of another gradient.
    for (const Tensor *tensor :
         {&parameter.value, &parameter.firstMoment, &parameter.secondMoment})
      kept[indexed(tensor->buffer)] = true;
    if (parameter.master)
      kept[indexed(parameter.master->buffer)] = true;
  }
  for (std::size_t b = 0; b < stage.buffers.size(); ++b)
    place(b);
  others.resize(owners.size());
  for (std::vector<Interval> &intervals : byArena)
    sweep(intervals);
}

std::size_t Placement::pieceOf(int buffer, std::int64_t entry,
                               int microBatch) const {
  const Buffer &of = stage.buffers[indexed(buffer)];
  return bases[indexed(buffer)] +
         static_cast<std::size_t>(entry % of.entries * of.slots +
                                  microBatch % of.slots);
}

void Placement::place(std::size_t b) {
  const Buffer &buffer = stage.buffers[b];
  const std::int64_t end = endOf(buffer);
  const Arena &arena = stage.arenas[indexed(buffer.arena)];
  if (end > arena.size)
    faults.add(at("stages", s, "buffers", b),
               "ends at byte " + std::to_string(end) + " of arena " +
                   std::to_string(buffer.arena) + " (" +
                   std::string(wordOf(arena.memoryClass)) + "), which has " +
                   std::to_string(arena.size) + " bytes");
  bases.push_back(owners.size());
  for (int entry = 0; entry < buffer.entries; ++entry)
    for (int slot = 0; slot < buffer.slots; ++slot) {
      std::int64_t start =
          buffer.offset + entry * buffer.entryStride + slot * buffer.slotStride;
      byArena[indexed(buffer.arena)].push_back(
          {start, start + buffer.size, owners.size()});
      owners.push_back(static_cast<int>(b));
    }
}

// Finds overlapping pairs by a sweep over the arena's offsets. `open` holds the
// pieces that contain the current offset.
void Placement::sweep(std::vector<Interval> &intervals) {
  std::ranges::sort(intervals, {}, [](const Interval &one) {
    return std::pair(one.start, one.piece);
  });
  std::vector<Interval> open;
  for (const Interval &next : intervals) {
    std::erase_if(open,
                  [&](const Interval &one) { return one.end <= next.start; });
    for (const Interval &one : open) {
      if (++pairs > kMostStagePairs) {
        if (whole)
          faults.add(at("stages", s, "buffers"),
                     "more than " + std::to_string(kMostStagePairs) +
                         " pairs of entries overlap; that cannot be checked");
        whole = false;
        return;
      }
      meet(one.piece, next.piece);
    }
    open.push_back(next);
  }
}

void Placement::meet(std::size_t a, std::size_t b) {
  auto [first, second] = std::minmax(owners[a], owners[b]);
  if (first != second && !keeps(first) && !keeps(second)) {
    others[a].push_back(b);
    others[b].push_back(a);
    return;
  }
  if (!reported.insert({first, second}).second)
    return;
  const std::string where = at("stages", s, "buffers", indexed(second));
  if (first == second) {
    faults.add(where,
               "its entries or slots overlap each other: pieces of " +
                   std::to_string(stage.buffers[indexed(first)].size) +
                   " bytes, entry_stride " +
                   std::to_string(stage.buffers[indexed(first)].entryStride) +
                   ", slot_stride " +
                   std::to_string(stage.buffers[indexed(first)].slotStride));
    return;
  }
  int longer = keeps(first) ? first : second;
  faults.add(where, bufferName(stage, second) + " overlaps " +
                        bufferName(stage, first) + ", and " +
                        bufferName(stage, longer) + " is kept over steps");
}

} // namespace mtplan::runtime

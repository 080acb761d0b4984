//===- deal.cpp - Which rank writes what ----------------------------------===//

#include "runtime/checkpoint/deal.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "runtime/checkpoint/state_slices.h"

namespace mtplan::runtime {

namespace {

class Dealer {
public:
  Dealer(const ModelState &theState, int ranks, std::int64_t theLongRun)
      : state(theState), longRun(theLongRun),
        load(static_cast<std::size_t>(ranks), 0) {
    std::int64_t all = 0;
    for (const StateTensor &tensor : state.tensors)
      all += tensor.bytes();
    share = std::max(longRun, (all + ranks - 1) / ranks);
  }

  /// Whether every rank writes what it has.
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
    return state.tensors[static_cast<std::size_t>(tensor)];
  }
  std::int64_t &loadOf(int rank) {
    return load[static_cast<std::size_t>(rank)];
  }
  void give(const Part &part) {
    parts.push_back(part);
    loadOf(part.writer) += part.count * bytesOf(at(part.tensor).type);
  }

  const ModelState &state;
  std::int64_t longRun, share = 0;
  std::vector<std::int64_t> load; ///< bytes, by rank
};

} // namespace

std::vector<Part> deal(const ModelState &state,
                       const std::vector<std::vector<OwnedBox>> &boxes,
                       int ranks, std::int64_t longRun) {
  Dealer dealer(state, ranks, longRun);
  std::vector<int> fine;
  for (int t = 0; t < static_cast<int>(state.tensors.size()); ++t) {
    const std::vector<OwnedBox> &owned = boxes[static_cast<std::size_t>(t)];
    if (dealer.areLong(t, owned))
      dealer.giveToOwners(t, owned);
    else
      fine.push_back(t);
  }
  // Small ones last, so that they even out what large ones leave.
  std::ranges::stable_sort(fine, std::greater(), [&](int t) {
    return state.tensors[static_cast<std::size_t>(t)].bytes();
  });
  for (const int t : fine)
    dealer.giveInShares(t, boxes[static_cast<std::size_t>(t)]);
  std::ranges::sort(dealer.parts, {}, [](const Part &part) {
    return std::pair(part.tensor, part.first);
  });
  return std::move(dealer.parts);
}

} // namespace mtplan::runtime

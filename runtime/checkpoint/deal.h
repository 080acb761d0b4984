//===- deal.h - Which rank writes what --------------------------*- C++ -*-===//
//
// A file takes long runs of bytes several times as fast as pieces of rows. So
// what a rank has as one long run it writes itself; a tensor that is split
// finer is gathered by one of the ranks that have some of it, and written
// whole. No rank gathers more of a tensor than an equal share of the state.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_DEAL_H
#define MTPLAN_RUNTIME_CHECKPOINT_DEAL_H

#include <cstdint>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/checkpoint/model_state.h"

namespace mtplan::runtime {

/// From here on a longer run is written hardly faster.
inline constexpr std::int64_t kLongRun = std::int64_t{256} << 10; ///< bytes

/// What a rank has of a tensor.
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

/// Every element of the state once, by tensor and place: the same on all ranks.
/// \param boxes  by tensor; over all of a tensor's every element once
std::vector<Part> deal(const ModelState &state,
                       const std::vector<std::vector<OwnedBox>> &boxes,
                       int ranks, std::int64_t longRun = kLongRun);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_DEAL_H

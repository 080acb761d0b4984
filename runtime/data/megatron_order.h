//===- megatron_order.h - Which tokens Megatron-LM's samples are -*- C++
//-*-===//
//
// The order of GPTDataset (NVIDIA/Megatron-LM, megatron/core/datasets/
// gpt_dataset.py and helpers.cpp), made in memory: sequences repeated for as
// many epochs as the samples need and shuffled, cut into samples of s + 1
// tokens that share one token with their neighbours, and the samples shuffled.
// A last epoch of which less than 80 % is needed is kept apart.
//
// The order depends on how many samples a run asks for, as Megatron's does.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_MEGATRON_ORDER_H
#define MTPLAN_RUNTIME_DATA_MEGATRON_ORDER_H

#include <cstdint>
#include <functional>
#include <vector>

namespace mtplan::runtime {

/// Where a sample begins.
struct SampleStart {
  std::uint32_t document = 0; ///< of MegatronOrder::documents
  std::uint32_t offset = 0;   ///< tokens into it
  bool operator==(const SampleStart &) const = default;
};

struct MegatronOrder {
  std::int64_t epochs = 1;
  std::vector<std::int32_t> documents; ///< sequences of the .idx, shuffled
  std::vector<SampleStart> starts;     ///< one more than there are samples
  std::vector<std::uint32_t> shuffle;  ///< sample drawn -> place in `starts`
};

/// What the order is made for.
struct MegatronOrderRequest {
  std::int32_t firstDocument = 0, endDocument = 0; ///< of this split
  std::int64_t sequence = 1; ///< s, tokens of a sample without the last target
  std::int64_t samples = 0;  ///< wanted; 0: those of one epoch
  std::uint32_t seed = 1234;
};

/// \param length  tokens of a sequence of the .idx
/// \throws std::length_error if there are too many of anything, or no token
MegatronOrder
orderAsMegatron(const MegatronOrderRequest &request,
                const std::function<std::int64_t(std::int64_t)> &length);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_MEGATRON_ORDER_H

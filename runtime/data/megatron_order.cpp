//===- megatron_order.cpp - Which tokens Megatron-LM's samples are --------===//

#include "runtime/data/megatron_order.h"

#include <numeric>
#include <stdexcept>
#include <string>

#include "runtime/data/numpy_random.h"

namespace mtplan::runtime {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;

void refuseAbove(std::int64_t number, const char *what) {
  if (number >= kMost)
    throw std::length_error(std::to_string(number) + what +
                            ", can order 2147483647");
}

/// `documents` once for each epoch, shuffled together.
void appendShuffled(const MegatronOrderRequest &request, std::int64_t epochs,
                    NumpyRandom &random, std::vector<std::int32_t> &out) {
  const std::size_t begin = out.size();
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (std::int32_t i = request.firstDocument; i < request.endDocument; ++i)
      out.push_back(i);
  random.shuffle(std::span(out).subspan(begin));
}

/// Sample k begins at token k s of the documents one behind the other.
std::vector<SampleStart>
cutSamples(const std::vector<std::int32_t> &documents, std::int64_t sequence,
           std::int64_t samples,
           const std::function<std::int64_t(std::int64_t)> &length) {
  std::vector<SampleStart> starts;
  starts.reserve(static_cast<std::size_t>(samples) + 1);
  std::int64_t begin = 0; // token at which `document` begins
  std::size_t document = 0;
  std::int64_t tokens = length(documents[0]);
  for (std::int64_t sample = 0; sample <= samples; ++sample) {
    const std::int64_t first = sample * sequence;
    while (first >= begin + tokens) {
      begin += tokens;
      tokens = length(documents[++document]);
    }
    starts.push_back({static_cast<std::uint32_t>(document),
                      static_cast<std::uint32_t>(first - begin)});
  }
  return starts;
}

} // namespace

MegatronOrder
orderAsMegatron(const MegatronOrderRequest &request,
                const std::function<std::int64_t(std::int64_t)> &length) {
  const std::int64_t s = request.sequence;
  std::int64_t tokens = 0; // of an epoch
  for (std::int64_t i = request.firstDocument; i < request.endDocument; ++i)
    tokens += length(i);
  if (tokens == 0)
    throw std::length_error("holds no token");

  MegatronOrder order;
  // The smallest number with epochs * tokens >= samples * s + 1.
  if (request.samples > 0)
    order.epochs = (request.samples * s + tokens) / tokens;
  const std::int64_t e = order.epochs;
  refuseAbove(e * (request.endDocument - request.firstDocument),
              " sequences over all epochs");
  const std::int64_t samples = (e * tokens - 1) / s;
  refuseAbove(samples, " samples");

  const std::int64_t before = ((e - 1) * tokens - 1) / s;
  const std::int64_t perEpoch = (tokens - 1) / s;
  const bool lastApart = e > 1 && request.samples - before <
                                      static_cast<std::int64_t>(
                                          0.80 * static_cast<double>(perEpoch));

  NumpyRandom random(request.seed);
  appendShuffled(request, lastApart ? e - 1 : e, random, order.documents);
  if (lastApart)
    appendShuffled(request, 1, random, order.documents);

  order.starts = cutSamples(order.documents, s, samples, length);
  order.shuffle.resize(static_cast<std::size_t>(samples));
  std::iota(order.shuffle.begin(), order.shuffle.end(), 0U);
  const auto all = std::span(order.shuffle);
  if (lastApart) {
    const auto first = static_cast<std::size_t>(before);
    random.shuffle(all.subspan(0, first));
    random.shuffle(all.subspan(first));
  } else {
    random.shuffle(all);
  }
  return order;
}

} // namespace mtplan::runtime

//===- dataset.cpp - Samples of a corpus in one global order --------------===//

#include "runtime/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/digest.h"
#include "runtime/random/draws.h"
#include "runtime/random/philox.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Megatron-LM's order
//===----------------------------------------------------------------------===//

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;

void refuseAbove(std::int64_t number, const char *what) {
  if (number >= kMost)
    throw std::length_error(std::to_string(number) + what +
                            ", but the limit is 2147483647");
}

void appendShuffled(const MegatronOrderRequest &request, std::int64_t epochs,
                    NumpyRandom &random, std::vector<std::int32_t> &out) {
  const std::size_t begin = out.size();
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (std::int32_t i = request.firstDocument; i < request.endDocument; ++i)
      out.push_back(i);
  random.shuffle(std::span(out).subspan(begin));
}

/// Returns the starts of all samples, and the start of the sample that would
/// follow the last. Sample k starts at token k * `sequence` of the concatenated
/// documents.
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
  std::int64_t tokens = 0; // tokens of one epoch
  for (std::int64_t i = request.firstDocument; i < request.endDocument; ++i)
    tokens += length(i);
  if (tokens == 0)
    throw std::length_error("holds no token");

  MegatronOrder order;
  // This is the smallest number with epochs * tokens >= samples * s + 1.
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

//===----------------------------------------------------------------------===//
// Permutation
//===----------------------------------------------------------------------===//

Permutation::Permutation(std::int64_t theSize, std::uint64_t theSeed,
                         std::int64_t theEpoch)
    : size(static_cast<std::uint64_t>(theSize)), seed(theSeed),
      epoch(static_cast<std::uint64_t>(theEpoch)) {
  // The network permutes at most 4 n numbers, so that operator() calls
  // encrypt() at most four times on average.
  while ((std::uint64_t{1} << (2 * halfBits)) < size)
    ++halfBits;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  constexpr std::uint32_t kRounds = 6;
  const std::uint64_t mask = (std::uint64_t{1} << halfBits) - 1;
  const auto low = [](std::uint64_t x) {
    return static_cast<std::uint32_t>(x);
  };
  std::uint64_t left = value >> halfBits, right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxCounter words =
        philox4x32({low(right), round, low(epoch), low(epoch >> 32)},
                   {low(seed), low(seed >> 32)});
    const std::uint64_t next = left ^ (words[0] & mask);
    left = right;
    right = next;
  }
  return left << halfBits | right;
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  auto value = static_cast<std::uint64_t>(index);
  do
    value = encrypt(value);
  while (value >= size);
  return static_cast<std::int64_t>(value);
}

//===----------------------------------------------------------------------===//
// Datasets
//===----------------------------------------------------------------------===//

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

const char *nameOf(DataPart part) {
  switch (part) {
  case DataPart::train:
    return "training";
  case DataPart::validation:
    return "validation";
  case DataPart::test:
    break;
  }
  return "test";
}

[[noreturn]] void refuseShort(const TokenFile &file, const DataOptions &options,
                              std::int64_t tokens) {
  throw DataError(file.path(), std::string("its ") + nameOf(options.part) +
                                   " part has " + text(tokens) +
                                   " tokens, one sample of sequence length " +
                                   text(options.sequence) + " needs " +
                                   text(options.sequence + 1));
}

std::pair<std::int64_t, std::int64_t> partOf(const DataOptions &options,
                                             std::int64_t elements) {
  const auto points = splitPoints(options.split, elements);
  const auto part = static_cast<std::size_t>(options.part);
  return {points[part], points[part + 1]};
}

/// Returns "93827 bytes, xxh128 0123...", with the digest of `xxh128sum`.
std::string contentOf(const MappedFile &file) {
  return text(file.size()) + " bytes, xxh128 " + textOf(digestOf(file));
}

template <typename T> std::string digestText(const std::vector<T> &values) {
  return textOf(
      digestOf(std::string_view(reinterpret_cast<const char *>(values.data()),
                                values.size() * sizeof(T))));
}

/// Reads one array of tokens, with a new shuffle in every epoch.
class FlatDataset final : public Dataset {
public:
  FlatDataset(TokenFile theTokens, const DataOptions &options)
      : tokens(std::move(theTokens)) {
    settings = options;
    const auto [begin, end] = partOf(options, tokens.tokens());
    first = begin;
    perEpoch = (end - begin - 1) / options.sequence;
    if (end - begin < options.sequence + 1)
      refuseShort(tokens, options, end - begin);
  }

  const std::string &name() const override { return tokens.path(); }
  std::string identity() const override {
    return std::string(nameOf(tokens.format())) + ", " +
           contentOf(tokens.bytes());
  }
  std::int64_t samplesPerEpoch() const override { return perEpoch; }
  std::optional<std::int64_t> samples() const override { return std::nullopt; }

  void sample(std::int64_t index, std::span<std::int32_t> out) const override {
    const Permutation order(perEpoch, settings.seed, index / perEpoch);
    const std::int64_t place = order(index % perEpoch);
    tokens.read(first + place * settings.sequence, out, settings.vocabulary);
  }

private:
  TokenFile tokens;
  std::int64_t first = 0;
  std::int64_t perEpoch = 1;
};

class MegatronDataset final : public Dataset {
public:
  MegatronDataset(TokenFile theTokens, const DataOptions &options)
      : tokens(std::move(theTokens)) {
    settings = options;
    if (tokens.sequences() > INT32_MAX)
      throw DataError(tokens.path(),
                      "has " + text(tokens.sequences()) +
                          " sequences, but the limit is 2147483647");
    const auto [begin, end] = partOf(options, tokens.sequences());
    MegatronOrderRequest request;
    request.firstDocument = static_cast<std::int32_t>(begin);
    request.endDocument = static_cast<std::int32_t>(end);
    request.sequence = options.sequence;
    request.samples = options.samples;
    request.seed = static_cast<std::uint32_t>(options.seed);
    std::int64_t all = 0;
    for (std::int64_t i = begin; i < end; ++i)
      all += tokens.sequenceLength(i);
    if (all < options.sequence + 1)
      refuseShort(tokens, options, all);
    perEpoch = (all - 1) / options.sequence;
    try {
      order = orderAsMegatron(
          request, [&](std::int64_t i) { return tokens.sequenceLength(i); });
    } catch (const std::length_error &error) {
      throw DataError(tokens.path(), error.what());
    }
  }

  const std::string &name() const override { return tokens.path(); }
  // The identity includes a checksum of the order, because the order also
  // depends on the number of samples that the run requests.
  std::string identity() const override {
    const std::string parts = digestText(order.documents) +
                              digestText(order.starts) +
                              digestText(order.shuffle);
    return std::string(nameOf(tokens.format())) + ", .bin " +
           contentOf(tokens.bytes()) + ", .idx " +
           contentOf(tokens.index()->bytes()) + ", order of " +
           text(*samples()) + " samples, xxh128 " + textOf(digestOf(parts));
  }
  std::int64_t samplesPerEpoch() const override { return perEpoch; }
  std::optional<std::int64_t> samples() const override {
    return static_cast<std::int64_t>(order.shuffle.size());
  }

  void sample(std::int64_t index, std::span<std::int32_t> out) const override {
    if (index >= *samples())
      throw DataError(tokens.path(),
                      "sample " + text(index) + " of " + text(*samples()) +
                          ": the order was made for " +
                          (settings.samples > 0 ? text(settings.samples)
                                                : std::string("one epoch")));
    const SampleStart start =
        order.starts[order.shuffle[static_cast<std::size_t>(index)]];
    std::size_t document = start.document;
    std::int64_t offset = start.offset;
    while (!out.empty()) {
      const std::int64_t sequence = order.documents[document++];
      const auto left =
          static_cast<std::size_t>(tokens.sequenceLength(sequence) - offset);
      const std::size_t taken = std::min(left, out.size());
      if (taken > 0)
        tokens.read(tokens.sequenceBegin(sequence) + offset, out.first(taken),
                    settings.vocabulary);
      out = out.subspan(taken);
      offset = 0;
    }
  }

private:
  TokenFile tokens;
  MegatronOrder order;
  std::int64_t perEpoch = 1;
};

class RandomDataset final : public Dataset {
public:
  explicit RandomDataset(const DataOptions &options)
      : label("random tokens"),
        stream(Stream::ofData({options.seed, 0, 0, 0}, label)) {
    settings = options;
  }

  const std::string &name() const override { return label; }
  std::string identity() const override { return label; }
  std::int64_t samplesPerEpoch() const override { return INT64_MAX; }
  std::optional<std::int64_t> samples() const override { return std::nullopt; }

  void sample(std::int64_t index, std::span<std::int32_t> out) const override {
    const auto tokens = static_cast<std::int64_t>(out.size());
    for (std::int64_t i = 0; i < tokens; ++i)
      out[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(
          stream.integerAt(index * tokens + i, settings.vocabulary));
  }

private:
  const std::string label;
  const Stream stream;
};

} // namespace

std::unique_ptr<Dataset> randomDataset(const DataOptions &options) {
  return std::make_unique<RandomDataset>(options);
}

std::array<std::int64_t, 4> splitPoints(const std::array<double, 3> &shares,
                                        std::int64_t elements) {
  double total = 0.0;
  for (double share : shares) {
    if (!(share >= 0.0) || !std::isfinite(share))
      throw std::invalid_argument("a share of " + std::to_string(share) +
                                  "; shares are 0 or more");
    total += share;
  }
  if (total == 0.0)
    throw std::invalid_argument("all shares are 0");
  std::array<std::int64_t, 4> points = {};
  double before = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    before += shares[i] / total;
    // nearbyint rounds halves to even, like Python's round.
    points[i + 1] =
        std::min(elements, static_cast<std::int64_t>(std::nearbyint(
                               before * static_cast<double>(elements))));
  }
  return points;
}

std::unique_ptr<Dataset> openDataset(const DataOptions &options) {
  if (options.sequence < 1)
    throw std::invalid_argument("a sequence length of " +
                                text(options.sequence) + ", needs at least 1");
  TokenFile file = TokenFile::open(options.path, options.format);
  if (file.format() == TokenFormat::megatron)
    return std::make_unique<MegatronDataset>(std::move(file), options);
  return std::make_unique<FlatDataset>(std::move(file), options);
}

} // namespace mtplan::runtime

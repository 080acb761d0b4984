//===- step_samples.cpp - The inputs of a step from samples ---------------===//

#include "runtime/data/step_samples.h"

#include <cassert>
#include <utility>

#include "runtime/random/draws.h"

namespace mtplan::runtime {

StepReader::StepReader(std::shared_ptr<const Dataset> theDataset,
                       Objective theObjective, std::int64_t theSequence,
                       std::int64_t globalBatch)
    : dataset(std::move(theDataset)), objective(theObjective),
      sequence(theSequence), batch(globalBatch) {
  assert(dataset->options().sequence == objective.sampleSequence(sequence) &&
         "the dataset was opened for other samples");
  assert(batch > 0 && "a step needs a sample");
}

StepSamples StepReader::read(std::int64_t step, std::int64_t first) const {
  StepSamples out;
  out.step = step;
  std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(dataset->options().sequence) + 1);
  for (std::int64_t row = 0; row < batch; ++row)
    readRow(first + row, tokens, out);
  for (std::int32_t target : out.targets)
    out.count += target >= 0;
  return out;
}

void StepReader::readRow(std::int64_t sample, std::vector<std::int32_t> &tokens,
                         StepSamples &out) const {
  dataset->sample(sample, tokens);
  const auto s = static_cast<std::ptrdiff_t>(sequence);
  switch (objective.kind) {
  case Objective::Kind::nextToken:
    out.ids.insert(out.ids.end(), tokens.begin(), tokens.begin() + s);
    for (std::size_t i = 1; i < tokens.size(); ++i)
      out.targets.push_back(
          tokens[i - 1] == objective.endOfDocument ? -1 : tokens[i]);
    return;
  case Objective::Kind::masked:
    mask(sample, tokens, out);
    return;
  case Objective::Kind::continuation:
    out.ids.insert(out.ids.end(), tokens.begin(), tokens.begin() + s);
    out.decoderIds.push_back(objective.startToken);
    out.decoderIds.insert(out.decoderIds.end(), tokens.begin() + s,
                          tokens.end() - 1);
    out.targets.insert(out.targets.end(), tokens.begin() + s, tokens.end());
    return;
  }
}

void StepReader::mask(std::int64_t sample,
                      const std::vector<std::int32_t> &tokens,
                      StepSamples &out) const {
  // One random stream covers the positions of all samples.
  const Stream stream =
      Stream::ofData({objective.seed, 0, 0, 0}, "masked language");
  for (std::int64_t i = 0; i < sequence; ++i) {
    const std::int32_t token = tokens[static_cast<std::size_t>(i)];
    const PhiloxCounter words = stream.wordsAt(sample * sequence + i);
    const bool chosen = words[0] * kWordScale < objective.share;
    const double way = words[1] * kWordScale;
    const auto any = static_cast<std::int32_t>(
        (std::uint64_t{words[2]} *
         static_cast<std::uint64_t>(objective.vocabulary)) >>
        32);
    out.targets.push_back(chosen ? token : -1);
    out.ids.push_back(!chosen || way >= 0.9 ? token
                      : way < 0.8           ? objective.maskToken
                                            : any);
    if (objective.typeRows > 0)
      out.types.push_back(2 * i >= sequence && objective.typeRows > 1 ? 1 : 0);
  }
}

//===----------------------------------------------------------------------===//
// Prefetching
//===----------------------------------------------------------------------===//

Prefetcher::Prefetcher(Read theRead, std::int64_t first, std::int64_t end,
                       int theTakers, int theDepth)
    : read(std::move(theRead)), takers(theTakers),
      depth(static_cast<std::size_t>(theDepth)), firstKept(first) {
  assert(takers >= 1 && theDepth >= 1 &&
         "at least one taker and a depth of at least one");
  thread = std::thread([this, first, end] { run(first, end); });
}

Prefetcher::~Prefetcher() {
  stop();
  thread.join();
}

void Prefetcher::stop() {
  const std::lock_guard lock(mutex);
  stopped = true;
  changed.notify_all();
}

void Prefetcher::run(std::int64_t step, std::int64_t end) {
  for (bool failed = false; step < end && !failed; ++step) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopped || kept.size() < depth; });
      if (stopped)
        return;
    }
    Kept next;
    next.left = takers;
    try {
      next.samples = std::make_shared<const StepSamples>(read(step));
    } catch (...) {
      next.error = std::current_exception();
      failed = true;
    }
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(next));
    changed.notify_all();
  }
}

std::shared_ptr<const StepSamples> Prefetcher::take(std::int64_t step) {
  std::unique_lock lock(mutex);
  assert(step >= firstKept &&
         "the step was discarded after all takers read it");
  const auto isKept = [&] {
    return step < firstKept + static_cast<std::int64_t>(kept.size());
  };
  // Reading ends at the first error, so a wait for a later step rethrows that
  // error.
  const auto broken = [&] { return !kept.empty() && kept.back().error; };
  changed.wait(lock, [&] { return stopped || isKept() || broken(); });
  if (!isKept() && broken())
    std::rethrow_exception(kept.back().error);
  if (stopped)
    return nullptr;
  Kept &wanted = kept[static_cast<std::size_t>(step - firstKept)];
  if (wanted.error)
    std::rethrow_exception(wanted.error);
  auto samples = wanted.samples;
  --wanted.left;
  while (!kept.empty() && !kept.front().error && kept.front().left <= 0) {
    kept.pop_front();
    ++firstKept;
    changed.notify_all();
  }
  return samples;
}

} // namespace mtplan::runtime

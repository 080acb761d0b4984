//===- prefetcher.cpp - The next steps' samples, read ahead ---------------===//

#include "runtime/data/prefetcher.h"

#include <cassert>
#include <utility>

namespace mtplan::runtime {

Prefetcher::Prefetcher(Read theRead, std::int64_t first, std::int64_t end,
                       int theTakers, int theDepth)
    : read(std::move(theRead)), takers(theTakers),
      depth(static_cast<std::size_t>(theDepth)), firstKept(first) {
  assert(takers >= 1 && theDepth >= 1 && "somebody takes, something is kept");
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
  assert(step >= firstKept && "all takers have had this step");
  const auto isKept = [&] {
    return step < firstKept + static_cast<std::int64_t>(kept.size());
  };
  // Nothing follows a step that could not be read: whoever asks for one hears
  // of that one.
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

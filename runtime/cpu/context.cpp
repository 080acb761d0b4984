//===- context.cpp - Threads of a rank ------------------------------------===//

#include "runtime/cpu/context.h"

#include <stdexcept>
#include <string>
#include <system_error>

#include <omp.h>

namespace mtplan::runtime::cpu {

namespace {

/// A thread polls this many times before it sleeps. A poll takes tens of
/// nanoseconds, and waking a thread takes about ten microseconds.
constexpr int kLooks = 2000;

void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

} // namespace

void useOneThread() { omp_set_num_threads(1); }

Workers::Workers(int threads) {
  try {
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back([this, thread] { serve(thread); });
  } catch (const std::system_error &error) {
    const std::size_t started = others.size() + 1;
    end();
    throw std::runtime_error("a rank needs " + std::to_string(threads) +
                             " threads, but only " + std::to_string(started) +
                             " could be started: " + error.what());
  }
}

Workers::~Workers() { end(); }

void Workers::end() {
  stops = true;
  jobs.fetch_add(1);
  jobs.notify_all();
  for (std::thread &other : others)
    other.join();
}

void Workers::runAll(const Job &theJob) {
  if (theJob.tasks == 0)
    return;
  job = theJob;
  undone.store(job.tasks, std::memory_order_relaxed);
  const std::uint64_t number = (open.load() >> 32) + 1;
  open.store(number << 32 | job.tasks, std::memory_order_release);
  jobs.fetch_add(1);
  jobs.notify_all();
  while (takeOne(0)) {
  }
  int looks = 0;
  for (std::uint32_t left = undone.load(std::memory_order_acquire); left > 0;
       left = undone.load(std::memory_order_acquire)) {
    if (++looks < kLooks)
      pauseBriefly();
    else
      undone.wait(left);
  }
  if (failed.exchange(false))
    std::rethrow_exception(std::exchange(failure, nullptr));
}

/// Takes and runs one task of the job. Returns false if no task was left.
bool Workers::takeOne(int thread) {
  std::uint64_t seen = open.load(std::memory_order_acquire);
  do {
    if ((seen & 0xFFFFFFFFU) == 0)
      return false;
  } while (!open.compare_exchange_weak(
      seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  const auto left = static_cast<std::uint32_t>(seen);
  try {
    job.call(job.what, job.tasks - left, thread);
  } catch (...) {
    if (!failed.exchange(true))
      failure = std::current_exception();
  }
  if (undone.fetch_sub(1, std::memory_order_acq_rel) == 1 && thread != 0)
    undone.notify_one();
  return true;
}

void Workers::serve(int thread) {
  useOneThread();
  std::uint32_t known = 0;
  for (;;) {
    int looks = 0;
    while (jobs.load(std::memory_order_acquire) == known) {
      if (++looks < kLooks)
        pauseBriefly();
      else
        jobs.wait(known);
    }
    known = jobs.load(std::memory_order_acquire);
    if (stops)
      return;
    while (takeOne(thread)) {
    }
  }
}

} // namespace mtplan::runtime::cpu

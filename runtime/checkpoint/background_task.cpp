//===- background_task.cpp - Background work of all ranks ----------------===//

#include "runtime/checkpoint/background_task.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

namespace mtplan::runtime {

struct BackgroundTask::Part {
  std::function<void()> work;
  std::atomic<bool> done{false};
  std::string fault; ///< valid once `done` is true
};

BackgroundTask::BackgroundTask(World &theWorld)
    : world(theWorld), allRanks(world.allRanks("checkpoint")) {}

BackgroundTask::~BackgroundTask() {
  if (thread.joinable())
    thread.join();
}

void BackgroundTask::start(std::function<void()> work) {
  part = std::make_shared<Part>();
  part->work = std::move(work);
  thread = std::thread([own = part] {
    try {
      own->work();
    } catch (const std::exception &error) {
      own->fault = error.what();
      if (own->fault.empty())
        own->fault = "an exception without a message";
    }
    own->done = true;
  });
}

BackgroundTask::State BackgroundTask::ask(bool wish) {
  const bool running = part && !part->done;
  const bool failed = part && !running && !part->fault.empty();
  const std::array<double, 3> mine{running ? 1.0 : 0.0, wish ? 1.0 : 0.0,
                                   failed ? 1.0 : 0.0};
  std::array<double, 3> most{};
  allRanks->allReduce("checkpoint: who still works", mine.data(), most.data(),
                      {ElementType::f64, 1, 3}, Reduction::max);
  State state{most[0] > 0.0, most[1] > 0.0, ""};
  if (state.running || !part)
    return state;
  thread.join();
  if (most[2] > 0.0) {
    constexpr std::size_t kLongest = 512;
    std::array<char, kLongest> own{};
    part->fault.copy(own.data(), kLongest - 1);
    std::vector<char> every(kLongest * static_cast<std::size_t>(world.size()));
    allRanks->allGather("checkpoint: what went wrong", own.data(), every.data(),
                        {ElementType::i32, 1, kLongest / sizeof(int)});
    for (int rank = 0; rank < world.size() && state.fault.empty(); ++rank)
      if (const char *text =
              every.data() + kLongest * static_cast<std::size_t>(rank);
          *text != '\0')
        state.fault = "rank " + std::to_string(rank) + ": " + text;
  }
  part.reset();
  return state;
}

std::string BackgroundTask::finish() {
  for (auto pause = std::chrono::microseconds(50);; pause *= 2) {
    const State state = ask();
    if (!state.running)
      return state.fault;
    pause = std::min(pause, std::chrono::microseconds(10'000));
    std::this_thread::sleep_for(pause);
  }
}

} // namespace mtplan::runtime

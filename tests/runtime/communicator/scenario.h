//===- scenario.h - The same run on any transport --*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_COMMUNICATOR_SCENARIO_H
#define MTPLAN_TESTS_RUNTIME_COMMUNICATOR_SCENARIO_H

#include <numeric>

#include "tests/runtime/communicator/cases.h"

namespace mtplan::runtime {

/// Every collective over all ranks, in another order, over two and alone; and
/// messages of all sizes around a ring. Throws at the first wrong byte; returns
/// the digest of all that this rank got.
inline std::uint64_t runScenario(World &world) {
  std::vector<int> all(world.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> turned(all.rbegin(), all.rend());
  Bytes results;
  const auto run = [&](const std::string &name, const std::vector<int> &ranks,
                       int count) {
    const auto group = world.group(name, ranks);
    const Bytes more = runCases(*group, 7 + ranks.size(), count);
    results.insert(results.end(), more.begin(), more.end());
  };
  run("all", all, 250);
  run("turned", turned, 25);
  run("alone", {world.rank()}, 25);
  if (world.size() > 1 && world.rank() < 2)
    run("pair", {1, 0}, 50);
  world.barrier("groups");

  const int to = (world.rank() + 1) % world.size();
  const int from = (world.rank() + world.size() - 1) % world.size();
  std::mt19937_64 generator(3);
  for (const std::int64_t size : {0, 1, 2047, 2049, 100000, 5000003})
    for (const int channel : {0, 5}) {
      const std::string label = "ring " + std::to_string(size);
      const std::uint64_t seed = generator();
      const auto message = [&](int rank) {
        std::mt19937_64 its(seed + rank);
        return drawnTensor(ElementType::bf16, (size + 1) / 2, its);
      };
      const Bytes sent = message(world.rank());
      Bytes got(sent.size());
      world.send(label, sent.data(), sent.size(), to, channel);
      world.receive(label, got.data(), got.size(), from, channel);
      if (got != message(from))
        throw std::runtime_error("wrong message: " + label);
      results.insert(results.end(), got.begin(), got.end());
    }
  return digestOf(results);
}

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_COMMUNICATOR_SCENARIO_H

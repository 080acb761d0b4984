//===- communicator.cpp - The group of all ranks --------------------------===//

#include "runtime/communicator/communicator.h"

#include <numeric>

namespace mtplan::runtime {

std::unique_ptr<Communicator> World::allRanks(const std::string &name) {
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group(name, ranks);
}

} // namespace mtplan::runtime

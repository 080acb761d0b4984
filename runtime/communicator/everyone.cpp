//===- everyone.cpp - The group of all ranks ------------------------------===//

#include <numeric>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

std::unique_ptr<Communicator> World::everyone(const std::string &name) {
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group(name, ranks);
}

} // namespace mtplan::runtime

//===- same_start.cpp - Whether all ranks start alike ---------------------===//

#include "tools/run/same_start.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "runtime/communicator/call.h"
#include "runtime/data/sha256.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

std::string digestOf(const std::string &content) {
  Sha256 sum;
  sum.add(content.data(), content.size());
  return sum.finish();
}

// By rank.
std::vector<std::string> gather(Communicator &all, const std::string &label,
                                const std::string &mine) {
  std::vector<char> every(mine.size() * static_cast<std::size_t>(all.size()));
  all.allGather(
      label, mine.data(), every.data(),
      {ElementType::i32, 1,
       static_cast<std::int64_t>(mine.size() / sizeof(std::int32_t))});
  std::vector<std::string> apart;
  for (std::size_t at = 0; at < every.size(); at += mine.size())
    apart.emplace_back(every.data() + at, mine.size());
  return apart;
}

Sides sidesOf(Communicator &all, const StartPart &part) {
  const std::vector<std::string> digests =
      gather(all, part.what, digestOf(part.content));
  std::map<std::string, std::vector<int>> byDigest;
  for (int rank = 0; rank < all.size(); ++rank)
    byDigest[digests[static_cast<std::size_t>(rank)]].push_back(rank);
  Sides sides;
  for (const auto &[digest, side] : byDigest)
    if (side.size() > sides.most.size() ||
        (side.size() == sides.most.size() && side.front() < sides.most.front()))
      sides.most = side;
  for (int rank = 0; rank < all.size(); ++rank)
    if (!std::ranges::binary_search(sides.most, rank))
      sides.others.push_back(rank);
  return sides;
}

} // namespace

Sides sidesOf(World &world, const StartPart &part) {
  return sidesOf(*world.everyone("start"), part);
}

void agreeOnStart(World &world, const std::vector<StartPart> &parts) {
  std::unique_ptr<Communicator> all = world.everyone("start");
  for (const StartPart &part : parts) {
    const auto [most, others] = sidesOf(*all, part);
    if (others.empty())
      continue;
    throw CommunicationError(
        fmt::format("{} {} not started with the {} of {}: all need the same",
                    wordsOf(others), others.size() == 1 ? "was" : "were",
                    part.what, wordsOf(most)));
  }
}

} // namespace mtplan::tools

//===- same_start.cpp - Agreement of all ranks on plan, data and flags ----===//

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

// Returns the texts by rank.
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

// Messages have one size on all ranks. The end of a text says more than its
// beginning: there are the name of the file and the digest.
std::string padded(const std::string &text) {
  constexpr std::size_t kShown = 1024;
  std::string end = text.size() > kShown
                        ? "..." + text.substr(text.size() - kShown + 3)
                        : text;
  end.resize(kShown, '\0');
  return end;
}

std::string unpadded(const std::vector<std::string> &texts, int rank) {
  return texts[static_cast<std::size_t>(rank)].c_str();
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
  return sidesOf(*world.allRanks("start"), part);
}

void agreeOnStart(World &world, const std::vector<StartPart> &parts) {
  std::unique_ptr<Communicator> all = world.allRanks("start");
  for (const StartPart &part : parts) {
    const auto [most, others] = sidesOf(*all, part);
    if (others.empty())
      continue;
    const std::vector<std::string> shown =
        gather(*all, part.what, padded(part.shown));
    std::string both;
    if (!part.shown.empty())
      both = fmt::format("rank {} has {}, rank {} has {}; ", others.front(),
                         unpadded(shown, others.front()), most.front(),
                         unpadded(shown, most.front()));
    throw CommunicationError(
        fmt::format("{} {} not started with the {} of {}: {}all need the same",
                    wordsOf(others), others.size() == 1 ? "was" : "were",
                    part.what, wordsOf(most), both));
  }
}

} // namespace mtplan::tools

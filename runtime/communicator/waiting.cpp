//===- waiting.cpp - Finds the rank that others wait for ------------------===//

#include "runtime/communicator/waiting.h"

#include <algorithm>

#include "runtime/communicator/call.h"

namespace mtplan::runtime {
namespace {

struct Link {
  int rank;
  Waiting wait;
  int next;
};

std::string wordsOf(const std::vector<Link> &chain, std::size_t from) {
  std::string words;
  for (std::size_t i = from; i < chain.size(); ++i)
    words += (i > from ? "; rank " : "rank ") + std::to_string(chain[i].rank) +
             " for rank " + std::to_string(chain[i].next) + " in " +
             chain[i].wait.what;
  return words;
}

/// Holds the ranks that a rank waits for, by their state.
struct Culprits {
  std::vector<int> working, ended, waiting;
  Waiting wait; ///< the wait of rank waiting[0]
};

Culprits lookAt(const std::vector<int> &missing,
                const std::function<Doing(int)> &doing) {
  Culprits found;
  for (const int rank : missing) {
    Doing its = doing(rank);
    if (its.state == Doing::ended)
      found.ended.push_back(rank);
    else if (its.state == Doing::working || its.wait.missing.empty())
      found.working.push_back(rank);
    else {
      if (found.waiting.empty())
        found.wait = std::move(its.wait);
      found.waiting.push_back(rank);
    }
  }
  return found;
}

} // namespace

std::string explain(int rank, const Waiting &wait,
                    std::chrono::milliseconds waited,
                    const std::function<Doing(int)> &doing) {
  std::vector<Link> chain = {{rank, wait, -1}};
  for (;;) {
    Link &last = chain.back();
    Culprits found = lookAt(last.wait.missing, doing);
    std::string words;
    if (!found.ended.empty()) {
      last.next = found.ended[0];
      words =
          wordsOf(found.ended) + " ended without reaching " + last.wait.what;
    } else if (!found.working.empty()) {
      last.next = found.working[0];
      words = wordsOf(found.working) + " did not reach " + last.wait.what +
              " within " + wordsOf(waited);
    } else {
      last.next = found.waiting[0];
      for (std::size_t i = 0; i < chain.size(); ++i)
        if (chain[i].rank == last.next)
          return "ranks wait for each other: " + wordsOf(chain, i);
      chain.push_back({last.next, std::move(found.wait), -1});
      continue;
    }
    if (chain.size() > 1)
      words += "; waiting as a result: " + wordsOf(chain, 0);
    return words;
  }
}

} // namespace mtplan::runtime

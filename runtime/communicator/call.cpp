//===- call.cpp - The description of a collective call --------------------===//

#include "runtime/communicator/call.h"

#include <algorithm>

#include "runtime/backend/element.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {
namespace {

const char *nameOf(CallKind kind) {
  switch (kind) {
  case CallKind::allReduce:
    return "all-reduce";
  case CallKind::allGather:
    return "all-gather";
  case CallKind::reduceScatter:
    return "reduce-scatter";
  case CallKind::allToAll:
    return "all-to-all";
  case CallKind::reduce:
    return "reduce";
  case CallKind::broadcast:
    return "broadcast";
  case CallKind::barrier:
    return "barrier";
  }
  return ""; // an invalid number from another process
}

std::string quoted(const std::string &text) { return '"' + text + '"'; }

} // namespace

std::string wordsOf(const Call &call) {
  std::string words = nameOf(call.kind) + (' ' + quoted(call.label));
  if (call.kind == CallKind::barrier)
    return words;
  words += " of " + std::to_string(call.pieces.outer) + " x " +
           std::to_string(call.pieces.inner) + ' ' + nameOf(call.pieces.type);
  if (call.kind == CallKind::allReduce ||
      call.kind == CallKind::reduceScatter || call.kind == CallKind::reduce)
    words += ", " + std::string(wordOf(call.reduction));
  if (call.kind == CallKind::reduce)
    words += " to place " + std::to_string(call.root);
  if (call.kind == CallKind::broadcast)
    words += " from place " + std::to_string(call.root);
  return words;
}

std::string wordsOf(const GroupName &group) {
  std::string words = "group " + quoted(group.name) + " (ranks";
  for (const int rank : group.ranks)
    words += ' ' + std::to_string(rank);
  return words + ')';
}

std::string wordsOf(const Call &call, const GroupName &group) {
  return wordsOf(call) + ", in " + wordsOf(group);
}

std::string wordsOf(const std::vector<int> &ranks) {
  std::string words = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0)
      words += i + 1 == ranks.size() ? " and " : ", ";
    words += std::to_string(ranks[i]);
  }
  return words;
}

std::string wordsOf(std::chrono::milliseconds time) {
  const auto count = time.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s"
                           : std::to_string(count) + " ms";
}

std::optional<std::string> mismatch(const std::vector<const Call *> &calls,
                                    const GroupName &group) {
  for (std::size_t i = 1; i < calls.size(); ++i)
    if (!(*calls[i] == *calls[0]))
      return "calls do not match in " + wordsOf(group) + ": rank " +
             std::to_string(group.ranks[0]) + " calls " + wordsOf(*calls[0]) +
             "; rank " + std::to_string(group.ranks[i]) + " calls " +
             wordsOf(*calls[i]);
  return std::nullopt;
}

std::optional<std::string> mismatchOfTransfer(int from, int to, int channel,
                                              const std::string &sentLabel,
                                              std::int64_t sentBytes,
                                              const std::string &label,
                                              std::int64_t bytes) {
  if (sentLabel == label && sentBytes == bytes)
    return std::nullopt;
  return "messages do not match on channel " + std::to_string(channel) +
         ": rank " + std::to_string(from) + " sends " + quoted(sentLabel) +
         " of " + std::to_string(sentBytes) + " bytes; rank " +
         std::to_string(to) + " receives " + quoted(label) + " of " +
         std::to_string(bytes) + " bytes";
}

std::string wordsOfReceive(const std::string &label, std::int64_t bytes,
                           int from, int channel) {
  return "receive " + quoted(label) + " of " + std::to_string(bytes) +
         " bytes from rank " + std::to_string(from) + " on channel " +
         std::to_string(channel);
}

std::uint64_t hashOf(const std::string &text, std::uint64_t seed) {
  for (const char letter : text)
    seed = (seed ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return seed;
}

int placeIn(const GroupName &group, int rank, int size) {
  const auto &ranks = group.ranks;
  const auto fault = [&](const std::string &what) {
    return CommunicationError(wordsOf(group) + ' ' + what);
  };
  for (auto it = ranks.begin(); it != ranks.end(); ++it) {
    if (*it < 0 || *it >= size)
      throw fault("has rank " + std::to_string(*it) + ", but there are " +
                  std::to_string(size) + " ranks, from 0");
    if (std::find(ranks.begin(), it, *it) != it)
      throw fault("has rank " + std::to_string(*it) + " twice");
  }
  const auto mine = std::find(ranks.begin(), ranks.end(), rank);
  if (mine == ranks.end())
    throw fault("was requested by rank " + std::to_string(rank) +
                ", which is not in it");
  return static_cast<int>(mine - ranks.begin());
}

void checkTransfer(const std::string &label, std::int64_t bytes, int peer,
                   int channel, int size) {
  if (peer < 0 || peer >= size)
    throw CommunicationError(quoted(label) + ": no rank " +
                             std::to_string(peer) + " among " +
                             std::to_string(size) + " ranks, from 0");
  if (bytes < 0)
    throw CommunicationError(quoted(label) + ": a message of " +
                             std::to_string(bytes) + " bytes");
  if (channel < 0)
    throw CommunicationError(quoted(label) + ": no channel " +
                             std::to_string(channel) +
                             "; the first is channel 0");
}

void checkCall(const Call &call, const GroupName &group) {
  const int size = static_cast<int>(group.ranks.size());
  if (call.pieces.outer < 0 || call.pieces.inner < 0)
    throw CommunicationError(wordsOf(call, group) +
                             ": sizes must not be negative");
  if (call.root < 0 || call.root >= size)
    throw CommunicationError(wordsOf(call, group) + ": there are " +
                             std::to_string(size) + " places, from 0");
}

} // namespace mtplan::runtime

//===- process_world.cpp - Ranks as processes -----------------------------===//

#include "runtime/communicator/process_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include <sys/resource.h>

#include "runtime/communicator/call.h"
#include "runtime/communicator/reduce.h"
#include "runtime/communicator/tcp_wire.h"

namespace mtplan::runtime {
namespace {

constexpr auto kTransfer = ProcessLink::Traffic::transfer;
constexpr std::int64_t kHeaderBytes = sizeof(TransferHeader);

std::int64_t inlined(std::int64_t bytes) {
  return bytes <= kInlineBytes ? bytes : 0;
}

/// Raises the limit of open files, so that this process can open one connection
/// per rank.
void allowConnections(int ranks) {
  constexpr rlim_t kFiles = 512;
  const rlim_t needed = static_cast<rlim_t>(ranks) + kFiles;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
    return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

constexpr std::chrono::seconds kClosing{2};

} // namespace

ProcessWorld::ProcessWorld(ProcessLink &itsLink)
    : link(itsLink), shared(link.size(), 0) {
  std::vector<int> all(size());
  std::iota(all.begin(), all.end(), 0);
  everybody = join({"world", all});
}

std::unique_ptr<ProcessGroup> ProcessWorld::join(GroupName group) {
  const int place = placeIn(group, rank(), size());
  std::vector<int> channels;
  for (const int peer : group.ranks)
    channels.push_back(shared[peer]++);
  return std::make_unique<ProcessGroup>(link, std::move(group), place,
                                        std::move(channels));
}

void ProcessWorld::checkChannel(const std::string &label, int channel) const {
  if (channel >= link.channels())
    throw CommunicationError('"' + label + "\": no channel " +
                             std::to_string(channel) + "; there are " +
                             std::to_string(link.channels()) + ", from 0");
}

void ProcessWorld::send(const std::string &label, const void *data,
                        std::int64_t bytes, int to, int channel) {
  checkTransfer(label, bytes, to, channel, size());
  checkChannel(label, channel);
  const TransferHeader header = {HeaderText(label), bytes};
  const char *from = static_cast<const char *>(data);
  std::int64_t at = inlined(bytes);
  std::vector<std::byte> message = link.memory(kHeaderBytes + kInlineBytes);
  std::memcpy(message.data(), &header, sizeof(header));
  copyRows(message.data() + kHeaderBytes, at, from, at, 1, at);
  link.sendOwned(std::move(message), kHeaderBytes + at, to, kTransfer, channel);
  while (at < bytes) {
    const std::int64_t part = std::min(kMessageBytes, bytes - at);
    message = link.memory(part);
    std::memcpy(message.data(), from + at, part);
    link.sendOwned(std::move(message), part, to, kTransfer, channel);
    at += part;
  }
}

void ProcessWorld::receive(const std::string &label, void *data,
                           std::int64_t bytes, int from, int channel) {
  checkTransfer(label, bytes, from, channel, size());
  checkChannel(label, channel);
  const auto what = [&] { return wordsOfReceive(label, bytes, from, channel); };
  std::vector<char> first(kHeaderBytes + kInlineBytes);
  const auto room = static_cast<std::int64_t>(first.size());
  ProcessLink::Requests requests;
  link.receive(requests, {first.data(), 1, room, room}, from, kTransfer,
               channel);
  link.await(requests, what);
  TransferHeader header;
  std::memcpy(&header, first.data(), sizeof(header));
  if (const auto words =
          mismatchOfTransfer(from, rank(), channel, header.label.text(label),
                             header.bytes, label, bytes))
    throw CommunicationError(*words);
  char *to = static_cast<char *>(data);
  std::int64_t at = inlined(bytes);
  copyRows(to, at, first.data() + kHeaderBytes, at, 1, at);
  while (at < bytes) {
    const std::int64_t part = std::min(kMessageBytes, bytes - at);
    link.receive(requests, {to + at, 1, part, part}, from, kTransfer, channel);
    link.await(requests, what);
    at += part;
  }
}

void ProcessWorld::end() {
  link.end();
  everybody->barrier("the end of the run");
  if (const auto stray = link.stray()) {
    TransferHeader header;
    std::memcpy(&header, stray->message.data(),
                std::min(stray->message.size(), sizeof(header)));
    throw CommunicationError(
        "rank " + std::to_string(rank()) + " ended without " +
        wordsOfReceive(header.label.text({}), header.bytes, stray->from,
                       ProcessLink::channelOf(*stray)));
  }
  link.awaitOwned([] { return std::string("the end of the run"); });
}

std::string runOver(ProcessLink &link,
                    const std::function<void(World &)> &body) noexcept {
  std::string why;
  try {
    ProcessWorld world(link);
    body(world);
    link.throwIfFailed();
    world.end();
  } catch (const std::exception &error) {
    why = error.what();
  } catch (...) {
    why = "an unknown exception";
  }
  if (!why.empty())
    link.fail(why);
  return why;
}

std::string
runTcpRank(const TcpStart &start, const WorldOptions &options,
           const std::function<void(World &)> &body,
           const std::function<void(const std::string &why)> &endProcess) {
  std::optional<TcpWire> wire;
  try {
    wire.emplace(start.rank, connectAll(start, std::max(options.gathering,
                                                        options.patience)));
  } catch (const CommunicationError &error) {
    return error.what();
  }
  std::string why;
  {
    ProcessLink link(*wire, options, endProcess);
    why = runOver(link, body);
    if (why.empty())
      why = link.part();
  }
  wire->close(why.empty() ? kClosing : options.ending);
  return why;
}

void runOverTcp(const TcpStart &start, const WorldOptions &options,
                const std::function<void(World &)> &body) {
  const auto end = [&](const std::string &why) {
    std::fprintf(stderr, "rank %d: %s\n", start.rank, why.c_str());
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE);
  };
  allowConnections(start.ranks);
  listenForTermination();
  const std::string why =
      runTcpRank(start, options, body, [&](const std::string &others) {
        end(others + "; did not end within " + wordsOf(options.ending) +
            " after that");
      });
  if (!why.empty())
    end(why);
}

} // namespace mtplan::runtime

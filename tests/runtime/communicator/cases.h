//===- cases.h - Collectives and messages on any transport ------*- C++ -*-===//
//
// Makes random calls of every collective, the same on all ranks of a group, and
// compares each result with that of a loop over all ranks' inputs. The cases
// run on any transport and return the bytes of all results, so that transports
// can be compared.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_RUNTIME_COMMUNICATOR_CASES_H
#define MTPLAN_TESTS_RUNTIME_COMMUNICATOR_CASES_H

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "runtime/backend/element.h"
#include "runtime/communicator/communicator.h"
#include "runtime/communicator/process_world.h"

namespace mtplan::runtime {

using Bytes = std::vector<unsigned char>;

/// Holds the initial value of a result's bytes, which stays where no call
/// writes.
inline constexpr unsigned char kUnwritten = 0xAB;

/// Returns a tensor of random numbers. Their magnitudes differ very much, so
/// that the order of a sum matters. Integers have sums that wrap around.
inline Bytes drawnTensor(ElementType type, std::int64_t elements,
                         std::mt19937_64 &generator) {
  Bytes bytes(elements * bytesOf(type));
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto bits = generator();
    const double mantissa = static_cast<double>(bits >> 12) * 0x1p-52 - 0.5;
    const int exponent = static_cast<int>(bits % 24) - 12;
    const auto integer = static_cast<std::int32_t>(bits >> 32);
    if (type == ElementType::i32)
      std::memcpy(bytes.data() + 4 * i, &integer, 4);
    else
      writeElement(type, bytes.data(), i, std::ldexp(mantissa, exponent));
  }
  return bytes;
}

/// Stores in element `at` of `out` the reduction of element `from` of all
/// tensors of `in`, one for each rank of the group, in the group's order. A sum
/// has the order and the type that communicator.h specifies.
inline void reduceElement(ElementType type, Reduction reduction,
                          const std::vector<Bytes> &in, std::int64_t from,
                          Bytes &out, std::int64_t at) {
  const auto value = [&](std::size_t place) {
    return readElement(type, in[place].data(), from);
  };
  double so = value(0);
  for (std::size_t place = 1; place < in.size(); ++place) {
    if (reduction == Reduction::max)
      so = std::max(so, value(place));
    else if (type == ElementType::f64)
      so += value(place);
    else if (type == ElementType::i32)
      so = static_cast<std::int32_t>(
          static_cast<std::int64_t>(so) +
          static_cast<std::int64_t>(value(place))); // modulo 2^32
    else
      so = static_cast<float>(so) + static_cast<float>(value(place));
  }
  const auto size = static_cast<double>(in.size());
  if (reduction == Reduction::avg)
    so = type == ElementType::i32 ? std::trunc(so / size)
         : type == ElementType::f64
             ? so / size
             : static_cast<float>(so) / static_cast<float>(size);
  writeElement(type, out.data(), at, so);
}

enum class CaseKind {
  allReduce,
  allGather,
  reduceScatter,
  allToAll,
  reduce,
  broadcast
};

struct CommunicatorCase {
  CaseKind kind = CaseKind::allReduce;
  Pieces pieces;
  Reduction reduction = Reduction::sum;
  int root = 0;
  bool inPlace = false;

  std::string words() const {
    return "case of kind " + std::to_string(static_cast<int>(kind)) + ", " +
           std::to_string(pieces.outer) + " x " + std::to_string(pieces.inner) +
           ' ' + nameOf(pieces.type);
  }
};

/// Returns the bytes that the call must return to the rank with index `place`
/// in the group. `in` has the operands of all ranks of the group.
inline Bytes expectedOf(const CommunicatorCase &its,
                        const std::vector<Bytes> &in, int place) {
  const auto [type, outer, inner] = its.pieces;
  const auto size = static_cast<std::int64_t>(in.size());
  const std::int64_t width = bytesOf(type);
  Bytes out;
  const auto resize = [&](std::int64_t n) { out.resize(n * width); };
  const auto copy = [&](std::int64_t to, const Bytes &from, std::int64_t at) {
    std::memcpy(&out[to * width], &from[at * width], width);
  };
  switch (its.kind) {
  case CaseKind::reduce:
    if (place != its.root) {
      out.assign(outer * inner * width, kUnwritten);
      break;
    }
    [[fallthrough]];
  case CaseKind::allReduce:
    resize(outer * inner);
    for (std::int64_t i = 0; i < outer * inner; ++i)
      reduceElement(type, its.reduction, in, i, out, i);
    break;
  case CaseKind::reduceScatter:
    resize(outer * inner);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        reduceElement(type, its.reduction, in, (o * size + place) * inner + i,
                      out, o * inner + i);
    break;
  case CaseKind::allGather:
    resize(outer * size * inner);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t q = 0; q < size; ++q)
        for (std::int64_t i = 0; i < inner; ++i)
          copy((o * size + q) * inner + i, in[q], o * inner + i);
    break;
  case CaseKind::allToAll:
    resize(outer * size * inner);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t q = 0; q < size; ++q)
        for (std::int64_t i = 0; i < inner; ++i)
          copy((o * size + q) * inner + i, in[q],
               (o * size + place) * inner + i);
    break;
  case CaseKind::broadcast:
    out = in[its.root];
    break;
  }
  return out;
}

inline Bytes runCase(const CommunicatorCase &its, Communicator &group,
                     const Bytes &in, std::size_t resultBytes) {
  Bytes out = its.inPlace ? in : Bytes(resultBytes, kUnwritten);
  const void *source = its.inPlace ? out.data() : in.data();
  switch (its.kind) {
  case CaseKind::allReduce:
    group.allReduce("reduced", source, out.data(), its.pieces, its.reduction);
    break;
  case CaseKind::reduce:
    group.reduce("collected", source, out.data(), its.pieces, its.reduction,
                 its.root);
    break;
  case CaseKind::allGather:
    group.allGather("gathered", source, out.data(), its.pieces);
    break;
  case CaseKind::reduceScatter:
    group.reduceScatter("scattered", source, out.data(), its.pieces,
                        its.reduction);
    break;
  case CaseKind::allToAll:
    group.allToAll("exchanged", source, out.data(), its.pieces);
    break;
  case CaseKind::broadcast:
    group.broadcast("told", out.data(), its.pieces, its.root);
    break;
  }
  return out;
}

/// Runs `count` cases. Returns all results, or throws at the first wrong one.
inline Bytes runCases(Communicator &group, std::uint64_t seed, int count) {
  std::mt19937_64 generator(seed);
  const auto pick = [&](const auto &choices) {
    return choices[generator() % choices.size()];
  };
  Bytes results;
  for (int n = 0; n < count; ++n) {
    CommunicatorCase its;
    its.kind = static_cast<CaseKind>(n % 6);
    its.pieces.type = static_cast<ElementType>(n / 6 % 5);
    its.pieces.outer = pick(std::vector<std::int64_t>{1, 1, 2, 3, 7});
    its.pieces.inner =
        pick(std::vector<std::int64_t>{0, 1, 2, 3, 17, 64, 1023, 1025, 5003});
    if (n % 31 == 0) { // more than a transport sends at a time
      its.pieces.outer = n % 62 == 0 ? 2 : 3001;
      its.pieces.inner = n % 62 == 0 ? 150003 : 101;
    }
    its.reduction =
        pick(std::vector{Reduction::sum, Reduction::max, Reduction::avg});
    its.root = static_cast<int>(generator() % group.size());
    its.inPlace = its.kind == CaseKind::broadcast ||
                  (its.kind == CaseKind::allReduce && generator() % 2 == 0);
    const bool whole =
        its.kind == CaseKind::reduceScatter || its.kind == CaseKind::allToAll;
    std::vector<Bytes> in;
    in.reserve(group.size());
    for (int place = 0; place < group.size(); ++place)
      in.push_back(drawnTensor(its.pieces.type,
                               its.pieces.outer * its.pieces.inner *
                                   (whole ? group.size() : 1),
                               generator));
    const Bytes expected = expectedOf(its, in, group.place());
    const Bytes out = runCase(its, group, in[group.place()], expected.size());
    if (out != expected)
      throw std::runtime_error("wrong result: " + its.words());
    results.insert(results.end(), out.begin(), out.end());
  }
  return results;
}

/// Returns the FNV-1a hash of `bytes`.
inline std::uint64_t digestOf(const Bytes &bytes) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const unsigned char byte : bytes)
    digest = (digest ^ byte) * 0x100000001b3;
  return digest;
}

/// Runs every collective over all ranks, over all ranks in reverse order, over
/// a single rank, and over ranks 1 and 0. Then sends messages of several sizes
/// around a ring of all ranks. Throws at the first wrong result or message.
/// Returns the digest of all results of this rank.
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

//===----------------------------------------------------------------------===//
// Ranks over sockets, in one process
//===----------------------------------------------------------------------===//

/// Returns a rendezvous for one run. It has several ports, because other
/// processes may use some of them.
inline TcpStart tcpStart(int ranks) {
  static std::atomic<int> runs{0};
  const int run = runs++;
  TcpStart start;
  start.ranks = ranks;
  start.job = "test " + std::to_string(getpid()) + '.' + std::to_string(run);
  start.host = "127.0.0.1";
  for (int i = 0; i < 8; ++i)
    start.ports.push_back(10000 + (getpid() * 31 + run * 8 + i * 1013) % 20000);
  start.oneHost = true;
  return start;
}

/// Runs ranks as threads, each with its own sockets. Returns the error of each
/// rank, "" if there is none.
inline std::vector<std::string>
runOverSockets(const TcpStart &start, const WorldOptions &options,
               const std::function<void(World &)> &body) {
  std::vector<std::string> errors(start.ranks);
  std::vector<std::thread> threads;
  threads.reserve(start.ranks);
  for (int rank = 0; rank < start.ranks; ++rank)
    threads.emplace_back([&, rank] {
      TcpStart mine = start;
      mine.rank = rank;
      errors[rank] = runTcpRank(mine, options, body);
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Holds the errors of a run: `ofRank` has the message of each rank's
/// exception, and `thrown` the message of the run. A message is "" if there is
/// no error.
struct RunErrors {
  std::vector<std::string> ofRank;
  std::string thrown;

  /// Calls `body` on a rank, and records its exception before it rethrows it.
  void record(int rank, const std::function<void()> &body) {
    try {
      body();
    } catch (const std::exception &error) {
      ofRank[static_cast<std::size_t>(rank)] = error.what();
      throw;
    }
  }
};

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_COMMUNICATOR_CASES_H

//===- process_group.cpp - Collectives between processes ------------------===//

#include "runtime/communicator/process_group.h"

#include <algorithm>
#include <cstring>

#include "runtime/communicator/reduce.h"

namespace mtplan::runtime {
namespace {

Rows rowsAt(const void *base, std::int64_t offset, std::int64_t rows,
            std::int64_t bytes, std::int64_t stride) {
  // Rows describe memory for sends and for receives. The cast is safe, because
  // a send only reads the memory.
  return {const_cast<char *>(static_cast<const char *>(base)) + offset, rows,
          bytes, stride};
}

struct Part {
  std::int64_t row, rows; ///< first row, number of rows
  std::int64_t at, bytes; ///< first byte in a piece, number of bytes
};

/// Calls action(part) for parts of at most kMessageBytes that cover all pieces.
template <typename Action>
void forEachPart(Pieces pieces, const Action &action) {
  const std::int64_t width = bytesOf(pieces.type);
  const std::int64_t piece = pieces.inner * width;
  if (piece == 0)
    return;
  const std::int64_t bytes = std::min(piece, kMessageBytes);
  const std::int64_t rows = kMessageBytes / bytes;
  for (std::int64_t row = 0; row < pieces.outer; row += rows)
    for (std::int64_t at = 0; at < piece; at += bytes)
      action(Part{row, std::min(rows, pieces.outer - row), at,
                  std::min(bytes, piece - at)});
}

/// Calls action(first, count) for consecutive runs of elements. Each rank's
/// share of a run has at most kMessageBytes.
template <typename Action>
void forEachRun(Pieces pieces, int size, const Action &action) {
  const std::int64_t count = pieces.outer * pieces.inner;
  const std::int64_t run = kMessageBytes / 2 * size / bytesOf(pieces.type);
  for (std::int64_t first = 0; first < count; first += run)
    action(first, std::min(run, count - first));
}

std::int64_t bytesOfPieces(Pieces pieces) {
  return pieces.outer * pieces.inner * bytesOf(pieces.type);
}

} // namespace

HeaderText::HeaderText(const std::string &text) : hash(hashOf(text)) {
  std::copy_n(text.begin(), std::min(text.size(), start.size() - 1),
              start.begin());
}

std::string HeaderText::text(const std::string &mine) const {
  return hashOf(mine) == hash ? mine : std::string(start.data());
}

CallHeader::CallHeader(const Call &call, const HeaderText &itsGroup)
    : group(itsGroup), label(call.label),
      kind(static_cast<std::int64_t>(call.kind)),
      type(static_cast<std::int64_t>(call.pieces.type)),
      outer(call.pieces.outer), inner(call.pieces.inner),
      reduction(static_cast<std::int64_t>(call.reduction)), root(call.root) {}

Call CallHeader::call(const std::string &mine) const {
  return {static_cast<CallKind>(kind),
          label.text(mine),
          {static_cast<ElementType>(type), outer, inner},
          static_cast<Reduction>(reduction),
          static_cast<int>(root)};
}

ProcessGroup::ProcessGroup(ProcessLink &itsLink, GroupName group, int place,
                           std::vector<int> itsChannels)
    : link(itsLink), name(std::move(group)), shown(wordsOf(name)), its(place),
      channels(std::move(itsChannels)), slot(sizeof(CallHeader) + kInlineBytes),
      sent(slot * size()), received(slot * size()) {}

/// Exchanges the calls, and small data (`inlined`), with all other ranks of the
/// group.
/// \throws CommunicationError if the calls differ
void ProcessGroup::enter(const Call &call, const RowsOf &inlined) {
  checkCall(call, name);
  const CallHeader header(call, shown);
  ProcessLink::Requests requests;
  for (int i = 1; i < size(); ++i) {
    const int q = (its + i) % size();
    char *to = sent.data() + slot * q;
    std::memcpy(to, &header, sizeof(header));
    const Rows rows = inlined(q);
    copyRows(to + sizeof(header), rows.bytes, rows.base, rows.stride, rows.rows,
             rows.bytes);
    const auto bytes =
        static_cast<std::int64_t>(sizeof(header)) + rows.rows * rows.bytes;
    const auto room = static_cast<std::int64_t>(slot);
    link.receive(requests, {received.data() + slot * q, 1, room, room},
                 name.ranks[q], ProcessLink::Traffic::group, channels[q]);
    link.send(requests, {to, 1, bytes, bytes}, name.ranks[q],
              ProcessLink::Traffic::group, channels[q]);
  }
  link.await(requests, [&] { return wordsOf(call, name); });

  std::vector<Call> calls(size());
  std::vector<const Call *> pointers;
  for (int q = 0; q < size(); ++q) {
    CallHeader theirs = header;
    if (q != its)
      std::memcpy(&theirs, received.data() + slot * q, sizeof(theirs));
    calls[q] = theirs.call(call.label);
    pointers.push_back(&calls[q]);
    if (!(theirs.group == header.group))
      throw CommunicationError(
          "calls do not match: rank " + std::to_string(link.rank()) +
          " calls " + wordsOf(call, name) + "; rank " +
          std::to_string(name.ranks[q]) + " calls " + wordsOf(calls[q]) +
          ", in " + theirs.group.text({}));
  }
  if (const auto words = mismatch(pointers, name))
    throw CommunicationError(*words);
}

const char *ProcessGroup::inlinedFrom(int place) const {
  return received.data() + slot * place + sizeof(CallHeader);
}

void ProcessGroup::exchange(const Call &call, const RowsOf &from,
                            const RowsOf &to) {
  ProcessLink::Requests requests;
  for (int i = 1; i < size(); ++i) {
    const int q = (its + i) % size();
    if (const Rows rows = to(q); rows.rows * rows.bytes > 0)
      link.receive(requests, rows, name.ranks[q], ProcessLink::Traffic::group,
                   channels[q]);
  }
  for (int i = 1; i < size(); ++i) {
    const int q = (its + i) % size();
    if (const Rows rows = from(q); rows.rows * rows.bytes > 0)
      link.send(requests, rows, name.ranks[q], ProcessLink::Traffic::group,
                channels[q]);
  }
  link.await(requests, [&] { return wordsOf(call, name); });
}

void ProcessGroup::make(const Call &call, const void *in, void *out) {
  switch (call.kind) {
  case CallKind::allReduce:
    return reduceTo(call, in, out, [](int) { return true; });
  case CallKind::reduce:
    return reduceTo(call, in, out,
                    [&](int place) { return place == call.root; });
  case CallKind::allGather:
    return gather(call, in, out);
  case CallKind::reduceScatter:
    return scatter(call, in, out);
  case CallKind::allToAll:
    return exchangePieces(call, in, out);
  case CallKind::broadcast:
    return distribute(call, out);
  case CallKind::barrier:
    return enter(call, [](int) { return Rows(); });
  }
}

/// Reduces to every rank whose index in the group `gets` accepts. These ranks
/// reduce small data themselves. For larger data, each rank of the group
/// reduces a share and sends the result to these ranks.
void ProcessGroup::reduceTo(const Call &call, const void *in, void *out,
                            const std::function<bool(int place)> &gets) {
  const Pieces pieces = call.pieces;
  const Reduction reduction = call.reduction;
  const std::int64_t width = bytesOf(pieces.type), all = bytesOfPieces(pieces);
  const bool little = all <= kInlineBytes;
  enter(call, [&](int) { return rowsAt(in, 0, 1, little ? all : 0, 0); });
  std::vector<const void *> sources(size());
  if (little) {
    for (int q = 0; q < size(); ++q)
      sources[q] = q == its ? in : inlinedFrom(q);
    if (gets(its))
      reduceInOrder(pieces.type, reduction, sources, {&out, 1}, 0, all / width);
    return;
  }
  forEachRun(pieces, size(), [&](std::int64_t first, std::int64_t count) {
    const std::int64_t offset = first * width;
    const Share mine = shareOf(count, its, size());
    const std::int64_t bytes = mine.count * width;
    scratch.resize(bytes * (size() + (gets(its) ? 0 : 1)));
    const auto shareIn = [&](const void *buffer, int q) {
      const Share share = shareOf(count, q, size());
      return rowsAt(buffer, offset + share.first * width, 1,
                    share.count * width, 0);
    };
    exchange(
        call, [&](int q) { return shareIn(in, q); },
        [&](int q) { return rowsAt(scratch.data(), q * bytes, 1, bytes, 0); });
    for (int q = 0; q < size(); ++q)
      sources[q] =
          q == its ? shareIn(in, its).base : scratch.data() + q * bytes;
    void *const result =
        gets(its) ? shareIn(out, its).base : scratch.data() + bytes * size();
    if (mine.count > 0)
      reduceInOrder(pieces.type, reduction, sources, {&result, 1}, 0,
                    mine.count);
    exchange(
        call,
        [&](int q) { return rowsAt(result, 0, 1, gets(q) ? bytes : 0, 0); },
        [&](int q) { return gets(its) ? shareIn(out, q) : Rows(); });
  });
}

void ProcessGroup::gather(const Call &call, const void *in, void *out) {
  const Pieces pieces = call.pieces;
  const std::int64_t piece = pieces.inner * bytesOf(pieces.type);
  const std::int64_t all = bytesOfPieces(pieces), row = piece * size();
  const bool little = all <= kInlineBytes;
  enter(call, [&](int) { return rowsAt(in, 0, 1, little ? all : 0, 0); });
  for (int q = 0; q < size(); ++q)
    if (q == its || little)
      copyRows(static_cast<char *>(out) + q * piece, row,
               q == its ? in : inlinedFrom(q), piece, pieces.outer, piece);
  if (little)
    return;
  forEachPart(pieces, [&](const Part &part) {
    exchange(
        call,
        [&](int) {
          return rowsAt(in, part.row * piece + part.at, part.rows, part.bytes,
                        piece);
        },
        [&](int q) {
          return rowsAt(out, part.row * row + q * piece + part.at, part.rows,
                        part.bytes, row);
        });
  });
}

void ProcessGroup::scatter(const Call &call, const void *in, void *out) {
  const Pieces pieces = call.pieces;
  const std::int64_t width = bytesOf(pieces.type);
  const std::int64_t piece = pieces.inner * width, row = piece * size();
  const bool little = bytesOfPieces(pieces) <= kInlineBytes;
  enter(call, [&](int q) {
    return rowsAt(in, q * piece, little ? pieces.outer : 0, piece, row);
  });
  std::vector<const void *> sources(size());
  forEachPart(pieces, [&](const Part &part) {
    const std::int64_t bytes = part.rows * part.bytes;
    const auto partIn = [&](int q) {
      return rowsAt(in, part.row * row + q * piece + part.at, part.rows,
                    part.bytes, row);
    };
    if (!little) {
      scratch.resize(bytes * size());
      exchange(call, partIn, [&](int q) {
        return rowsAt(scratch.data(), q * bytes, 1, bytes, 0);
      });
    }
    const Rows own = partIn(its);
    for (std::int64_t o = 0; o < part.rows; ++o) {
      for (int q = 0; q < size(); ++q)
        sources[q] =
            q == its ? own.base + o * row
                     : (little ? inlinedFrom(q) : scratch.data() + q * bytes) +
                           o * part.bytes;
      void *const result =
          static_cast<char *>(out) + (part.row + o) * piece + part.at;
      reduceInOrder(pieces.type, call.reduction, sources, {&result, 1}, 0,
                    part.bytes / width);
    }
  });
}

void ProcessGroup::exchangePieces(const Call &call, const void *in, void *out) {
  const Pieces pieces = call.pieces;
  const std::int64_t piece = pieces.inner * bytesOf(pieces.type);
  const std::int64_t row = piece * size();
  const bool little = bytesOfPieces(pieces) <= kInlineBytes;
  enter(call, [&](int q) {
    return rowsAt(in, q * piece, little ? pieces.outer : 0, piece, row);
  });
  for (int q = 0; q < size(); ++q)
    if (q == its || little)
      copyRows(static_cast<char *>(out) + q * piece, row,
               q == its ? static_cast<const char *>(in) + its * piece
                        : inlinedFrom(q),
               q == its ? row : piece, pieces.outer, piece);
  if (little)
    return;
  forEachPart(pieces, [&](const Part &part) {
    const auto partOf = [&](const void *buffer, int q) {
      return rowsAt(buffer, part.row * row + q * piece + part.at, part.rows,
                    part.bytes, row);
    };
    exchange(
        call, [&](int q) { return partOf(in, q); },
        [&](int q) { return partOf(out, q); });
  });
}

void ProcessGroup::distribute(const Call &call, void *data) {
  const Pieces pieces = call.pieces;
  const int root = call.root;
  const std::int64_t width = bytesOf(pieces.type), all = bytesOfPieces(pieces);
  const bool little = all <= kInlineBytes;
  enter(call, [&](int) {
    return rowsAt(data, 0, 1, little && its == root ? all : 0, 0);
  });
  if (little) {
    if (its != root)
      copyRows(data, all, inlinedFrom(root), all, 1, all);
    return;
  }
  // The root scatters shares, and each rank forwards its share to all others.
  forEachRun(pieces, size(), [&](std::int64_t first, std::int64_t count) {
    const auto shareTo = [&](int q, bool any) {
      const Share share = shareOf(count, q, size());
      return rowsAt(data, (first + share.first) * width, 1,
                    any ? share.count * width : 0, 0);
    };
    exchange(
        call, [&](int q) { return shareTo(q, its == root); },
        [&](int q) { return shareTo(its, q == root); });
    exchange(
        call, [&](int q) { return shareTo(its, q != root); },
        [&](int q) { return shareTo(q, its != root); });
  });
}

} // namespace mtplan::runtime

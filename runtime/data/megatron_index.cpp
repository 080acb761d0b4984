//===- megatron_index.cpp - The .idx beside a Megatron .bin ---------------===//

#include "runtime/data/megatron_index.h"

#include <cstring>
#include <string_view>

namespace mtplan::runtime {
namespace {

constexpr std::int64_t kLengthBytes = 4, kOffsetBytes = 8;

std::string text(std::int64_t number) { return std::to_string(number); }

TokenKind kindOf(const std::string &path, int code) {
  for (TokenKind kind : {TokenKind::uint8, TokenKind::int8, TokenKind::int16,
                         TokenKind::int32, TokenKind::int64, TokenKind::uint16})
    if (megatronCodeOf(kind) == code)
      return kind;
  throw DataError(path, 17,
                  "element code " + text(code) +
                      " is no integer type; tokens have 1 (uint8), 2 (int8), "
                      "3 (int16), 4 (int32), 5 (int64) or 8 (uint16)");
}

} // namespace

int megatronCodeOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::uint8:
    return 1;
  case TokenKind::int8:
    return 2;
  case TokenKind::int16:
    return 3;
  case TokenKind::int32:
    return 4;
  case TokenKind::int64:
    return 5;
  case TokenKind::uint16:
    return 8;
  case TokenKind::uint32:
    break; // the format has no uint32
  }
  return 0;
}

std::array<std::string, 2> megatronFiles(const std::string &name) {
  const std::string stem = name.ends_with(".bin") || name.ends_with(".idx")
                               ? name.substr(0, name.size() - 4)
                               : name;
  return {stem + ".bin", stem + ".idx"};
}

bool isMegatronIndex(const std::string &path) {
  constexpr std::string_view kMagic(kMegatronMagic, sizeof kMegatronMagic);
  return firstBytes(path, kMagic.size()) == kMagic;
}

MegatronIndex::MegatronIndex(const std::string &path) : file(path) {
  if (file.size() >= 6 && std::memcmp(file.at(0, 6), "TNTIDX", 6) == 0)
    throw DataError(path, 0,
                    "is an index of the older fairseq format (TNTIDX); convert "
                    "it with Megatron-LM's tools to MMIDIDX");
  if (file.size() < kMegatronHeaderBytes)
    throw DataError(path, "has " + text(file.size()) + " bytes, needs " +
                              text(kMegatronHeaderBytes) + " for its header");
  if (std::memcmp(file.at(0, sizeof kMegatronMagic), kMegatronMagic,
                  sizeof kMegatronMagic) != 0)
    throw DataError(path, 0, "does not start with MMIDIDX");
  if (const auto version = file.read<std::uint64_t>(9); version != 1)
    throw DataError(path, 9,
                    "version " + std::to_string(version) + ", can read 1");
  elements = kindOf(path, file.read<std::uint8_t>(17));

  // The products below cannot overflow if neither count exceeds the file's size
  // in bytes.
  const auto sequences = file.read<std::uint64_t>(18);
  const auto boundaries = file.read<std::uint64_t>(26);
  const auto most = static_cast<std::uint64_t>(file.size());
  if (sequences > most)
    throw DataError(path, 18,
                    std::to_string(sequences) + " sequences in a file of " +
                        text(file.size()) + " bytes");
  if (boundaries > most)
    throw DataError(path, 26,
                    std::to_string(boundaries) +
                        " document boundaries in a file of " +
                        text(file.size()) + " bytes");
  if (boundaries == 0)
    throw DataError(path, 26, "0 document boundaries, needs at least 1");
  sequenceCount = static_cast<std::int64_t>(sequences);
  boundaryCount = static_cast<std::int64_t>(boundaries);
  const std::int64_t size = kMegatronHeaderBytes +
                            (kLengthBytes + kOffsetBytes) * sequenceCount +
                            8 * boundaryCount;
  if (file.size() != size && file.size() != size + sequenceCount)
    throw DataError(path, "has " + text(file.size()) + " bytes, but " +
                              text(sequenceCount) + " sequences and " +
                              text(boundaryCount) +
                              " document boundaries take " + text(size));
}

std::int64_t MegatronIndex::length(std::int64_t sequence) const {
  return file.read<std::int32_t>(kMegatronHeaderBytes +
                                 kLengthBytes * sequence);
}

std::int64_t MegatronIndex::offset(std::int64_t sequence) const {
  return file.read<std::int64_t>(kMegatronHeaderBytes +
                                 kLengthBytes * sequenceCount +
                                 kOffsetBytes * sequence);
}

std::int64_t MegatronIndex::firstSequence(std::int64_t document) const {
  return file.read<std::int64_t>(kMegatronHeaderBytes +
                                 (kLengthBytes + kOffsetBytes) * sequenceCount +
                                 8 * document);
}

void MegatronIndex::check(const std::string &binPath,
                          std::int64_t binBytes) const {
  const std::int64_t offsetsAt =
      kMegatronHeaderBytes + kLengthBytes * sequenceCount;
  const std::int64_t documentsAt = offsetsAt + kOffsetBytes * sequenceCount;
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < sequenceCount; ++i) {
    const std::int64_t tokens = length(i), begin = offset(i);
    if (tokens < 0)
      throw DataError(file.path(), kMegatronHeaderBytes + kLengthBytes * i,
                      "sequence " + text(i) + " has " + text(tokens) +
                          " tokens");
    if (begin != end)
      throw DataError(file.path(), offsetsAt + kOffsetBytes * i,
                      "sequence " + text(i) + " begins at byte " + text(begin) +
                          " of the .bin, the one before ends at " + text(end));
    // The sum cannot overflow: `end` is within the .bin, and at most 2^31
    // tokens of 8 bytes are added.
    end += tokens * bytesOf(elements);
    if (end > binBytes)
      throw DataError(file.path(), kMegatronHeaderBytes + kLengthBytes * i,
                      "sequence " + text(i) + " of " + text(tokens) +
                          " tokens ends at byte " + text(end) + ", but " +
                          binPath + " has " + text(binBytes));
  }
  if (end != binBytes)
    throw DataError(binPath, "has " + text(binBytes) +
                                 " bytes, but the sequences of " + file.path() +
                                 " take " + text(end));
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < boundaryCount; ++i) {
    const std::int64_t first = firstSequence(i);
    if (i == 0 ? first != 0 : first < last || first > sequenceCount)
      throw DataError(
          file.path(), documentsAt + 8 * i,
          "document boundary " + text(i) + " is sequence " + text(first) +
              ", needs " +
              (i == 0 ? "0"
                      : "from " + text(last) + " to " + text(sequenceCount)));
    last = first;
  }
  if (last != sequenceCount)
    throw DataError(file.path(), documentsAt + 8 * (boundaryCount - 1),
                    "the last document ends at sequence " + text(last) +
                        ", there are " + text(sequenceCount));
}

} // namespace mtplan::runtime

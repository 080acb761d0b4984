//===- data_command.cpp - The commands of `mtrun data` --------------------===//

#include "runtime/data/data_command.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "runtime/data/digest.h"
#include "runtime/data/files.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

namespace {

constexpr std::int64_t kAnyToken = std::int64_t{1} << 31;
/// Megatron-LM stores the tokens of smaller vocabularies as uint16.
constexpr std::int64_t kMegatronShort = 65500;

std::string text(std::int64_t number) { return std::to_string(number); }

void forEachPiece(
    const TokenFile &from, std::int64_t vocabulary,
    const std::function<void(std::span<const std::int32_t>)> &use) {
  std::vector<std::int32_t> piece(std::size_t{1} << 16);
  for (std::int64_t first = 0; first < from.tokens();) {
    const auto count = std::min(from.tokens() - first,
                                static_cast<std::int64_t>(piece.size()));
    const std::span tokens(piece.data(), static_cast<std::size_t>(count));
    from.read(first, tokens, vocabulary);
    use(tokens);
    first += count;
  }
}

/// Returns the largest token; -1 if there are no tokens.
std::int32_t largestOf(const TokenFile &from, std::int64_t vocabulary) {
  std::int32_t largest = -1;
  forEachPiece(from, vocabulary, [&](std::span<const std::int32_t> tokens) {
    largest = std::max(largest, std::ranges::max(tokens));
  });
  return largest;
}

template <typename T> void writeAs(WholeFile &file, const T &value) {
  file.write(&value, sizeof value);
}

void writeTokens(const TokenFile &from, std::int64_t vocabulary, TokenKind kind,
                 WholeFile &file) {
  forEachPiece(from, vocabulary, [&](std::span<const std::int32_t> tokens) {
    for (std::int32_t token : tokens)
      if (bytesOf(kind) == 1)
        writeAs(file, static_cast<std::uint8_t>(token));
      else if (bytesOf(kind) == 2)
        writeAs(file, static_cast<std::uint16_t>(token));
      else
        writeAs(file, token); // tokens >= 0 are equal as uint32 and int32
  });
}

struct Division {
  std::vector<std::int32_t> lengths; ///< lengths of sequences, in tokens
  /// Lists the first sequence of each document, then the number of sequences.
  std::vector<std::int64_t> documents;
};

void close(const TokenFile &from, std::int64_t length, Division &division) {
  if (length > INT32_MAX)
    throw DataError(from.path(),
                    "a document of " + text(length) +
                        " tokens, but Megatron's index allows 2147483647: name "
                        "the token that ends documents");
  division.lengths.push_back(static_cast<std::int32_t>(length));
  division.documents.push_back(
      static_cast<std::int64_t>(division.lengths.size()));
}

Division divide(const TokenFile &from, const ConvertOptions &options,
                std::int64_t vocabulary) {
  Division division;
  division.documents.push_back(0);
  if (const MegatronIndex *index = from.index();
      index && !options.endOfDocument) {
    for (std::int64_t i = 0; i < index->sequences(); ++i)
      division.lengths.push_back(static_cast<std::int32_t>(index->length(i)));
    for (std::int64_t i = 1; i <= index->documents(); ++i)
      division.documents.push_back(index->firstSequence(i));
    return division;
  }
  std::int64_t length = 0;
  if (options.endOfDocument)
    forEachPiece(from, vocabulary, [&](std::span<const std::int32_t> tokens) {
      for (std::int32_t token : tokens) {
        ++length;
        if (token == *options.endOfDocument) {
          close(from, length, division);
          length = 0;
        }
      }
    });
  else
    length = from.tokens();
  if (length > 0)
    close(from, length, division);
  return division;
}

void writeIndex(const Division &division, TokenKind kind, WholeFile &file) {
  file.write(kMegatronMagic, sizeof kMegatronMagic);
  writeAs(file, std::uint64_t{1});
  writeAs(file, static_cast<std::uint8_t>(megatronCodeOf(kind)));
  writeAs(file, static_cast<std::uint64_t>(division.lengths.size()));
  writeAs(file, static_cast<std::uint64_t>(division.documents.size()));
  for (std::int32_t length : division.lengths)
    writeAs(file, length);
  std::int64_t offset = 0;
  for (std::int32_t length : division.lengths) {
    writeAs(file, offset);
    offset += length * bytesOf(kind);
  }
  for (std::int64_t first : division.documents)
    writeAs(file, first);
}

void writeLlmcHeader(const TokenFile &from, TokenKind kind, WholeFile &file) {
  if (from.tokens() > INT32_MAX)
    throw DataError(from.path(),
                    "has " + text(from.tokens()) +
                        " tokens, but a file of llm.c allows 2147483647");
  std::vector<std::int32_t> header(kLlmcHeaderBytes / sizeof(std::int32_t));
  const bool gpt2 = kind == TokenKind::uint16;
  header[0] = gpt2 ? kLlmcGpt2Magic : kLlmcLlama3Magic;
  header[1] = gpt2 ? 1 : 7;
  header[2] = static_cast<std::int32_t>(from.tokens());
  file.write(header.data(), kLlmcHeaderBytes);
}

TokenKind kindFor(TokenFormat format, std::int64_t vocabulary) {
  switch (format) {
  case TokenFormat::text:
    return TokenKind::uint8;
  case TokenFormat::megatron:
    return vocabulary < kMegatronShort ? TokenKind::uint16 : TokenKind::int32;
  case TokenFormat::llmc:
    return vocabulary <= boundOf(TokenKind::uint16) ? TokenKind::uint16
                                                    : TokenKind::uint32;
  case TokenFormat::uint16:
    return TokenKind::uint16;
  case TokenFormat::uint32:
    break;
  }
  return TokenKind::uint32;
}

} // namespace

Converted convertTokens(const TokenFile &from, const std::string &to,
                        const ConvertOptions &options) {
  const std::int64_t known =
      options.vocabulary
          ? *options.vocabulary
          : std::int64_t{std::max(0, largestOf(from, kAnyToken))} + 1;
  Converted result;
  result.kind = kindFor(options.to, known);
  result.tokens = from.tokens();
  // Reading reports the first token at or above the bound.
  const std::int64_t vocabulary = std::min(known, boundOf(result.kind));

  const bool megatron = options.to == TokenFormat::megatron;
  WholeFile tokens(megatron ? megatronFiles(to)[0] : to);
  if (options.to == TokenFormat::llmc)
    writeLlmcHeader(from, result.kind, tokens);
  writeTokens(from, vocabulary, result.kind, tokens);
  result.documents = 1;
  if (!megatron) {
    tokens.finish();
    return result;
  }
  const Division division = divide(from, options, vocabulary);
  result.documents = static_cast<std::int64_t>(division.documents.size()) - 1;
  WholeFile index(megatronFiles(to)[1]);
  writeIndex(division, result.kind, index);
  tokens.finish();
  index.finish();
  return result;
}

//===----------------------------------------------------------------------===//
// The commands
//===----------------------------------------------------------------------===//

namespace {

/// Returns "1,234,567" for 1234567.
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0;
       at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string plural(std::int64_t number, const std::string &what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

std::string line(const std::string &name, const std::string &value) {
  return name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') +
         value + "\n";
}

std::string checksumOf(const MappedFile &file) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  file.confirmSize();
  Sha256 sum;
  for (std::int64_t at = 0; at < file.size(); at += kPiece) {
    const std::int64_t bytes = std::min(kPiece, file.size() - at);
    sum.add(file.at(at, bytes), static_cast<std::size_t>(bytes));
  }
  return sum.finish();
}

std::string indexPathOf(const TokenFile &file) {
  return megatronFiles(file.path())[1];
}

std::string describe(const TokenFile &file) {
  std::string text = std::string(nameOf(file.format()));
  if (file.format() == TokenFormat::text)
    return text + ", a token is a byte";
  if (file.format() == TokenFormat::megatron)
    text += " .bin and .idx";
  return text + ", tokens are " + nameOf(file.kind());
}

} // namespace

std::string dataInfo(const std::string &path, std::optional<TokenFormat> format,
                     std::optional<std::int64_t> sequence) {
  const TokenFile file = TokenFile::open(path, format);
  std::string text = line("file", file.path());
  text += line("format", describe(file));
  text += line("bytes", grouped(file.bytes().size()));
  text += line("tokens", grouped(file.tokens()));
  if (const MegatronIndex *index = file.index()) {
    std::int64_t shortest = INT64_MAX, longest = 0;
    for (std::int64_t i = 0; i < index->sequences(); ++i) {
      shortest = std::min(shortest, index->length(i));
      longest = std::max(longest, index->length(i));
    }
    text += line("documents", grouped(index->documents()));
    text += line("sequences", grouped(index->sequences()) +
                                  (index->sequences() == 0
                                       ? ""
                                       : ", of " + grouped(shortest) + " to " +
                                             plural(longest, "token")));
  }
  if (sequence) {
    DataOptions options;
    options.path = path;
    options.format = format;
    options.sequence = *sequence;
    text += line("samples", grouped(openDataset(options)->samplesPerEpoch()) +
                                " in an epoch, of " +
                                plural(*sequence, "token") + " and the next");
  }
  text += line("sha256", checksumOf(file.bytes()));
  if (file.index())
    text += line("  .idx", checksumOf(MappedFile(indexPathOf(file))));
  return text;
}

std::string dataCheck(const std::string &path,
                      std::optional<TokenFormat> format,
                      std::optional<std::int64_t> vocabulary) {
  // Opening checks everything except the tokens.
  const TokenFile file = TokenFile::open(path, format);
  const std::int32_t largest = largestOf(file, vocabulary.value_or(kAnyToken));
  if (file.tokens() == 0)
    throw DataError(file.path(), "has no tokens");
  return file.path() + ": " + std::string(nameOf(file.format())) + ", " +
         plural(file.tokens(), "token") +
         (file.index() ? " in " + plural(file.documents(), "document") : "") +
         ", the largest is " + grouped(largest) + ": no faults found\n";
}

std::string dataConvert(const std::string &path,
                        std::optional<TokenFormat> format,
                        const std::string &to, const ConvertOptions &options) {
  const TokenFile from = TokenFile::open(path, format);
  NamedFiles files;
  files.read("FILE", from.path());
  if (from.index())
    files.read("FILE", indexPathOf(from));
  std::vector<std::string> outputs = {to};
  if (options.to == TokenFormat::megatron) {
    const auto pair = megatronFiles(to);
    outputs.assign(pair.begin(), pair.end());
  }
  for (const std::string &output : outputs)
    if (const std::string why = files.write("TO", output); !why.empty())
      throw DataError(output, why);
  const Converted result = convertTokens(from, to, options);
  std::string text = from.path() + " -> ";
  for (const std::string &output : outputs)
    text += (output == outputs.front() ? "" : " and ") + output;
  text += ": " + plural(result.tokens, "token");
  if (options.to == TokenFormat::megatron)
    text += " in " + plural(result.documents, "document");
  return text + ", " + nameOf(result.kind) + "\n";
}

} // namespace mtplan::runtime

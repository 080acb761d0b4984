//===- data_command.cpp - mtrun data info, check and convert --------------===//

#include "runtime/data/data_command.h"

#include <algorithm>
#include <vector>

#include "runtime/data/named_files.h"
#include "runtime/data/sha256.h"

namespace mtplan::runtime {
namespace {

/// 1234567 -> "1,234,567".
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
  // Opening checks everything that is said of the tokens.
  const TokenFile file = TokenFile::open(path, format);
  std::vector<std::int32_t> piece(std::size_t{1} << 16);
  std::int32_t largest = -1;
  for (std::int64_t first = 0; first < file.tokens();) {
    const auto count = std::min(file.tokens() - first,
                                static_cast<std::int64_t>(piece.size()));
    const std::span tokens(piece.data(), static_cast<std::size_t>(count));
    file.read(first, tokens, vocabulary.value_or(INT64_MAX));
    largest =
        std::max(largest, *std::max_element(tokens.begin(), tokens.end()));
    first += count;
  }
  if (file.tokens() == 0)
    throw DataError(file.path(), "has no tokens");
  return file.path() + ": " + std::string(nameOf(file.format())) + ", " +
         plural(file.tokens(), "token") +
         (file.index() ? " in " + plural(file.documents(), "document") : "") +
         ", the largest is " + grouped(largest) + ": nothing is wrong\n";
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

//===- ckpt_convert.cpp - `mtrun ckpt convert` ----------------------------===//

#include "tools/run/ckpt_convert.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "runtime/exchange/export.h"
#include "runtime/exchange/import.h"
#include "tools/run/ckpt_text.h"
#include "tools/run/run_flags.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr std::string_view kMtplan = "mtplan", kHuggingFace = "huggingface",
                           kLlmc = "llm.c";
constexpr std::array kFormats = {kMtplan, kHuggingFace, kLlmc};
constexpr std::array<std::string_view, 4> kTypes = {"fp32", "bf16", "fp16",
                                                    "fp64"};
constexpr std::array kTypeValues = {ElementType::f32, ElementType::bf16,
                                    ElementType::f16, ElementType::f64};

std::size_t wordOf(const char *option, const std::string &word,
                   std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == word)
      return i;
  throw BadInput(fmt::format("{} {}: must be one of {}; nearest is {}", option,
                             word, fmt::join(words, ", "),
                             base::nearestTo(word, words)));
}

// Rejects options without effect on the target format, because a user would
// believe that they had one.
void refuseIdle(const CkptFlags &flags, std::string_view format) {
  auto idle = [&](bool given, const char *option, std::string_view of) {
    if (given && format.find(of) == std::string_view::npos)
      throw BadInput(fmt::format("{}: is for --to {}, this is --to {}", option,
                                 of, format));
  };
  if (format == kMtplan) {
    if (!flags.type.empty())
      throw BadInput("--type: a checkpoint keeps the types of the weights, and "
                     "who trains from it rounds them to those of the plan");
    if (!flags.like.empty())
      throw BadInput("--like: is for files of others, this is --to mtplan");
  }
  idle(!flags.family.empty(), "--family", kHuggingFace);
  idle(flags.shardBytes.has_value(), "--shard-bytes", kHuggingFace);
  idle(flags.heads.has_value(), "--heads", kLlmc);
  if (!flags.like.empty() && (!flags.family.empty() || flags.shardBytes))
    throw BadInput("--like: names and files are those of " + flags.like +
                   "; --family and --shard-bytes say others");
}

std::string exportedText(const CkptFlags &flags, const Exported &exported,
                         bool huggingFace) {
  std::string text =
      fmt::format("{}: {} tensors in {}, {}\n", flags.to, exported.tensors,
                  exported.files.size() == 1
                      ? std::string("1 file")
                      : fmt::format("{} files", exported.files.size()),
                  sizeText(exported.bytes));
  if (!exported.leftOut.empty())
    text += fmt::format(
        "left out, as no parameter: {}{}; --like takes them from the files "
        "that the weights came from\n",
        exported.leftOut.front(),
        exported.leftOut.size() == 1
            ? ""
            : fmt::format(" and {} more", exported.leftOut.size() - 1));
  if (huggingFace && !exported.hasConfig)
    text += "without config.json, which weights do not say: put the model's "
            "beside them, or take it with --like\n";
  return text;
}

} // namespace

std::string ckptConvert(const CkptFlags &flags) {
  std::string_view format;
  if (!flags.toFormat.empty())
    format = kFormats[wordOf("--to", flags.toFormat, kFormats)];
  ExportOptions options;
  if (!flags.type.empty())
    options.type = kTypeValues[wordOf("--type", flags.type, kTypes)];
  if (flags.heads && *flags.heads < 1)
    throw BadInput(fmt::format("--heads {}: must be at least 1", *flags.heads));
  if (flags.shardBytes && *flags.shardBytes < 1)
    throw BadInput(
        fmt::format("--shard-bytes {}: must be at least 1", *flags.shardBytes));
  const std::unique_ptr<WeightSource> source = openWeights(flags.from);
  if (format.empty())
    format = source->run() ? kHuggingFace : kMtplan;
  refuseIdle(flags, format);
  if (format == kMtplan) {
    const Imported imported = importWeights(*source, flags.to);
    return fmt::format("{}: {} of {} parameters, {}\nmtrun run --checkpoint {} "
                       "begins with them\n",
                       imported.checkpoint,
                       fmt::format("{} tensors", imported.tensors),
                       countText(static_cast<double>(imported.parameters)),
                       sizeText(imported.bytes), flags.to);
  }
  std::unique_ptr<WeightSource> like;
  if (!flags.like.empty())
    like = openWeights(flags.like);
  options.like = like.get();
  options.family = flags.family;
  options.heads = flags.heads;
  options.shardBytes = flags.shardBytes;
  return exportedText(flags,
                      format == kLlmc
                          ? exportLlmc(*source, flags.to, options)
                          : exportHuggingFace(*source, flags.to, options),
                      format == kHuggingFace);
}

} // namespace mtplan::tools

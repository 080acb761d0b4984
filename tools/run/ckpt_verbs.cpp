//===- ckpt_verbs.cpp - `mtrun ckpt ...` ----------------------------------===//

#include "tools/run/ckpt_verbs.h"

#include <array>
#include <filesystem>
#include <set>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest_word.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/exchange/detect_weights.h"
#include "runtime/exchange/export.h"
#include "runtime/exchange/import.h"
#include "runtime/exchange/weight_source.h"
#include "tools/run/run_flags.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

std::string sizeText(std::int64_t bytes) {
  return bytesText(planner::Bytes{static_cast<double>(bytes)});
}

std::string line(const std::string &name, const std::string &value) {
  return fmt::format("{:<12}{}\n", name, value);
}

std::string plural(std::int64_t count, const std::string &what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Returns "28 tensors, 124 M elements in F32".
std::string contentText(const WeightSource &source, bool weights) {
  std::int64_t tensors = 0, elements = 0;
  std::set<std::string> types;
  for (const auto &[name, tensor] : source.tensors()) {
    if ((tensor.kind == StateKind::weight) != weights)
      continue;
    tensors += 1;
    elements += tensor.elements();
    types.insert(safetensorsType(tensor.type));
  }
  if (tensors == 0)
    return "none";
  std::string text =
      fmt::format("{}, {} elements in ", plural(tensors, "tensor"),
                  countText(static_cast<double>(elements)));
  for (const std::string &type : types)
    text += (type == *types.begin() ? "" : " and ") + type;
  return text;
}

std::string runText(const RunState &run) {
  std::string text;
  if (run.step > 0) {
    text += line("updates", std::to_string(run.updates)) +
            line("samples",
                 fmt::format("{}, batches of {} x {} tokens", run.samples,
                             run.globalBatch, run.sequence)) +
            line("seed", std::to_string(run.seed));
    if (run.scaler)
      text += line("loss scale", fmt::format("{}", run.scaler->scale));
    text += line("plan", run.plan) + line("data", run.data);
  }
  std::string options;
  for (const auto &[name, value] : run.options)
    options += fmt::format("{}{} {}", options.empty() ? "" : " ", name, value);
  if (!options.empty())
    text += line("options", options);
  return text;
}

std::string originText(const Origin &origin) {
  if (origin.llmc)
    return fmt::format("llm.c: {} layers, {} heads, {} tokens padded to {}",
                       origin.llmc->layers, origin.llmc->heads,
                       origin.llmc->vocabulary, origin.llmc->paddedVocabulary);
  return fmt::format(
      "Hugging Face: {} in {}",
      plural(static_cast<std::int64_t>(origin.names().size()), "tensor"),
      plural(static_cast<std::int64_t>(origin.files.size()), "file"));
}

// Returns "F32[4, 8]", or "absent".
std::string kindText(const std::optional<SourceTensor> &tensor) {
  return tensor ? safetensorsType(tensor->type) + shapeWords(tensor->shape)
                : "absent";
}

// Returns a line for every tensor that contradicts the manifest.
std::string damageOf(const std::string &checkpoint, std::string &holds) try {
  const StoredState stored(checkpoint);
  std::string faults;
  std::int64_t bytes = 0;
  auto check = [&](const std::string &name, const StoredTensor &tensor) {
    bytes += tensor.bytes;
    try {
      StoredState::verify(name, tensor);
    } catch (const CheckpointError &error) {
      faults += std::string("  ") + error.what() + "\n";
    }
  };
  for (const auto &[name, tensor] : stored.tensors())
    check(name, tensor);
  for (const auto &[name, tensor] : stored.others())
    check(name, tensor);
  holds = fmt::format("{}, {}",
                      plural(static_cast<std::int64_t>(stored.tensors().size() +
                                                       stored.others().size()),
                             "tensor"),
                      sizeText(bytes));
  return faults;
} catch (const std::runtime_error &error) {
  return std::string("  ") + error.what() + "\n";
}

std::string ckptInfo(const std::string &path, bool tensors) {
  const std::unique_ptr<WeightSource> source = openWeights(path);
  std::string text = line("kind", source->what());
  if (const std::string checkpoint = checkpointAt(path);
      !checkpoint.empty() && checkpoint != path) {
    text += line("newest", checkpoint);
    std::string steps;
    for (const std::int64_t step : stepsIn(path))
      steps += (steps.empty() ? "" : ", ") + std::to_string(step);
    text += line("steps", steps);
  }
  text += line("model", source->model());
  if (source->run())
    text += runText(*source->run());
  text += line("weights", contentText(*source, true));
  if (source->run())
    text += line("moments", contentText(*source, false));
  if (source->run() && source->origin())
    text += line("came from", originText(*source->origin()));
  text += line("size", sizeText(source->bytes()));
  if (tensors)
    for (const auto &[name, tensor] : source->tensors())
      text += fmt::format("{:<6}{:<18} {}\n", safetensorsType(tensor.type),
                          shapeWords(tensor.shape), name);
  return text;
}

// Checks a checkpoint, or all checkpoints in a folder. The answer is no if a
// checkpoint is damaged; the text lists all damage.
CkptAnswer ckptVerify(const std::string &path) {
  std::vector<std::string> checkpoints;
  if (std::filesystem::is_directory(path) && checkpointAt(path) != path)
    for (const std::int64_t step : stepsIn(path))
      checkpoints.push_back(path + "/" + stepName(step));
  else if (checkpointAt(path) == path)
    checkpoints.push_back(path);
  CkptAnswer answer;
  if (checkpoints.empty()) {
    const std::unique_ptr<WeightSource> source = openWeights(path);
    answer.text = fmt::format(
        "{}: {}: names, shapes and sizes are right; such files have no "
        "checksums\n",
        path, source->what());
    return answer;
  }
  for (const std::string &checkpoint : checkpoints) {
    std::string holds;
    const std::string faults = damageOf(checkpoint, holds);
    answer.text += faults.empty()
                       ? fmt::format("{}: whole: {}\n", checkpoint, holds)
                       : fmt::format("{}: damaged:\n{}", checkpoint, faults);
    answer.yes = answer.yes && faults.empty();
  }
  return answer;
}

CkptAnswer ckptDiff(const std::string &first, const std::string &second) {
  const std::unique_ptr<WeightSource> a = openWeights(first);
  const std::unique_ptr<WeightSource> b = openWeights(second);
  const WeightComparison compared = compareWeights(*a, *b);
  CkptAnswer answer;
  for (const WeightDifference &one : compared.differences) {
    answer.text += one.name + ": ";
    if (!one.first || !one.second || one.first->shape != one.second->shape)
      answer.text += fmt::format("{} against {}\n", kindText(one.first),
                                 kindText(one.second));
    else
      answer.text += fmt::format(
          "{} of {} elements, by at most {:.3g} (element {}), where the "
          "largest is {:.3g}\n",
          one.elements, one.first->elements(), one.largest, one.at, one.size);
  }
  answer.yes = compared.differences.empty();
  answer.text += fmt::format(
      "{} in both, {}{}\n", plural(compared.tensors, "tensor"),
      answer.yes
          ? "all equal"
          : plural(static_cast<std::int64_t>(compared.differences.size()),
                   "difference"),
      compared.withoutMoments ? "; one of the two has no moments" : "");
  return answer;
}

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

// Rejects options that have no effect for the target format, so that no user
// relies on such an option.
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

} // namespace

CLI::App *describeCkpt(CLI::App &app, CkptFlags &flags) {
  CLI::App *ckpt =
      app.add_subcommand("ckpt", "inspect and convert checkpoints and weights");
  ckpt->require_subcommand(1);
  auto verb = [&](const char *name, const char *what) {
    CLI::App *one = ckpt->add_subcommand(name, what);
    one->add_option("PATH", flags.from,
                    "checkpoint, folder of checkpoints, Hugging Face "
                    "safetensors, or llm.c model")
        ->required()
        ->type_name("");
    return one;
  };
  verb("info", "print kind, step and contents")
      ->add_flag("--tensors", flags.tensors, "list the tensors");
  verb("verify", "check all files against their checksums");
  verb("diff", "print the tensors that differ between two")
      ->add_option("OTHER", flags.to)
      ->required()
      ->type_name("");
  CLI::App *convert =
      verb("convert", "convert weights into a checkpoint, or out of one");
  convert->add_option("TO", flags.to, "folder, or file for llm.c")
      ->required()
      ->type_name("");
  convert
      ->add_option("--to", flags.toFormat,
                   "target format: mtplan, huggingface or llm.c (default: "
                   "huggingface from a checkpoint, else mtplan)")
      ->type_name("WORD");
  convert
      ->add_option(
          "--type", flags.type,
          "element type: fp32, bf16, fp16 or fp64 (default: unchanged)")
      ->type_name("WORD");
  convert
      ->add_option("--like", flags.like,
                   "take names, order, types and other tensors from these "
                   "files")
      ->type_name("PATH");
  convert
      ->add_option("--family", flags.family,
                   "model family that names the tensors (default: detected)")
      ->type_name("WORD");
  convert
      ->add_option(
          "--heads", flags.heads,
          "attention heads, which llm.c's file holds and weights do not")
      ->type_name("N");
  convert
      ->add_option("--shard-bytes", flags.shardBytes,
                   "largest file, unless one tensor is larger (default: "
                   "5000000000)")
      ->type_name("N");
  return ckpt;
}

CkptAnswer runCkpt(const CLI::App &ckpt, CkptFlags flags) {
  for (std::string *path : {&flags.from, &flags.to, &flags.like}) {
    // A trailing slash would give paths such as "kept//step-00000000".
    while (path->size() > 1 && path->back() == '/')
      path->pop_back();
  }
  const std::string verb = ckpt.get_subcommands().front()->get_name();
  const bool takesTwo = verb == "diff" || verb == "convert";
  if (flags.from.empty() || (takesTwo && flags.to.empty()))
    throw BadInput("an empty path names nothing");
  if (verb == "info")
    return {ckptInfo(flags.from, flags.tensors), true};
  if (verb == "verify")
    return ckptVerify(flags.from);
  if (verb == "diff")
    return ckptDiff(flags.from, flags.to);
  return {ckptConvert(flags), true};
}

} // namespace mtplan::tools

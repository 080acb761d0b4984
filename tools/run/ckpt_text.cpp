//===- ckpt_text.cpp - Descriptions of checkpoints ------------------------===//

#include "tools/run/ckpt_text.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/stored_state.h"
#include "runtime/exchange/detect_weights.h"
#include "runtime/exchange/weight_diff.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

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

// Returns "F32[4, 8]", or that there is none.
std::string kindText(const std::optional<SourceTensor> &tensor) {
  return tensor ? safetensorsType(tensor->type) + shapeWords(tensor->shape)
                : "not there";
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

} // namespace

std::string sizeText(std::int64_t bytes) {
  return bytesText(planner::Bytes{static_cast<double>(bytes)});
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

} // namespace mtplan::tools

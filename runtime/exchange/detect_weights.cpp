//===- detect_weights.cpp - Recognises files of weights -------------------===//

#include "runtime/exchange/detect_weights.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/data/token_file.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char *kOneFile = "model.safetensors",
                     *kIndexFile = "model.safetensors.index.json";

// This many bytes suffice to identify a file.
constexpr std::size_t kStart = 32;

/// Describes a format that users pass by mistake.
struct Foreign {
  std::string_view start;
  const char *what;
};
using namespace std::string_view_literals;
constexpr std::array<Foreign, 8> kForeign = {
    {{"version https://git-lfs"sv,
      "a pointer of Git LFS and not the file itself, which `git lfs pull` "
      "fetches"},
     {"PK\x03\x04"sv,
      "a zip archive, probably of torch.save: save the model as safetensors"},
     {"\x80\x02"sv, "a pickle: save the model as safetensors"},
     {"GGUF"sv, "a file of llama.cpp (GGUF): name the safetensors that it was "
                "made from"},
     {"\x89HDF"sv, "an HDF5 file: save the model as safetensors"},
     {"\x88\xd4\x34\x01"sv, "tokens for llm.c (20240520), not a model"},
     {"\xc7\xd7\x34\x01"sv, "a debug state of llm.c (20240327), not a model"},
     {"\x8f\xd8\x34\x01"sv,
      "an optimizer state of llm.c (20240527); its weights are in model_*.bin "
      "beside it"}}};

bool isLlmc(const std::string &start) {
  return start.size() >= sizeof(kLlmcModelMagic) &&
         std::memcmp(start.data(), &kLlmcModelMagic, sizeof(kLlmcModelMagic)) ==
             0;
}

// Rejects files of other known formats. The first 8 bytes of a safetensors file
// are the length of its header, which is at most kMostHeaderBytes. In the other
// formats, these bytes are a larger number.
void refuseForeign(const std::string &path, const std::string &start) {
  std::uint64_t length = 0;
  if (start.size() < sizeof(length))
    return;
  std::memcpy(&length, start.data(), sizeof(length));
  if (length <= static_cast<std::uint64_t>(kMostHeaderBytes))
    return;
  for (const Foreign &each : kForeign)
    if (start.starts_with(each.start))
      throw DataError(path, std::string("is ") + each.what);
}

// Rejects a folder with a model of llm.c, or without any file of weights. For
// other folders, the reader of Hugging Face's files reports which file is
// missing.
void expectSomethingIn(const std::string &folder) {
  // Names the models of llm.c.
  std::set<std::string> models;
  bool looksLikeTheirs = false;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string ending = at->path().extension();
    const bool isBin = ending == ".bin";
    if (isBin && isLlmc(firstBytes(at->path(), kStart)))
      models.insert(at->path().filename());
    else
      looksLikeTheirs |= isBin || ending == ".safetensors" || ending == ".pt" ||
                         ending == ".pth";
  }
  if (!models.empty())
    throw DataError(folder,
                    "is a folder; name the file of the llm.c model in it: \"" +
                        *models.rbegin() + '"');
  if (!looksLikeTheirs)
    throw DataError(folder, std::string("has no checkpoint (step-...), and "
                                        "neither ") +
                                kOneFile + " nor " + kIndexFile);
}

} // namespace

std::string checkpointAt(const std::string &path) {
  if (!fs::is_directory(path))
    return "";
  if (fs::exists(fs::path(path) / kManifestName))
    return path;
  const std::vector<std::int64_t> steps = stepsIn(path);
  return steps.empty() ? "" : path + "/" + stepName(steps.back());
}

bool hasHuggingFace(const std::string &folder) {
  return fs::exists(fs::path(folder) / kOneFile) ||
         fs::exists(fs::path(folder) / kIndexFile);
}

WeightOwner detectWeights(const std::string &path) {
  if (!checkpointAt(path).empty())
    return WeightOwner::mtplan;
  if (fs::is_directory(path)) {
    if (!hasHuggingFace(path))
      expectSomethingIn(path);
    const fs::path file = fs::path(path) / kOneFile;
    refuseForeign(file, firstBytes(file, kStart));
    return WeightOwner::huggingFace;
  }
  if (fs::path(path).filename() == kManifestName)
    throw DataError(path, "belongs to a checkpoint; name the folder that it "
                          "is in");
  if (fs::path(path).extension() == ".json")
    return WeightOwner::huggingFace;
  const std::string start = firstBytes(path, kStart);
  if (isLlmc(start))
    return WeightOwner::llmc;
  refuseForeign(path, start);
  return WeightOwner::huggingFace;
}

} // namespace mtplan::runtime

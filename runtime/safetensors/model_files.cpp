//===- model_files.cpp - The tensors of a model, in one file or many ------===//

#include "runtime/safetensors/model_files.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/json_events.h"

namespace mtplan::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char *kOneFile = "model.safetensors";
constexpr const char *kIndexFile = "model.safetensors.index.json";

std::string inQuotes(std::string_view name) {
  return "'" + base::shown(name) + "'";
}

bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// What a folder without a model has that looks like one.
std::string nearestIn(const fs::path &folder) {
  std::set<std::string> files, pickles;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path name = at->path().filename();
    if (name.extension() == ".safetensors")
      files.insert(name.string());
    else if (name.extension() == ".bin" || name.extension() == ".pt" ||
             name.extension() == ".pth")
      pickles.insert(name.string());
  }
  if (files.size() == 1)
    return "; name its " + inQuotes(*files.begin()) + " itself";
  if (!files.empty())
    return "; of its " + std::to_string(files.size()) +
           " files .safetensors, such as " + inQuotes(*files.begin()) +
           ", the index is missing";
  if (!pickles.empty())
    return "; " + inQuotes(*pickles.begin()) +
           " is of another format: save the model as safetensors";
  return "";
}

ModelTensor placeOf(const ModelFile &file, const SafeTensor &tensor) {
  return {&file.bytes, &tensor, file.header.dataStart + tensor.begin};
}

} // namespace

ModelFiles ModelFiles::open(const std::string &path) {
  const fs::path named(path);
  std::error_code ignored;
  if (!fs::is_directory(named, ignored))
    return named.extension() == ".json" ? openShards(path) : openOne(path);
  // Where there are both, other tools take the one file.
  if (isThere(named / kOneFile))
    return openOne(named / kOneFile);
  if (isThere(named / kIndexFile))
    return openShards(named / kIndexFile);
  throw DataError(path, std::string("has neither ") + kOneFile + " nor " +
                            kIndexFile + nearestIn(named));
}

ModelFiles ModelFiles::openOne(const std::string &path) {
  ModelFiles model;
  model.opened.push_back(std::make_unique<const ModelFile>(path));
  const ModelFile &file = *model.opened[0];
  for (const SafeTensor &tensor : file.header.tensors)
    model.places.emplace(tensor.name, placeOf(file, tensor));
  return model;
}

ModelFiles ModelFiles::openShards(const std::string &indexPath) {
  ModelFiles model;
  model.shards = readIndex(indexPath);
  model.openShardFiles(indexPath);

  // Names of the files that hold each tensor.
  std::map<std::string_view, std::vector<std::string>> holders;
  for (const auto &file : model.opened)
    for (const SafeTensor &tensor : file->header.tensors)
      holders[tensor.name].push_back(
          fs::path(file->bytes.path()).filename().string());

  const auto &weightMap = model.shards->weightMap;
  auto refuse = [&](std::string_view tensor, const std::string &why) {
    throw DataError(indexPath, "tensor " + inQuotes(tensor) + " " + why);
  };
  for (const auto &[name, file] : weightMap) {
    const auto found = holders.find(name);
    if (found == holders.end())
      refuse(name,
             "is in none of the files; it should be in " + inQuotes(file));
    const std::vector<std::string> &in = found->second;
    if (in.size() > 1)
      refuse(name, "is in " + inQuotes(in[0]) + " and in " + inQuotes(in[1]) +
                       "; it should be in " + inQuotes(file) + " alone");
    if (in[0] != file)
      refuse(name, "is in " + inQuotes(in[0]) + "; it should be in " +
                       inQuotes(file));
  }
  for (const auto &[name, in] : holders)
    if (!weightMap.contains(std::string(name)))
      refuse(name, "is in " + inQuotes(in[0]) + ", but not in weight_map");

  for (const auto &file : model.opened)
    for (const SafeTensor &tensor : file->header.tensors)
      model.places.emplace(tensor.name, placeOf(*file, tensor));
  return model;
}

void ModelFiles::openShardFiles(const std::string &indexPath) {
  std::map<std::string, std::string> firstTensor; // of each file
  for (const auto &[tensor, file] : shards->weightMap)
    firstTensor.emplace(file, tensor);
  const fs::path folder = fs::path(indexPath).parent_path();
  for (const auto &[name, tensor] : firstTensor) {
    const fs::path path = folder / name;
    if (!isThere(path))
      throw DataError(indexPath, "file " + inQuotes(name) +
                                     " is missing; it should hold tensor " +
                                     inQuotes(tensor));
    opened.push_back(std::make_unique<const ModelFile>(path));
  }
}

const ModelTensor *ModelFiles::find(std::string_view name) const {
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &found->second;
}

} // namespace mtplan::runtime

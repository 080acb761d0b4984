//===- import.cpp - Imports weights as a checkpoint -----------------------===//

#include "runtime/exchange/import.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/data/digest.h"
#include "runtime/exchange/detect_weights.h"
#include "runtime/exchange/weight_part.h"

namespace mtplan::runtime {

namespace {

Digest digestOf(const std::vector<std::byte> &bytes) {
  return runtime::digestOf(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

void writeParameters(const WeightSource &source, const ModelState &state,
                     const std::string &partial, Manifest &manifest) {
  for (std::size_t f = 0; f < state.files.size(); ++f) {
    const StateFile &file = state.files[f];
    DurableFile out(partial + "/" + file.name, DurableFile::Open::create);
    out.reserve(file.bytes);
    out.writeAt(0, file.header.data(), file.header.size());
    for (const StateTensor &tensor : state.tensors) {
      if (tensor.file != static_cast<int>(f))
        continue;
      const std::vector<std::byte> bytes = source.read(tensor.name);
      out.writeAt(tensor.offset, bytes.data(), bytes.size());
      manifest.tensors.push_back(
          {tensor.name, file.name, textOf(digestOf(bytes))});
    }
    out.finish();
    manifest.files.push_back(
        {file.name, file.bytes, textOf(runtime::digestOf(file.header))});
  }
}

std::vector<SafeTensor> othersOf(const WeightSource &source) {
  const Origin &origin = *source.origin();
  std::vector<SafeTensor> others;
  if (origin.files.empty())
    return others;
  const std::map<std::string, WeightRule> rules = rulesOf(origin, source);
  for (const OriginFile &file : origin.files)
    for (const SafeTensor &tensor : file.header.tensors)
      if (!rules.contains(tensor.name) && source.hasOther(tensor.name))
        others.push_back(tensor);
  sortAsReference(others);
  return others;
}

void writeOrigin(const WeightSource &source, const std::string &partial,
                 Manifest &manifest) {
  SafetensorsHeader header;
  header.metadata = originTexts(*source.origin());
  header.tensors = othersOf(source);
  const std::string start = layOut(header);
  DurableFile out(partial + "/" + kOriginName, DurableFile::Open::create);
  out.writeAt(0, start.data(), start.size());
  std::int64_t end = header.dataStart;
  for (const SafeTensor &tensor : header.tensors) {
    const std::vector<std::byte> bytes = source.readOther(tensor.name);
    out.writeAt(header.dataStart + tensor.begin, bytes.data(), bytes.size());
    end = header.dataStart + tensor.end;
    manifest.tensors.push_back(
        {tensor.name, kOriginName, textOf(digestOf(bytes))});
  }
  out.finish();
  manifest.files.push_back(
      {kOriginName, end, textOf(runtime::digestOf(start))});
}

} // namespace

Imported importWeights(const WeightSource &source, const std::string &folder) {
  // A folder with both formats would be ambiguous.
  if (hasHuggingFace(folder))
    throw WeightError(folder +
                      ": has Hugging Face weights, which a checkpoint in the "
                      "same folder would hide; name another folder");
  const FolderLock lock(folder);
  if (const std::vector<std::int64_t> steps = stepsIn(folder); !steps.empty())
    throw WeightError(folder + ": has a checkpoint already, of step " +
                      std::to_string(steps.back()) +
                      "; weights go to a folder of their own");
  Imported imported;
  std::vector<StateTensor> tensors;
  for (const auto &[name, tensor] : source.tensors()) {
    if (tensor.kind != StateKind::weight)
      continue;
    tensors.push_back({name, tensor.kind, tensor.type, tensor.shape});
    imported.tensors += 1;
    imported.parameters += tensor.elements();
  }
  const ModelState state = placed(std::move(tensors));
  const std::string partial = partialFolder(folder, 0);
  Manifest manifest;
  manifest.run.model = source.model();
  try {
    makeFolder(partial);
    writeParameters(source, state, partial, manifest);
    if (source.origin())
      writeOrigin(source, partial, manifest);
    for (const ManifestFile &file : manifest.files)
      imported.bytes += file.bytes;
    // publish() removes no checkpoints here, because the folder holds no older
    // ones.
    (void)publish(folder, manifest, 2);
  } catch (...) {
    removeFolder(partial);
    throw;
  }
  imported.checkpoint = folder + "/" + stepName(0);
  return imported;
}

Imported importWeights(const std::string &path, const std::string &folder) {
  return importWeights(*openWeights(path), folder);
}

} // namespace mtplan::runtime

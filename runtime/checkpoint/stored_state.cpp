//===- stored_state.cpp - The tensors of a checkpoint on disk -------------===//

#include "runtime/checkpoint/stored_state.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/data/digest.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

StoredState::StoredState(const std::string &checkpoint)
    : manifest(readManifest(checkpoint)) {
  files.reserve(manifest.files.size()); // tensors point to them
  std::map<std::string, StoredTensor> byFile;
  for (const ManifestFile &named : manifest.files) {
    const MappedFile &file = files.emplace_back(checkpoint + "/" + named.name);
    const SafetensorsHeader header = readHeader(file);
    const std::string is =
        textOf(digestOfFile(file.path(), 0, header.dataStart));
    if (is != named.header)
      throw CheckpointError(file.path() + ": its header has checksum " + is +
                            ", not " + named.header +
                            " of the manifest: it has been damaged");
    if (named.name == kOriginName)
      texts = header.metadata;
    for (const SafeTensor &tensor : header.tensors)
      byFile[named.name + '\n' + tensor.name] = {tensor.type,
                                                 tensor.shape,
                                                 &file,
                                                 header.dataStart +
                                                     tensor.begin,
                                                 tensor.end - tensor.begin,
                                                 ""};
  }
  const std::string where = checkpoint + "/" + kManifestName + ": ";
  for (const ManifestTensor &named : manifest.tensors) {
    const auto found = byFile.find(named.file + '\n' + named.name);
    if (found == byFile.end())
      throw CheckpointError(where + "tensor " + named.name +
                            " is not in the file " + named.file);
    StoredTensor tensor = found->second;
    tensor.checksum = named.checksum;
    auto &known = named.file == kOriginName ? kept : all;
    if (!known.emplace(named.name, std::move(tensor)).second)
      throw CheckpointError(where + "has tensor " + named.name + " twice");
    byFile.erase(found);
  }
  if (!byFile.empty()) {
    const std::string &first = byFile.begin()->first;
    const std::size_t line = first.find('\n');
    throw CheckpointError(where + "has nothing of tensor " +
                          first.substr(line + 1) + " in the file " +
                          first.substr(0, line));
  }
}

void StoredState::verify(const std::string &name, const StoredTensor &tensor) {
  std::string is;
  try {
    is = textOf(digestOfFile(tensor.file->path(), tensor.offset, tensor.bytes));
  } catch (const CheckpointError &error) {
    throw CheckpointError(error.what() + (", in tensor " + name));
  }
  if (is != tensor.checksum)
    throw CheckpointError(tensor.file->path() + ": tensor " + name +
                          " has checksum " + is + ", not " + tensor.checksum +
                          " of the manifest: it has been damaged");
}

} // namespace mtplan::runtime

//===- checkpoint_folder.cpp - Checkpoints on disk ------------------------===//

#include "runtime/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/data/digest.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStep = "step-", kPartial = ".partial",
                           kReplaced = ".replaced", kLatest = "latest";
constexpr std::size_t kDigits = 8;

// Returns the step in the name of a complete checkpoint; -1 for other names.
std::int64_t stepOf(std::string_view name) {
  if (!name.starts_with(kStep))
    return -1;
  name.remove_prefix(kStep.size());
  std::int64_t step = -1;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() &&
                 stepName(step) == std::string(kStep) + std::string(name)
             ? step
             : -1;
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator all(folder, error), end; !error && all != end;
       all.increment(error))
    names.push_back(all->path().filename());
  if (error && error != std::errc::no_such_file_or_directory)
    throw CheckpointError(folder + ": cannot list it: " + error.message());
  std::ranges::sort(names);
  return names;
}

void setLatest(const std::string &folder, const std::string &name) {
  replaceFile(folder + "/" + std::string(kLatest), name + "\n");
}

bool isLatest(const std::string &folder, const std::string &name) {
  const std::string wanted = name + "\n";
  std::string said(wanted.size() + 1, '\0'); // + 1 detects longer texts
  std::ifstream file(folder + "/" + std::string(kLatest));
  file.read(said.data(), std::ssize(said));
  said.resize(static_cast<std::size_t>(file.gcount()));
  return said == wanted;
}

void repairFolder(const std::string &folder) {
  std::string newest;
  for (const std::int64_t step : stepsIn(folder)) {
    const std::string name = stepName(step);
    try {
      readManifest((folder + "/").append(name));
      newest = name;
    } catch (const ForeignVersion &error) {
      throw CheckpointError(std::string(error.what()) +
                            "; give this run a folder of its own");
    } catch (const CheckpointError &) {
      continue; // loading the checkpoint reports the damage
    }
  }
  for (const std::string &name : namesIn(folder))
    if ((name.starts_with(kStep) &&
         (name.ends_with(kPartial) || name.ends_with(kReplaced))) ||
        name == std::string(kLatest) + kNext)
      removeFolder(fs::path(folder) / name);
  // A run may crash after completing a checkpoint but before setting `latest`.
  if (!newest.empty() && !isLatest(folder, newest))
    setLatest(folder, newest);
}

void removeOldest(const std::string &folder, std::int64_t newest, int keep) {
  std::vector<std::int64_t> steps = stepsIn(folder);
  std::erase_if(steps, [&](std::int64_t step) { return step >= newest; });
  const auto others = static_cast<std::size_t>(std::max(keep - 1, 0));
  for (std::size_t i = 0; i + others < steps.size(); ++i) {
    if (isLatest(folder, stepName(steps[i])))
      continue; // setting `latest` to the newest checkpoint failed
    // The new name marks the checkpoint as incomplete while it is removed.
    const std::string old = folder + "/" + stepName(steps[i]);
    renameFolder(old, old + std::string(kReplaced));
    removeFolder(old + std::string(kReplaced));
  }
}

template <typename Call> std::string faultOf(Call call) {
  try {
    call();
  } catch (const CheckpointError &error) {
    return error.what();
  }
  return "";
}

} // namespace

std::string stepName(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits)
    digits.insert(0, kDigits - digits.size(), '0');
  return std::string(kStep) + digits;
}

std::vector<std::int64_t> stepsIn(const std::string &folder) {
  std::vector<std::int64_t> steps;
  for (const std::string &name : namesIn(folder))
    if (const std::int64_t step = stepOf(name); step >= 0)
      steps.push_back(step);
  std::ranges::sort(steps);
  return steps;
}

Manifest readManifest(const std::string &checkpoint) {
  const std::string file = checkpoint + "/" + kManifestName;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error)
    throw CheckpointError(file + ": cannot read it: " + error.message());
  constexpr std::uintmax_t kMost = std::uintmax_t{1} << 30;
  if (size > kMost)
    throw CheckpointError(file + ": has " + std::to_string(size) +
                          " bytes; no manifest is that long");
  std::string text(size, '\0');
  readAt(file, 0, text.data(), text.size());
  Manifest manifest = parseManifest(file, text);
  for (const ManifestFile &each : manifest.files) {
    if (each.name.empty() || each.name.find('/') != std::string::npos)
      throw CheckpointError(file + ": names a file \"" + each.name +
                            "\", which is not in the folder");
    const std::string path = checkpoint + "/" + each.name;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error)
      throw CheckpointError(path + ": cannot read it: " + error.message());
    if (static_cast<std::int64_t>(bytes) != each.bytes)
      throw CheckpointError(path + ": has " + std::to_string(bytes) +
                            " bytes, not the " + std::to_string(each.bytes) +
                            " of the manifest");
  }
  return manifest;
}

FolderLock::FolderLock(const std::string &folder) {
  makeFolder(folder);
  const std::string file = folder + "/lock";
  do
    handle = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  while (handle < 0 && errno == EINTR);
  if (handle < 0)
    throw CheckpointError(
        file + ": cannot create it: " + std::generic_category().message(errno));
  if (flock(handle, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(handle);
    if (error == EWOULDBLOCK)
      throw CheckpointError(folder + ": another run writes its checkpoints "
                                     "there; give this one a folder of its "
                                     "own, or wait for the other");
    throw CheckpointError(
        file + ": cannot lock it: " + std::generic_category().message(error));
  }
  try {
    repairFolder(folder);
  } catch (...) {
    close(handle); // a constructor that throws runs no destructor
    throw;
  }
}

FolderLock::~FolderLock() { close(handle); }

std::string partialFolder(const std::string &folder, std::int64_t step) {
  return (folder + "/" + stepName(step)).append(kPartial);
}

std::string publish(const std::string &folder, const Manifest &manifest,
                    int keep, const std::function<void()> &named) {
  const std::int64_t step = manifest.run.step;
  const std::string partial = partialFolder(folder, step);
  const std::string whole = folder + "/" + stepName(step);
  const std::string replaced = whole + std::string(kReplaced);
  replaceFile(partial + "/" + kManifestName, manifestText(manifest));
  // A run that resumed from an earlier step may write the same step again.
  const bool again = fs::exists(whole);
  if (again)
    renameFolder(whole, replaced);
  renameFolder(partial, whole);
  const auto set = [&] { setLatest(folder, stepName(step)); };
  std::string unset = faultOf(set);
  named();
  const std::string untidy = faultOf([&] {
    if (again)
      removeFolder(replaced);
    removeOldest(folder, step, keep);
  });
  // Setting `latest` is retried, because the removal of old checkpoints may
  // have freed space on the disk.
  if (!unset.empty())
    unset = faultOf(set);
  return unset.empty() ? untidy : unset;
}

//===----------------------------------------------------------------------===//
// One checkpoint
//===----------------------------------------------------------------------===//

StoredState::StoredState(const std::string &checkpoint)
    : manifest(readManifest(checkpoint)) {
  files.reserve(manifest.files.size()); // tensors point into `files`
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

//===- saver.cpp - Writes checkpoints while training goes on --------------===//

#include "runtime/checkpoint/saver.h"

#include <chrono>
#include <cstring>

#include "runtime/checkpoint/durable_file.h"

namespace mtplan::runtime {

namespace {

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::size_t bytesOf(const StateSlice &slice) {
  return static_cast<std::size_t>(slice.view.elements() *
                                  runtime::bytesOf(slice.view.type));
}

// By bytes, in order, so that a rank reads neighbours.
std::vector<std::vector<int>> shareOut(const ModelState &state, int ranks) {
  std::int64_t all = 1, before = 0; // never a division by 0
  for (const StateTensor &tensor : state.tensors)
    all += tensor.bytes();
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const auto rank = static_cast<std::size_t>(
        static_cast<double>(before) / static_cast<double>(all) * ranks);
    shares[std::min(rank, shares.size() - 1)].push_back(static_cast<int>(i));
    before += state.tensors[i].bytes();
  }
  return shares;
}

} // namespace

Saver::Saver(const Plan &thePlan, World &theWorld, RankExecutor &theExecutor,
             SaverOptions theOptions)
    : plan(thePlan), world(theWorld), executor(theExecutor),
      options(std::move(theOptions)), whole(modelStateOf(plan)),
      owned(ownedSlices(plan, whole, executor.place())),
      shares(shareOut(whole, world.size())), crew(world) {
  if (world.rank() == 0)
    lock.emplace(options.folder);
}

void Saver::begin(const RunState &theRun) {
  start = now();
  run = theRun;
  fault.clear();
  untidy.clear();
  partial = partialFolder(options.folder, run.step);
  takeSnapshot();
  stall = now() - start;
  phase = Phase::preparing;
  crew.start([this] { prepare(); });
}

void Saver::takeSnapshot() {
  std::size_t bytes = 0;
  for (const StateSlice &slice : owned)
    bytes += bytesOf(slice);
  snapshot.resize(bytes);
  std::byte *to = snapshot.data();
  for (const StateSlice &slice : owned) {
    std::memcpy(to, executor.data(*slice.local, slice.copy), bytesOf(slice));
    to += bytesOf(slice);
  }
}

void Saver::prepare() const {
  if (world.rank() != 0)
    return;
  removeFolder(partial);
  makeFolder(partial);
  for (const StateFile &file : whole.files) {
    DurableFile made(partial + "/" + file.name, DurableFile::Open::create);
    made.reserve(file.bytes);
    made.writeAt(0, file.header.data(), file.header.size());
    made.finish();
  }
}

void Saver::write() const {
  for (std::size_t f = 0; f < whole.files.size(); ++f) {
    std::optional<DurableFile> file;
    const std::byte *from = snapshot.data();
    for (const StateSlice &slice : owned) {
      const StateTensor &tensor =
          whole.tensors[static_cast<std::size_t>(slice.tensor)];
      const std::byte *data = from;
      from += bytesOf(slice);
      if (tensor.file != static_cast<int>(f))
        continue;
      if (!file)
        file.emplace(partial + "/" + whole.files[f].name,
                     DurableFile::Open::existing);
      const std::int64_t size = runtime::bytesOf(tensor.type);
      forEachRun(
          slice.view, tensor.shape,
          [&](std::int64_t global, std::int64_t local, std::int64_t elements) {
            file->writeAt(tensor.offset + global * size, data + local * size,
                          static_cast<std::size_t>(elements * size));
          });
    }
    if (file)
      file->finish();
  }
}

void Saver::read() {
  mine.clear();
  for (const int i : shares[static_cast<std::size_t>(world.rank())]) {
    const StateTensor &tensor = whole.tensors[static_cast<std::size_t>(i)];
    const StateFile &file = whole.files[static_cast<std::size_t>(tensor.file)];
    mine.push_back(
        digestOfFile(partial + "/" + file.name, tensor.offset, tensor.bytes()));
  }
}

// All ranks send as much as the one with most.
void Saver::gatherChecksums() {
  std::size_t most = 0;
  for (const std::vector<int> &share : shares)
    most = std::max(most, share.size());
  mine.resize(most);
  std::vector<Digest> all(most * shares.size());
  crew.all().allGather("checkpoint: checksums", mine.data(), all.data(),
                       {ElementType::i32, 1,
                        static_cast<std::int64_t>(most * sizeof(Digest) /
                                                  sizeof(std::int32_t))});
  digests.resize(whole.tensors.size());
  for (std::size_t rank = 0; rank < shares.size(); ++rank)
    for (std::size_t k = 0; k < shares[rank].size(); ++k)
      digests[static_cast<std::size_t>(shares[rank][k])] = all[rank * most + k];
}

void Saver::publishIt() {
  if (world.rank() != 0)
    return;
  Manifest manifest;
  manifest.run = run;
  for (const StateFile &file : whole.files)
    manifest.files.push_back(
        {file.name, file.bytes, textOf(digestOf(file.header))});
  for (std::size_t i = 0; i < whole.tensors.size(); ++i) {
    const StateTensor &tensor = whole.tensors[i];
    manifest.tensors.push_back(
        {tensor.name, whole.files[static_cast<std::size_t>(tensor.file)].name,
         textOf(digests[i])});
  }
  untidy = publish(options.folder, manifest, options.keep);
}

// What is half-written fills a disk that may be full.
void Saver::clear() const {
  if (world.rank() == 0)
    removeFolder(partial);
}

std::optional<Saved> Saver::ask(bool wish, bool &wished) {
  const Crew::State state = crew.ask(wish);
  wished = state.wished;
  return busy() && !state.running ? advance(state) : std::nullopt;
}

std::optional<Saved> Saver::advance(const Crew::State &state) {
  if (!state.fault.empty() && phase != Phase::clearing) {
    fault = state.fault;
    phase = Phase::clearing;
    crew.start([this] { clear(); });
    return std::nullopt;
  }
  switch (phase) {
  case Phase::preparing:
    phase = Phase::writing;
    crew.start([this] { write(); });
    return std::nullopt;
  case Phase::writing:
    phase = Phase::reading;
    crew.start([this] { read(); });
    return std::nullopt;
  case Phase::reading:
    gatherChecksums();
    phase = Phase::publishing;
    crew.start([this] { publishIt(); });
    return std::nullopt;
  case Phase::publishing:
  case Phase::clearing: // if it fails too, the next start does it
  case Phase::idle:
    break;
  }
  phase = Phase::idle;
  Saved saved{run.step, 0, now() - start, stall, fault, untidy};
  for (const StateFile &file : whole.files)
    saved.bytes += file.bytes;
  return saved;
}

Saved Saver::finish() {
  for (;;) {
    if (std::optional<Saved> saved = advance({false, false, crew.finish()}))
      return *saved;
  }
}

} // namespace mtplan::runtime

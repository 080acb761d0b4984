//===- saver.cpp - Writes checkpoints during training ---------------------===//

#include "runtime/checkpoint/saver.h"

#include "base/index.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/executor/step_times.h"

namespace mtplan::runtime {

using base::sized;

Saver::Saver(const Plan &thePlan, World &theWorld, RankExecutor &theExecutor,
             SaverOptions theOptions)
    : world(theWorld), executor(theExecutor), options(std::move(theOptions)),
      whole(modelStateOf(thePlan)),
      owned(ownedSlices(thePlan, whole, executor.place())),
      gatherer(thePlan, whole, world), task(world) {
  if (world.rank() == 0)
    lock.emplace(options.folder);
  shareOut();
  std::int64_t bytes = 0;
  for (const StateSlice &slice : owned)
    bytes += slice.bytes();
  allocator = std::thread([this, bytes] {
    snapshot.resize(sized(bytes));
    gatherer.allocate();
  });
}

Saver::~Saver() {
  if (allocator.joinable())
    allocator.join();
}

// Assigns to each tensor the rank that computes its checksum. If a single rank
// writes the tensor, this rank computes the checksum. The other tensors are
// divided, in order, into shares of equal bytes, so that a rank reads adjacent
// tensors.
void Saver::shareOut() {
  shares.resize(sized(world.size()));
  std::vector<int> writers(whole.tensors.size(), 0);
  for (const Part &part : gatherer.parts())
    ++writers[sized(part.tensor)];
  std::int64_t all = 1, before = 0; // 1 avoids a division by 0
  for (std::size_t i = 0; i < writers.size(); ++i)
    if (writers[i] > 1)
      all += whole.tensors[i].bytes();
  for (const Part &part : gatherer.parts()) {
    const auto i = sized(part.tensor);
    auto rank = sized(part.writer);
    if (writers[i] > 1) {
      if (part.first > 0)
        continue;
      rank = static_cast<std::size_t>(static_cast<double>(before) /
                                      static_cast<double>(all) *
                                      static_cast<double>(shares.size()));
      before += whole.tensors[i].bytes();
    }
    shares[rank].push_back(part.tensor);
  }
}

void Saver::begin(const RunState &theRun) {
  start = monotonicSeconds();
  run = theRun;
  fault.clear();
  untidy.clear();
  named.reset();
  partial = partialFolder(options.folder, run.step);
  taken = std::promise<void>();
  copied = taken.get_future();
  phase = Phase::preparing;
  executor.settle();
  task.start([this] {
    takeSnapshot();
    taken.set_value();
    prepare();
  });
  stall = monotonicSeconds() - start;
}

void Saver::awaitSnapshot() {
  if (!copied.valid())
    return;
  const double before = monotonicSeconds();
  copied.get();
  stall += monotonicSeconds() - before;
}

void Saver::takeSnapshot() {
  if (allocator.joinable())
    allocator.join();
  std::byte *to = snapshot.data();
  for (const StateSlice &slice : owned) {
    executor.read(*slice.local, slice.copy,
                  [&](const std::byte *local) { copySlice(slice, local, to); });
    to += slice.bytes();
  }
}

void Saver::prepare() {
  gatherer.gather(snapshot);
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

void Saver::write() {
  digests.assign(whole.tensors.size(), std::nullopt);
  for (std::size_t f = 0; f < whole.files.size(); ++f) {
    std::optional<DurableFile> file;
    for (std::size_t i = 0; i < gatherer.mine().size(); ++i) {
      const Part &part = gatherer.mine()[i];
      const auto number = sized(part.tensor);
      const StateTensor &tensor = whole.tensors[number];
      if (tensor.file != static_cast<int>(f))
        continue;
      if (!file)
        file.emplace(partial + "/" + whole.files[f].name,
                     DurableFile::Open::existing);
      const std::int64_t size = bytesOf(tensor.type);
      const std::byte *data = gatherer.data(i, snapshot);
      const auto bytes = sized(part.count * size);
      if (part.count * size == tensor.bytes())
        digests[number] =
            digestOf({reinterpret_cast<const char *>(data), bytes});
      file->writeAt(tensor.offset + part.first * size, data, bytes);
    }
    if (file)
      file->finish();
  }
}

void Saver::read() {
  mine.clear();
  for (const int i : shares[sized(world.rank())]) {
    const StateTensor &tensor = whole.tensors[sized(i)];
    const StateFile &file = whole.files[sized(tensor.file)];
    const std::optional<Digest> &known = digests[sized(i)];
    mine.push_back(known ? *known
                         : digestOfFile(partial + "/" + file.name,
                                        tensor.offset, tensor.bytes()));
  }
}

// Every rank sends as many checksums as the largest share has tensors.
void Saver::gatherChecksums() {
  std::size_t most = 0;
  for (const std::vector<int> &share : shares)
    most = std::max(most, share.size());
  mine.resize(most);
  std::vector<Digest> all(most * shares.size());
  task.all().allGather("checkpoint: checksums", mine.data(), all.data(),
                       {ElementType::i32, 1,
                        static_cast<std::int64_t>(most * sizeof(Digest) /
                                                  sizeof(std::int32_t))});
  for (std::size_t rank = 0; rank < shares.size(); ++rank)
    for (std::size_t k = 0; k < shares[rank].size(); ++k)
      digests[sized(shares[rank][k])] = all[rank * most + k];
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
    manifest.tensors.push_back({tensor.name,
                                whole.files[sized(tensor.file)].name,
                                textOf(*digests[i])});
  }
  untidy = publish(options.folder, manifest, options.keep,
                   [this] { named = monotonicSeconds(); });
}

// Removes the partial checkpoint after a failure, because the disk may be full.
void Saver::clear() const {
  if (world.rank() == 0)
    removeFolder(partial);
}

std::optional<Saved> Saver::ask(bool wish, bool &wished) {
  const BackgroundTask::State state = task.ask(wish);
  wished = state.wished;
  return busy() && !state.running ? advance(state) : std::nullopt;
}

std::optional<Saved> Saver::advance(const BackgroundTask::State &state) {
  if (!state.fault.empty() && phase != Phase::clearing) {
    fault = state.fault;
    phase = Phase::clearing;
    task.start([this] { clear(); });
    return std::nullopt;
  }
  switch (phase) {
  case Phase::preparing:
    phase = Phase::writing;
    task.start([this] { write(); });
    return std::nullopt;
  case Phase::writing:
    phase = Phase::reading;
    task.start([this] { read(); });
    return std::nullopt;
  case Phase::reading:
    gatherChecksums();
    phase = Phase::publishing;
    task.start([this] { publishIt(); });
    return std::nullopt;
  case Phase::publishing:
  case Phase::clearing: // if this fails, the next run cleans the folder
  case Phase::idle:
    break;
  }
  phase = Phase::idle;
  Saved saved{run.step, 0,     named.value_or(monotonicSeconds()) - start,
              stall,    fault, untidy};
  for (const StateFile &file : whole.files)
    saved.bytes += file.bytes;
  return saved;
}

Saved Saver::finish() {
  for (;;) {
    if (std::optional<Saved> saved = advance({false, false, task.finish()}))
      return *saved;
  }
}

} // namespace mtplan::runtime

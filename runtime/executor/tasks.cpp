//===- tasks.cpp - Instructions that are ready to run ---------------------===//

#include "runtime/executor/tasks.h"

#include <optional>
#include <stdexcept>

#include "base/index.h"
#include "runtime/backend/element.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"
#include "runtime/random/draws.h"

namespace mtplan::runtime {

using base::sized;

namespace {

std::int64_t product(const std::vector<std::int64_t> &shape, std::size_t from,
                     std::size_t to) {
  std::int64_t all = 1;
  for (std::size_t d = from; d < to; ++d)
    all *= shape[d];
  return all;
}

std::int64_t bytesIn(const Tensor &tensor) {
  return product(tensor.shape, 0, tensor.shape.size()) * bytesOf(tensor.type);
}

class KernelTask : public Task {
public:
  KernelTask(const ArenaMemory &theMemory, const Instruction &what,
             std::unique_ptr<Kernel> theKernel, const StepNumbers *theNumbers)
      : Task(theMemory, what), kernel(std::move(theKernel)),
        numbers(theNumbers), inputs(what.inputs.size()),
        outputs(what.outputs.size()) {}
  void run(const TaskRun &run) override {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = input(i, run);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = output(i, run);
    kernel->run({inputs.data(), outputs.data(), numbers, run.microBatch,
                 run.firstCopy + run.copy});
  }
  double TimeSpent::*account() const override { return &TimeSpent::kernels; }
  double flops() const override { return kernel->flops(); }

private:
  std::unique_ptr<Kernel> kernel;
  const StepNumbers *const numbers;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
};

/// Copies a tensor between device and host memory.
class MoveTask : public Task {
public:
  MoveTask(const ArenaMemory &theMemory, const Instruction &what,
           Memory &theDevices, bool up)
      : Task(theMemory, what), devices(theDevices), goesUp(up),
        bytes(sized(bytesIn(what.inputs[0]))) {}
  void run(const TaskRun &run) override {
    if (goesUp)
      devices.queueUpload(output(0, run), input(0, run), bytes);
    else
      devices.queueDownload(output(0, run), input(0, run), bytes);
  }
  double TimeSpent::*account() const override { return &TimeSpent::kernels; }

private:
  Memory &devices;
  const bool goesUp;
  const std::size_t bytes;
};

class CollectiveTask : public Task {
public:
  CollectiveTask(const ArenaMemory &theMemory, const Instruction &what,
                 Communicator &theGroup, Backend &backend,
                 std::int64_t &theCount)
      : Task(theMemory, what), group(theGroup),
        call(std::get<Collective>(what.what)), count(theCount) {
    const Tensor &in = what.inputs[0], &out = what.outputs[0];
    pieces.type = in.type;
    auto along = [&](const std::vector<std::int64_t> &shape, int dim) {
      pieces.outer = product(shape, 0, sized(dim));
      pieces.inner = product(shape, sized(dim), shape.size());
    };
    switch (call.kind) {
    case CollectiveKind::allReduce:
      along(in.shape, 0);
      break;
    case CollectiveKind::allGather:
      along(in.shape, call.gathered);
      break;
    case CollectiveKind::reduceScatter:
      along(out.shape, call.scattered);
      break;
    case CollectiveKind::allToAll:
      along(in.shape, 0);
      pieces.inner /= group.size();
      packs = std::make_unique<Rearrange>(in, call.scattered, true,
                                          group.size(), backend);
      unpacks = std::make_unique<Rearrange>(out, call.gathered, false,
                                            group.size(), backend);
      break;
    }
  }

  void run(const TaskRun &run) override {
    ++count;
    const std::byte *in = input(0, run);
    std::byte *out = output(0, run);
    const std::string &label = instruction.label;
    switch (call.kind) {
    case CollectiveKind::allReduce:
      return group.allReduce(label, in, out, pieces, call.reduction);
    case CollectiveKind::allGather:
      return group.allGather(label, in, out, pieces);
    case CollectiveKind::reduceScatter:
      return group.reduceScatter(label, in, out, pieces, call.reduction);
    case CollectiveKind::allToAll:
      packs->run(in, packs->room.get());
      group.allToAll(label, packs->room.get(), unpacks->room.get(), pieces);
      return unpacks->run(unpacks->room.get(), out);
    }
  }
  double TimeSpent::*account() const override {
    return &TimeSpent::collectives;
  }

private:
  // Transposes [rows][rank][rest] to [rank][rows][rest], or back. In the second
  // layout, each rank's piece is contiguous.
  struct Rearrange {
    Rearrange(const Tensor &tensor, int dim, bool apart, int places,
              Backend &backend)
        : room(backend.memory(), sized(bytesIn(tensor))) {
      const std::int64_t rows = product(tensor.shape, 0, sized(dim));
      const std::int64_t rest =
          product(tensor.shape, sized(dim), tensor.shape.size()) / places;
      const TensorView joined{tensor.type, {rows, places, rest}, {}},
          parted{tensor.type, {places, rows, rest}, {}};
      kernel = backend.prepare({"transpose",
                                "pieces of all_to_all",
                                {},
                                {apart ? joined : parted},
                                {apart ? parted : joined}});
    }
    void run(const void *from, void *to) { kernel->run({&from, &to}); }

    Allocation room;
    std::unique_ptr<Kernel> kernel;
  };

  Communicator &group;
  const Collective call;
  Pieces pieces;
  std::int64_t &count;
  std::unique_ptr<Rearrange> packs, unpacks; ///< only for allToAll
};

class TransferTask : public Task {
public:
  TransferTask(const ArenaMemory &theMemory, const Instruction &what,
               World &theWorld, int theRank, std::int64_t &theCount)
      : Task(theMemory, what), world(theWorld), rank(theRank),
        transfer(std::get<Transfer>(what.what)), count(theCount) {
    bytes = bytesIn(transfer.sends ? what.inputs[0] : what.outputs[0]);
  }
  void run(const TaskRun &run) override {
    ++count;
    if (transfer.sends)
      world.send(instruction.label, input(0, run), bytes, rank,
                 transfer.channel);
    else
      world.receive(instruction.label, output(0, run), bytes, rank,
                    transfer.channel);
  }
  double TimeSpent::*account() const override { return &TimeSpent::transfers; }

private:
  World &world;
  const int rank; ///< the peer
  const Transfer transfer;
  std::int64_t bytes = 0;
  std::int64_t &count;
};

/// Provides a micro-batch. On the host, the task fills the tensor when the
/// instruction runs. For a device, the task fills staging memory for all
/// micro-batches before the step. Each run then queues a copy.
class InputTask : public Task {
public:
  InputTask(const ArenaMemory &theMemory, const Instruction &what,
            const RankCoordinates &where, Memory &memoryOfTensors,
            int microBatches)
      : Task(theMemory, what), view(where.viewOf(what.outputs[0])),
        near(memoryOfTensors), bytes(view.elements() * bytesOf(view.type)) {
    if (!near.isHosts())
      staged.emplace(near.staging(), sized(bytes * microBatches));
    batches = microBatches;
  }

  void feed(const StepInput &input) override {
    for (int m = 0; staged && m < batches; ++m)
      fill(input, m, staged->get() + m * bytes);
  }
  void run(const TaskRun &run) override {
    if (staged)
      near.queueUpload(output(0, run), staged->get() + run.microBatch * bytes,
                       sized(bytes));
    else
      fill(*run.input, run.microBatch, output(0, run));
  }
  double TimeSpent::*account() const override { return &TimeSpent::data; }

private:
  void fill(const StepInput &input, int microBatch, std::byte *out) const {
    const auto &what = std::get<Input>(instruction.what);
    input.data->fill(what, microBatch, view, out);
    // Losses are divided by the number of targets. Therefore, dividing this
    // number by the loss scale multiplies the loss by the scale.
    if (what.label == kCountLabel && input.lossScale != 1.0)
      for (std::int64_t i = 0; i < view.elements(); ++i)
        writeElement(view.type, out, i,
                     readElement(view.type, out, i) / input.lossScale);
  }

  TensorView view;
  Memory &near;
  const std::int64_t bytes; ///< bytes per micro-batch
  int batches = 0;
  std::optional<Allocation> staged;
};

class ReportTask : public Task {
public:
  ReportTask(const ArenaMemory &theMemory, const Instruction &what,
             Results &theResults)
      : Task(theMemory, what), results(theResults) {}
  void run(const TaskRun &run) override {
    results.keep(std::get<Report>(instruction.what).label,
                 instruction.inputs[0].type, input(0, run));
  }
  double TimeSpent::*account() const override { return &TimeSpent::data; }

private:
  Results &results;
};

} // namespace

std::unique_ptr<Task> kernelTask(const ArenaMemory &memory,
                                 const Instruction &instruction,
                                 std::unique_ptr<Kernel> kernel,
                                 const StepNumbers *numbers) {
  return std::make_unique<KernelTask>(memory, instruction, std::move(kernel),
                                      numbers);
}

KernelSpec specOf(const RankCoordinates &place,
                  const Instruction &instruction) {
  const auto &call = std::get<KernelCall>(instruction.what);
  KernelSpec spec{call.kernel, instruction.label, call.settings, {}, {}};
  if (spec.find("axis")) {
    auto axis = static_cast<int>(spec.integer("axis", 0));
    spec.settings.push_back({"place", std::int64_t{place.coordinateOn(axis)}});
    spec.settings.push_back({"ranks", std::int64_t{place.ranksOn(axis)}});
  }
  for (const Tensor &tensor : instruction.inputs)
    spec.inputs.push_back(place.viewOf(tensor));
  for (const Tensor &tensor : instruction.outputs)
    spec.outputs.push_back(place.viewOf(tensor));
  return spec;
}

std::unique_ptr<Task> prepareTask(const TaskContext &all,
                                  const Instruction &instruction,
                                  const std::string &phase) {
  Backend &backend = all.backend;
  auto fault = [&](const std::string &what) {
    return std::runtime_error(instruction.label + ": " + what);
  };
  if (std::holds_alternative<KernelCall>(instruction.what)) {
    const KernelSpec spec = specOf(all.place, instruction);
    const Side side = sideOf(all.stage, instruction);
    if (side == Side::host) {
      if (!backend.host())
        throw fault("is offloaded to the host, but the backend has no kernels "
                    "for the host");
      return std::make_unique<KernelTask>(all.memory, instruction,
                                          backend.host()->prepare(spec),
                                          all.hostNumbers);
    }
    if (side != Side::device && !backend.memory().isHosts())
      return std::make_unique<MoveTask>(all.memory, instruction,
                                        backend.memory(), side == Side::up);
    return std::make_unique<KernelTask>(all.memory, instruction,
                                        backend.prepare(spec), all.numbers);
  }
  if (const auto *call = std::get_if<Collective>(&instruction.what)) {
    const auto &group = all.groups[sized(call->group)];
    if (!group)
      throw fault("the rank is not in the group of its collective");
    return std::make_unique<CollectiveTask>(
        all.memory, instruction, *group, backend,
        all.counted[{phase, std::string(wordOf(call->kind)),
                     all.plan.groups[sized(call->group)].name,
                     bytesIn(instruction.inputs.front())}]);
  }
  if (const auto *transfer = std::get_if<Transfer>(&instruction.what))
    return std::make_unique<TransferTask>(
        all.memory, instruction, all.carrier,
        all.place.rankOfStage(all.plan, transfer->stage),
        all.counted[{phase, transfer->sends ? "send" : "receive", "pp"}]);
  if (std::holds_alternative<Input>(instruction.what))
    return std::make_unique<InputTask>(all.memory, instruction, all.place,
                                       backend.memory(), all.plan.microBatches);
  return std::make_unique<ReportTask>(all.memory, instruction, all.results);
}

void Results::keep(const std::string &label, ElementType type,
                   const void *number) {
  memory.queueDownload(places.get() + kept.size() * kPlace, number,
                       static_cast<std::size_t>(bytesOf(type)));
  kept.push_back({label, type});
}

std::map<std::string, double> Results::sums() const {
  std::map<std::string, double> all;
  for (std::size_t i = 0; i < kept.size(); ++i)
    all[kept[i].label] +=
        readElement(kept[i].type, places.get() + i * kPlace, 0);
  return all;
}

} // namespace mtplan::runtime

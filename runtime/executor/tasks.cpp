//===- tasks.cpp - What each kind of instruction does ---------------------===//

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "runtime/backend/element.h"
#include "runtime/executor/index_walk.h"
#include "runtime/executor/task.h"
#include "runtime/plan/plan_words.h"
#include "runtime/random/draws.h"

namespace mtplan::runtime {

namespace {

std::size_t sized(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

std::int64_t product(const std::vector<std::int64_t> &shape, std::size_t from,
                     std::size_t to) {
  std::int64_t all = 1;
  for (std::size_t d = from; d < to; ++d)
    all *= shape[d];
  return all;
}

using Task = RankExecutor::Task;

class KernelTask : public Task {
public:
  KernelTask(const ArenaMemory &theMemory, const Instruction &what,
             std::unique_ptr<Kernel> theKernel)
      : Task(theMemory, what), kernel(std::move(theKernel)),
        inputs(what.inputs.size()), outputs(what.outputs.size()) {}
  void run(const TaskRun &run) override {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = input(i, run);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = output(i, run);
    kernel->run(
        {inputs.data(), outputs.data(), run.moment, &run.input->update});
  }
  double TimeSpent::*account() const override { return &TimeSpent::kernels; }
  double flops() const override { return kernel->flops(); }

private:
  std::unique_ptr<Kernel> kernel;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
};

// Of a piece of a tensor that this rank has more of, the part it works on.
class PieceTask : public Task {
public:
  PieceTask(const ArenaMemory &theMemory, const Instruction &what,
            const RankPlace &where)
      : Task(theMemory, what), whole(where.viewOf(what.inputs[0])),
        piece(where.viewOf(what.outputs[0])) {
    for (std::size_t d = 0; d < piece.shape.size(); ++d)
      if (whole.type != piece.type ||
          piece.pieces[d].offset < whole.pieces[d].offset ||
          piece.pieces[d].offset + piece.shape[d] >
              whole.pieces[d].offset + whole.shape[d])
        throw std::runtime_error(
            what.label + " (piece): of dimension " + std::to_string(d) +
            " elements " + std::to_string(piece.pieces[d].offset) + " and " +
            std::to_string(piece.shape[d]) +
            " on are wanted, but the rank has " +
            std::to_string(whole.pieces[d].offset) + " and " +
            std::to_string(whole.shape[d]) + " on");
  }
  void run(const TaskRun &run) override {
    const std::size_t rank = piece.shape.size();
    const std::int64_t width = bytesOf(piece.type);
    const std::int64_t row = (rank > 0 ? piece.shape[rank - 1] : 1) * width;
    const std::byte *from = input(0, run);
    std::byte *to = output(0, run);
    std::vector<std::int64_t> index(rank, 0);
    for (std::int64_t done = 0; done < piece.elements() * width; done += row) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < rank; ++d)
        at = at * whole.shape[d] + index[d] + piece.pieces[d].offset -
             whole.pieces[d].offset;
      std::memcpy(to + done, from + at * width, sized(row));
      for (std::size_t d = rank > 0 ? rank - 1 : 0; d-- > 0;) {
        if (++index[d] < piece.shape[d])
          break;
        index[d] = 0;
      }
    }
  }
  double TimeSpent::*account() const override { return &TimeSpent::kernels; }

private:
  TensorView whole, piece;
};

class CollectiveTask : public Task {
public:
  CollectiveTask(const ArenaMemory &theMemory, const Instruction &what,
                 Communicator &theGroup, std::int64_t &theCount)
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
      packed.resize(
          sized(product(in.shape, 0, in.shape.size()) * bytesOf(in.type)));
      received.resize(packed.size());
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
      rearrange(instruction.inputs[0].shape, call.scattered, true, in,
                packed.data());
      group.allToAll(label, packed.data(), received.data(), pieces);
      return rearrange(instruction.outputs[0].shape, call.gathered, false,
                       received.data(), out);
    }
  }
  double TimeSpent::*account() const override {
    return &TimeSpent::collectives;
  }

private:
  // Between [rows][place][rest] of a tensor and [place][rows][rest].
  void rearrange(const std::vector<std::int64_t> &shape, int dim, bool packs,
                 const std::byte *from, std::byte *to) const {
    const std::int64_t places = group.size();
    const std::int64_t rows = product(shape, 0, sized(dim));
    const std::int64_t rest = product(shape, sized(dim), shape.size()) /
                              places * bytesOf(pieces.type);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t place = 0; place < places; ++place) {
        const std::int64_t joined = (row * places + place) * rest;
        const std::int64_t apart = (place * rows + row) * rest;
        std::memcpy(to + (packs ? apart : joined),
                    from + (packs ? joined : apart), sized(rest));
      }
  }

  Communicator &group;
  const Collective call;
  Pieces pieces;
  std::int64_t &count;
  std::vector<std::byte> packed, received;
};

class TransferTask : public Task {
public:
  TransferTask(const ArenaMemory &theMemory, const Instruction &what,
               World &theWorld, int theRank, std::int64_t &theCount)
      : Task(theMemory, what), world(theWorld), rank(theRank),
        transfer(std::get<Transfer>(what.what)), count(theCount) {
    const Tensor &tensor = transfer.sends ? what.inputs[0] : what.outputs[0];
    bytes =
        product(tensor.shape, 0, tensor.shape.size()) * bytesOf(tensor.type);
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
  const int rank; ///< the other one
  const Transfer transfer;
  std::int64_t bytes = 0;
  std::int64_t &count;
};

class InputTask : public Task {
public:
  InputTask(const ArenaMemory &theMemory, const Instruction &what,
            const RankPlace &where)
      : Task(theMemory, what), view(where.viewOf(what.outputs[0])) {}
  void run(const TaskRun &run) override {
    const auto &what = std::get<Input>(instruction.what);
    std::byte *out = output(0, run);
    run.input->data->fill(what, run.microBatch, view, out);
    // Losses are sums over this number: a part of it is a multiple of them.
    if (what.label == kCountLabel && run.input->lossScale != 1.0)
      for (std::int64_t i = 0; i < view.elements(); ++i)
        writeElement(view.type, out, i,
                     readElement(view.type, out, i) / run.input->lossScale);
  }
  double TimeSpent::*account() const override { return &TimeSpent::data; }

private:
  TensorView view;
};

class ReportTask : public Task {
public:
  using Task::Task;
  void run(const TaskRun &run) override {
    run.output->reports[std::get<Report>(instruction.what).label] +=
        readElement(instruction.inputs[0].type, input(0, run), 0);
  }
  double TimeSpent::*account() const override { return &TimeSpent::data; }
};

} // namespace

std::unique_ptr<RankExecutor::Task>
RankExecutor::prepare(const Instruction &instruction,
                      const std::string &phase) {
  auto fault = [&](const std::string &what) {
    return std::runtime_error(instruction.label + ": " + what);
  };
  if (const auto *call = std::get_if<KernelCall>(&instruction.what)) {
    if (call->kernel == "piece")
      return std::make_unique<PieceTask>(memory, instruction, where);
    KernelSpec spec{call->kernel, instruction.label, call->settings, {}, {}};
    if (spec.find("axis")) {
      auto axis = static_cast<int>(spec.integer("axis", 0));
      spec.settings.push_back({"place", std::int64_t{where.placeOn(axis)}});
      spec.settings.push_back({"ranks", std::int64_t{where.ranksOn(axis)}});
    }
    for (const Tensor &tensor : instruction.inputs)
      spec.inputs.push_back(where.viewOf(tensor));
    for (const Tensor &tensor : instruction.outputs)
      spec.outputs.push_back(where.viewOf(tensor));
    return std::make_unique<KernelTask>(memory, instruction,
                                        backend.prepare(spec));
  }
  if (const auto *call = std::get_if<Collective>(&instruction.what)) {
    const auto &group = groups[sized(call->group)];
    if (!group)
      throw fault("the rank is not in the group of its collective");
    return std::make_unique<CollectiveTask>(
        memory, instruction, *group,
        counted[{phase, std::string(wordOf(call->kind)),
                 plan.groups[sized(call->group)].name}]);
  }
  if (const auto *transfer = std::get_if<Transfer>(&instruction.what))
    return std::make_unique<TransferTask>(
        memory, instruction, world, where.rankOfStage(plan, transfer->stage),
        counted[{phase, transfer->sends ? "send" : "receive", "pp"}]);
  if (std::holds_alternative<Input>(instruction.what))
    return std::make_unique<InputTask>(memory, instruction, where);
  return std::make_unique<ReportTask>(memory, instruction);
}

} // namespace mtplan::runtime

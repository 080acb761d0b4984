//===- loader.cpp - Resumes from a checkpoint -----------------------------===//

#include "runtime/checkpoint/loader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/index.h"
#include "runtime/backend/element.h"
#include "runtime/checkpoint/background_task.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/model_state.h"

namespace mtplan::runtime {

using base::sized;

namespace {

class Loader {
public:
  Loader(const Plan &thePlan, World &theWorld, RankExecutor &theExecutor)
      : plan(thePlan), world(theWorld), executor(theExecutor),
        state(modelStateOf(plan)), task(world) {}

  // Returns the checkpoints, newest first. Only rank 0 lists the folder,
  // because the folder could change between the listings of different ranks.
  std::vector<std::string> candidates(const std::string &folder) {
    std::vector<double> steps;
    // count[0] is the number of checkpoints; count[1] is 1 if `folder` is one.
    std::array<double, 2> count{};
    task.start([&] {
      if (world.rank() != 0)
        return;
      count[1] = std::filesystem::exists(folder + "/" + kManifestName);
      if (count[1] == 0.0)
        for (const std::int64_t step : stepsIn(folder))
          steps.insert(steps.begin(), static_cast<double>(step));
      count[0] = static_cast<double>(steps.size());
    });
    throwIf(task.finish());
    task.all().broadcast("checkpoint: how many", count.data(),
                         {ElementType::f64, 1, 2}, 0);
    if (count[1] != 0.0)
      return {folder};
    steps.resize(static_cast<std::size_t>(count[0]));
    if (!steps.empty())
      task.all().broadcast(
          "checkpoint: which", steps.data(),
          {ElementType::f64, 1, static_cast<std::int64_t>(steps.size())}, 0);
    std::vector<std::string> names;
    names.reserve(steps.size());
    for (const double step : steps)
      names.push_back(folder + "/" + stepName(static_cast<std::int64_t>(step)));
    return names;
  }

  // Returns an error if a checkpoint is damaged, else "". All ranks call this.
  std::string verify(const std::string &checkpoint) {
    stored.reset();
    task.start([&] {
      stored = std::make_unique<StoredState>(checkpoint);
      std::int64_t all = 1, before = 0; // 1 avoids a division by 0
      for (const auto &[name, tensor] : stored->tensors())
        all += tensor.bytes;
      for (const auto &[name, tensor] : stored->tensors()) {
        const double share =
            static_cast<double>(before) / static_cast<double>(all);
        if (static_cast<int>(share * world.size()) == world.rank())
          StoredState::verify(name, tensor);
        before += tensor.bytes;
      }
    });
    return task.finish();
  }

  // Checks that the checkpoint has the plan's tensors. If not, throws the same
  // error on all ranks.
  void checkModel(const std::string &checkpoint) const {
    auto refuse = [&](const std::string &what) {
      throw CheckpointError(checkpoint + ": has another model (" +
                            stored->run().model + ", the plan's is " +
                            plan.model + "): " + what);
    };
    for (const StateTensor &tensor : state.tensors) {
      const auto found = stored->tensors().find(tensor.name);
      if (found == stored->tensors().end()) {
        if (tensor.kind == StateKind::weight)
          refuse("it has no " + tensor.name + ", which the plan needs as " +
                 shapeWords(tensor.shape));
        continue;
      }
      if (found->second.shape != tensor.shape)
        refuse("it has " + tensor.name + " as " +
               shapeWords(found->second.shape) + ", the plan as " +
               shapeWords(tensor.shape));
      if (!floatNamed(found->second.type))
        refuse("it has " + tensor.name + " in " + found->second.type +
               ", which is none of F64, F32, BF16 and F16");
    }
    for (const auto &[name, tensor] : stored->tensors())
      if (state.find(name) < 0)
        refuse("it has " + name + ", which the plan does not");
  }

  // Fills the executor's tensors. Returns an error, or "". Reading may fail
  // even after verification. All ranks call this.
  std::string load(LoadWhat what) {
    task.start([&] {
      for (const StateSlice &slice :
           neededSlices(plan, state, executor.place()))
        executor.modify(*slice.local, slice.copy,
                        [&](std::byte *data) { fill(slice, what, data); });
    });
    return task.finish();
  }

  const RunState &run() const { return stored->run(); }

private:
  static void throwIf(const std::string &fault) {
    if (!fault.empty())
      throw CheckpointError(fault);
  }

  void fill(const StateSlice &slice, LoadWhat what, std::byte *data) {
    const StateTensor &tensor = state.tensors[sized(slice.tensor)];
    const ElementType type = slice.view.type;
    const auto found = stored->tensors().find(tensor.name);
    if (found == stored->tensors().end() ||
        (what == LoadWhat::weights && tensor.kind != StateKind::weight)) {
      std::memset(data, 0, sized(slice.view.elements() * bytesOf(type)));
      return;
    }
    const StoredTensor &from = found->second;
    const ElementType fromType = *floatNamed(from.type);
    const std::int64_t size = bytesOf(fromType);
    std::vector<std::byte> source;
    auto copy = [&](std::int64_t global, std::int64_t local,
                    std::int64_t elements) {
      const std::int64_t offset = from.offset + global * size;
      if (type == fromType) {
        from.file->copy(offset, elements * size, data + local * size);
        return;
      }
      source.resize(sized(elements * size));
      from.file->copy(offset, elements * size, source.data());
      for (std::int64_t i = 0; i < elements; ++i)
        writeElement(type, data, local + i,
                     readElement(fromType, source.data(), i));
    };
    try {
      forEachRun(slice.view, tensor.shape, copy);
    } catch (const DataError &error) {
      throw CheckpointError(error.what() + (", in tensor " + tensor.name));
    }
  }

  const Plan &plan;
  World &world;
  RankExecutor &executor;
  ModelState state;
  std::unique_ptr<StoredState> stored;
  BackgroundTask task; ///< declared last; its thread uses the other members
};

} // namespace

std::optional<RunState>
loadNewest(const Plan &plan, World &world, RankExecutor &executor,
           const std::string &folder, LoadWhat what,
           const std::function<void(const std::string &)> &passedOver) {
  Loader loader(plan, world, executor);
  const std::vector<std::string> all = loader.candidates(folder);
  std::string faults;
  for (const std::string &checkpoint : all) {
    std::string fault = loader.verify(checkpoint);
    if (fault.empty()) {
      loader.checkModel(checkpoint);
      fault = loader.load(what);
    }
    if (fault.empty())
      return what == LoadWhat::weights ? RunState() : loader.run();
    faults += (faults.empty() ? "" : "\n") + fault;
    if (world.rank() == 0)
      passedOver(fault);
  }
  if (!all.empty())
    throw CheckpointError(
        folder + ": no checkpoint there can be gone on from:\n" + faults);
  return std::nullopt;
}

} // namespace mtplan::runtime

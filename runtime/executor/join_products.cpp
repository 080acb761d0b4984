//===- join_products.cpp - Batched products -------------------------------===//
//
// Runs the products of joint_products.h as one batched product, if the backend
// has one.
//
//===----------------------------------------------------------------------===//

#include <utility>

#include "base/index.h"
#include "runtime/executor/task.h"

namespace mtplan::runtime {

using base::sized;

namespace {

/// A product of a batch. The earliest one runs all; the events of the others
/// are recorded later than necessary, on the same stream.
class JoinedProduct : public RankExecutor::Task {
public:
  /// \param theAlone  runs this product alone
  /// \param theAll    runs the whole batch; null: another product does
  JoinedProduct(const ArenaMemory &theMemory, const Instruction &what,
                std::unique_ptr<Task> theAlone, std::unique_ptr<Task> theAll)
      : Task(theMemory, what), alone(std::move(theAlone)),
        all(std::move(theAll)) {}

  void run(const TaskRun &run) override { all->run(run); }
  bool isIdle(const TaskRun & /*run*/) const override { return !all; }
  double TimeSpent::*account() const override { return alone->account(); }
  double flops() const override { return alone->flops(); }

private:
  const std::unique_ptr<Task> alone, all;
};

} // namespace

void RankExecutor::joinProducts() {
  for (const JointProducts &joint : jointProducts(own))
    join(joint);
}

void RankExecutor::join(const JointProducts &joint) {
  const auto &instructions = own.programs[sized(joint.program)].instructions;
  const Instruction &first = instructions[joint.instructions.front()];
  backend.queue().select(first.stream);
  std::unique_ptr<Kernel> kernel = backend.prepareEven(
      specOf(first), {static_cast<std::int64_t>(joint.instructions.size()),
                      joint.inputs, joint.outputs});
  if (!kernel)
    return;
  std::unique_ptr<Task> all = kernelTask(memory, first, std::move(kernel),
                                         numbers.as<const StepNumbers>());
  for (const std::size_t i : joint.instructions) {
    std::unique_ptr<Task> &task = programs[sized(joint.program)][i];
    task = std::make_unique<JoinedProduct>(
        memory, instructions[i], std::move(task),
        i == joint.earliest() ? std::exchange(all, nullptr) : nullptr);
  }
}

} // namespace mtplan::runtime

//===- kernel.h - The interface of a backend --------------------*- C++ -*-===//
//
// Kernels are named after the operators of the IR (ir/*_ops.td define what each
// computes). Their settings are the operators' attributes, and their operands
// and results have the operators' order; runtime/backend/kernels.md lists the
// kernels that only the runtime has. A kernel is prepared once, when a plan is
// loaded, and then runs many times. All lookups, choices of algorithms and
// allocations are part of the preparation.
//
// The order of summation depends on shapes, not on the number of threads. Sums
// over samples (gradients of weights, the loss) add one sample after another,
// except where a library's matrix product sums over samples. Samples are
// dimension 0 of a tensor, and the letter b of an einsum.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_KERNEL_H
#define MTPLAN_RUNTIME_BACKEND_KERNEL_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/backend/queue.h"
#include "runtime/backend/step_numbers.h"
#include "runtime/backend/tensor_view.h"
#include "runtime/communicator/communicator.h"
#include "runtime/plan/plan.h"
#include "runtime/random/draws.h"

namespace mtplan::runtime {

struct KernelSpec {
  std::string kernel;
  std::string label; ///< label of the operator, for messages
  /// Holds the attributes by name; a missing attribute has the IR's default.
  std::vector<Setting> settings;
  std::vector<TensorView> inputs, outputs;

  /// Returns null if there is no such setting.
  const Setting *find(const std::string &name) const;
  /// Return the value of a setting, or `otherwise` if there is none. Throw
  /// std::runtime_error if the setting has another type.
  std::int64_t integer(const std::string &name, std::int64_t otherwise) const;
  double number(const std::string &name, double otherwise) const;
  std::string text(const std::string &name, const std::string &otherwise) const;
};

/// Holds the arguments of one run. Pointers are aligned to kAlignment unless
/// they point into the middle of a tensor. Outputs do not overlap inputs.
struct Invocation {
  const void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  /// Points into the backend's memory. Only adamw, gradient_factor and kernels
  /// with dropout read these numbers.
  const StepNumbers *step = nullptr;
  std::int64_t microBatch = 0;
  std::int64_t copy = 0; ///< index of the layer in a repeated segment

  /// Returns the numbers that determine a dropout mask. Only kernels on the
  /// host may call this, because `step` may point into a device's memory.
  Moment moment() const {
    return {step->seed, step->step, microBatch, copy, step->drops};
  }
};

class Kernel {
public:
  virtual ~Kernel() = default;
  /// Runs the kernel, or queues it on a backend with a queue (queue.h).
  virtual void run(const Invocation &call) = 0;
  /// Returns the floating-point operations of one run; 0 means not counted.
  virtual double flops() const { return 0.0; }
  /// Returns whether run() runs two kernels in sequence (followed.h).
  virtual bool isSequential() const { return false; }
};

/// Describes a kernel whose tensors have the same addresses in every run.
struct FixedRun {
  KernelSpec spec;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;

  Invocation with(const StepNumbers *step) const {
    return {inputs.data(), outputs.data(), step};
  }
};

/// Describes runs of one kernel whose tensors are at constant strides.
struct EvenRuns {
  std::int64_t count = 1;
  std::vector<std::int64_t> inputs, outputs; ///< strides in bytes
};

struct DeviceFacts {
  std::string name;        ///< such as "AMD EPYC"; empty if unknown
  std::string libraries;   ///< such as "oneDNN 2.6.3"
  std::int64_t memory = 0; ///< bytes; if sharesHost, all ranks share them
  bool sharesHost = true;  ///< memory and cores are the host's
};

/// Runs the kernels of one rank, one at a time.
class Backend {
public:
  virtual ~Backend() = default;
  /// Prepares a kernel for any number of runs.
  /// \throws std::runtime_error with the label, the kernel and the setting,
  /// type or shape that is not supported, or if the kernel does not exist
  virtual std::unique_ptr<Kernel> prepare(const KernelSpec &spec) = 0;
  /// Prepares many runs of one kernel as one kernel, which uses only the member
  /// `step` of its invocation. No run may read or write the outputs of another,
  /// but all may accumulate into one result. Returns null if the backend cannot
  /// run them as one kernel, or if one kernel would not be faster.
  virtual std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> & /*runs*/) {
    return nullptr;
  }
  /// Prepares runs at constant strides as one kernel, whose invocation points
  /// to the first run's tensors. No run may read or write the outputs of
  /// another. A value between two fused kernels (followed.h) is not written.
  /// Returns null like prepareTogether.
  virtual std::unique_ptr<Kernel> prepareEven(const KernelSpec & /*spec*/,
                                              const EvenRuns & /*runs*/) {
    return nullptr;
  }
  virtual Memory &memory() { return hostMemory(); }
  /// Returns the backend of the host, or null if there is none. Its kernels use
  /// memory().staging() and are complete when run() returns. A backend in host
  /// memory returns itself.
  virtual Backend *host() { return this; }
  /// Returns the queue of this backend's kernels. The default does nothing.
  virtual Queue &queue() {
    static Queue inOrder;
    return inOrder;
  }
  /// Returns the World whose collectives transfer data in this backend's
  /// memory, in the order of its queue. Returns null if `host` itself can
  /// transfer these data. All ranks call this together.
  /// \throws std::runtime_error if the ranks' devices cannot communicate
  virtual std::unique_ptr<World> carrier(World & /*host*/) { return nullptr; }
  virtual DeviceFacts facts() const { return {}; }
};

/// Makes a backend of plain loops in double precision over any element types.
/// Tests compare every other backend with this one.
std::unique_ptr<Backend> makeReferenceBackend();

/// Makes a backend that computes matrix products with oneDNN, rare kernels with
/// the reference backend, and all others with its own kernels.
/// \param threads  number of threads of this rank, >= 1
std::unique_ptr<Backend> makeCpuBackend(int threads);

using MadeKernel = std::unique_ptr<Kernel>;

/// Returns whether an operand or a result is f64; the kernel then uses doubles.
bool usesDouble(const KernelSpec &spec);

template <template <typename> class Class, typename Context>
MadeKernel makeOf(const KernelSpec &spec, const Context &context) {
  if (usesDouble(spec))
    return std::make_unique<Class<double>>(spec, context);
  return std::make_unique<Class<float>>(spec, context);
}

/// Prepares runs with prepareTogether, or one by one if prepareTogether returns
/// null.
/// \throws std::runtime_error like Backend::prepare
MadeKernel prepareAll(Backend &backend, const std::vector<FixedRun> &runs);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_KERNEL_H

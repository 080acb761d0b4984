//===- kernel.h - The interface of a backend --------------------*- C++ -*-===//
//
// Kernels are named after the operators of the IR (ir/*_ops.td define what each
// computes). They take the operators' attributes as settings, and operands and
// results in the operators' order; runtime/backend/kernels.md lists the kernels
// that only the runtime has. A kernel is prepared once, when a plan is loaded,
// and then runs many times. Preparation looks up, chooses and allocates
// everything, so that a step does none of that.
//
// The order of sums depends on shapes and not on threads. Sums over samples
// (gradients of weights, the loss) are taken sample by sample. The sample is
// the first dimension, in an einsum the letter b.
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

/// Describes a call as far as it is known before it runs.
struct KernelSpec {
  std::string kernel; ///< "einsum"
  std::string label;  ///< label of the operator, for messages
  /// By name; missing ones have the defaults of the IR.
  std::vector<Setting> settings;
  std::vector<TensorView> inputs, outputs;

  /// Returns null if there is no such setting.
  const Setting *find(const std::string &name) const;
  std::int64_t integer(const std::string &name, std::int64_t otherwise) const;
  double number(const std::string &name, double otherwise) const;
  std::string text(const std::string &name, const std::string &otherwise) const;
};

/// The arguments of one run. Pointers are aligned to kAlignment unless they
/// point into a tensor; outputs do not overlap inputs.
struct Invocation {
  const void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  /// In the backend's memory. Only dropout and update kernels read it.
  const StepNumbers *step = nullptr;
  std::int64_t microBatch = 0;
  std::int64_t copy = 0; ///< index of the layer in a repeated segment

  /// Returns the numbers that dropout depends on. Only kernels on the host may
  /// call this, because it reads `step`.
  Moment moment() const {
    return {step->seed, step->step, microBatch, copy, step->drops};
  }
};

class Kernel {
public:
  virtual ~Kernel() = default;
  virtual void run(const Invocation &call) = 0;
  /// Returns the floating-point operations of one run, or 0 if they do not
  /// matter.
  virtual double flops() const { return 0.0; }
  /// Returns whether this is two kernels in sequence; see followed.h.
  virtual bool isInTurn() const { return false; }
};

/// A run that has the same operands and results every time.
struct FixedRun {
  KernelSpec spec;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;

  Invocation with(const StepNumbers *step) const {
    return {inputs.data(), outputs.data(), step};
  }
};

/// Runs of one kernel whose operands and results lie at equal distances, like
/// the matrices of a strided batch.
struct EvenRuns {
  std::int64_t count = 1;
  std::vector<std::int64_t> inputs, outputs; ///< bytes to those of the next run
};

/// Describes the device of a backend.
struct DeviceFacts {
  std::string name;        ///< "AMD EPYC"; "": unknown
  std::string libraries;   ///< "oneDNN 2.6.3"
  std::int64_t memory = 0; ///< bytes; for a host, the memory of all ranks there
  bool sharesHost = true;  ///< memory and units are the host's
};

/// Runs the kernels of one rank, one at a time.
class Backend {
public:
  virtual ~Backend() = default;
  /// Throws std::runtime_error with the label, the kernel, and the setting,
  /// type or shape that it cannot handle, or that the kernel does not exist.
  virtual std::unique_ptr<Kernel> prepare(const KernelSpec &spec) = 0;
  /// Prepares many runs of one kernel as one, of which only Invocation::step is
  /// read. No run may read or write what another writes, but all may add to one
  /// result. Returns null if that is no faster than single runs.
  virtual std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> & /*runs*/) {
    return nullptr;
  }
  /// Prepares runs at equal distances as one, which gets the operands and
  /// results of the first. No run may read or write what another writes. A
  /// value that only a fused kernel reads (followed.h) is not written. Returns
  /// null if that is no faster than single runs.
  virtual std::unique_ptr<Kernel> prepareEven(const KernelSpec & /*spec*/,
                                              const EvenRuns & /*runs*/) {
    return nullptr;
  }
  /// Returns the memory that its kernels see.
  virtual Memory &memory() { return hostMemory(); }
  /// Returns the backend that computes in memory().staging() when it is called;
  /// null if there is none. A backend on the host's memory returns itself.
  virtual Backend *host() { return this; }
  /// Returns the queue that orders its kernels. The default one does nothing.
  virtual Queue &queue() {
    static Queue inOrder;
    return inOrder;
  }
  /// Returns the world that transports its memory between ranks, in the order
  /// of its queue. All ranks call this together. Null means that `host` itself
  /// transports it.
  /// \throws std::runtime_error if the ranks' devices cannot communicate
  virtual std::unique_ptr<World> carrier(World & /*host*/) { return nullptr; }
  virtual DeviceFacts facts() const { return {}; }
};

/// Makes a backend of plain loops in double precision over any element types,
/// which is the specification of every other backend.
std::unique_ptr<Backend> makeReferenceBackend();

/// Makes a backend with oneDNN for products and own kernels for the rest.
/// \param threads  of this rank, >= 1
std::unique_ptr<Backend> makeCpuBackend(int threads);

using MadeKernel = std::unique_ptr<Kernel>;

/// Returns whether an operand or a result is f64, in which case everything is
/// computed in double.
bool usesDouble(const KernelSpec &spec);

/// Makes `Class<float>` or `Class<double>`, depending on the tensors.
template <template <typename> class Class, typename Context>
MadeKernel makeOf(const KernelSpec &spec, const Context &context) {
  if (usesDouble(spec))
    return std::make_unique<Class<double>>(spec, context);
  return std::make_unique<Class<float>>(spec, context);
}

/// Prepares runs by Backend::prepareTogether, or one after another if that
/// returns null.
/// \throws std::runtime_error like Backend::prepare
MadeKernel prepareAll(Backend &backend, const std::vector<FixedRun> &runs);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_KERNEL_H

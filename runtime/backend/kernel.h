//===- kernel.h - What a backend promises to compute ------------*- C++ -*-===//
//
// Kernels are named after the operators of the IR (ir/*_ops.td say what each
// computes), take the operators' attributes as settings, and their operands and
// results in the operators' order; runtime/backend/kernels.md lists those that
// only the runtime has. A kernel is prepared once, when a plan is loaded, and
// then run many times: whatever can be looked up, chosen or allocated is,
// before the first step.
//
// Sums run in an order that depends on shapes alone, not on threads. What is
// summed over samples (gradients of weights, the loss) is summed sample by
// sample, so that one micro-batch of eight gives the bits of eight of one.
// Samples are the first dimension, in an einsum the letter b.
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

/// Everything about a call that is known before it runs.
struct KernelSpec {
  std::string kernel; ///< "einsum"
  std::string label;  ///< of the operator, for messages
  std::vector<Setting>
      settings; ///< by name; absent ones have the IR's defaults
  std::vector<TensorView> inputs, outputs;

  /// Null if there is no such setting.
  const Setting *find(const std::string &name) const;
  std::int64_t integer(const std::string &name, std::int64_t otherwise) const;
  double number(const std::string &name, double otherwise) const;
  std::string text(const std::string &name, const std::string &otherwise) const;
};

/// One run. Pointers are aligned to kAlignment unless they point into a tensor;
/// outputs do not overlap inputs.
struct Invocation {
  const void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  /// In the backend's memory; unread by kernels that neither drop nor update.
  const StepNumbers *step = nullptr;
  std::int64_t microBatch = 0;
  std::int64_t copy = 0; ///< of the segment

  /// For kernels that see the host's memory.
  Moment moment() const {
    return {step->seed, step->step, microBatch, copy, step->drops};
  }
};

class Kernel {
public:
  virtual ~Kernel() = default;
  virtual void run(const Invocation &call) = 0;
  /// Floating-point operations of one run; 0 where they do not matter.
  virtual double flops() const { return 0.0; }
  /// Whether it is two kernels, one after the other; see followed.h.
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

/// Runs of one kernel whose operands and results lie evenly apart.
struct EvenRuns {
  std::int64_t count = 1;
  std::vector<std::int64_t> inputs, outputs; ///< bytes to the next run's
};

/// What kernels run on, as it calls itself.
struct DeviceFacts {
  std::string name;        ///< "AMD EPYC"; "": it does not say
  std::string libraries;   ///< "oneDNN 2.6.3"
  std::int64_t memory = 0; ///< bytes; of a host all of it, for all ranks there
  bool sharesHost = true;  ///< memory and units are the host's
};

/// Where kernels run. One per rank; runs one kernel at a time.
class Backend {
public:
  virtual ~Backend() = default;
  /// Throws std::runtime_error that names the label, the kernel, and what of
  /// its settings, types or shapes it cannot do, or that there is none.
  virtual std::unique_ptr<Kernel> prepare(const KernelSpec &spec) = 0;
  /// Many runs of one kernel as one, of which only Invocation::step is read.
  /// None may read what another writes, nor write it; all may add to one
  /// result. Null: they are no better off than one by one.
  virtual std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> & /*runs*/) {
    return nullptr;
  }
  /// Runs that lie evenly apart as one, which is given the first's operands and
  /// results. None may read what another writes, nor write it. What only a
  /// kernel that follows at once takes up (followed.h) is not written.
  /// Null: they are no better off than one by one.
  virtual std::unique_ptr<Kernel> prepareEven(const KernelSpec & /*spec*/,
                                              const EvenRuns & /*runs*/) {
    return nullptr;
  }
  /// What its kernels see.
  virtual Memory &memory() { return hostMemory(); }
  /// Who computes on what lies in memory().staging(), when it is called; null:
  /// nobody. Where memory() is the host's, itself.
  virtual Backend *host() { return this; }
  /// How its kernels follow each other. This one does nothing.
  virtual Queue &queue() {
    static Queue inOrder;
    return inOrder;
  }
  /// Who carries what lies in its memory between ranks, in the order of its
  /// queue; every rank asks at the same time. Null: `host` itself does.
  /// \throws std::runtime_error if the ranks' devices cannot talk
  virtual std::unique_ptr<World> carrier(World & /*host*/) { return nullptr; }
  virtual DeviceFacts facts() const { return {}; }
};

/// Plain loops in double precision over any element types: the specification of
/// every other backend.
std::unique_ptr<Backend> makeReferenceBackend();

/// oneDNN for products; own kernels for the rest.
/// \param threads  of this rank, >= 1
std::unique_ptr<Backend> makeCpuBackend(int threads);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_KERNEL_H

//===- kernel.cpp - The interface of a backend ----------------------------===//

#include "runtime/backend/kernel.h"

#include <stdexcept>

#include "runtime/plan/plan_queries.h"

namespace mtplan::runtime {

const Setting *KernelSpec::find(const std::string &name) const {
  return findSetting(settings, name);
}

namespace {

template <typename T>
T valueOf(const KernelSpec &spec, const std::string &name, T otherwise,
          const char *kind) {
  const Setting *setting = spec.find(name);
  if (!setting)
    return otherwise;
  if (const T *value = std::get_if<T>(&setting->value))
    return *value;
  throw std::runtime_error(spec.label + " (" + spec.kernel + "): setting '" +
                           name + "' is not " + kind);
}

} // namespace

std::int64_t KernelSpec::integer(const std::string &name,
                                 std::int64_t otherwise) const {
  return valueOf(*this, name, otherwise, "an integer");
}

double KernelSpec::number(const std::string &name, double otherwise) const {
  return valueOf(*this, name, otherwise, "a number");
}

std::string KernelSpec::text(const std::string &name,
                             const std::string &otherwise) const {
  return valueOf(*this, name, otherwise, "a string");
}

bool usesDouble(const KernelSpec &spec) {
  for (const std::vector<TensorView> *side : {&spec.inputs, &spec.outputs})
    for (const TensorView &view : *side)
      if (view.type == ElementType::f64)
        return true;
  return false;
}

namespace {

class OneByOne final : public Kernel {
public:
  OneByOne(Backend &backend, const std::vector<FixedRun> &theRuns)
      : runs(theRuns) {
    for (const FixedRun &run : runs)
      kernels.push_back(backend.prepare(run.spec));
  }

  void run(const Invocation &call) override {
    for (std::size_t i = 0; i < runs.size(); ++i)
      kernels[i]->run(runs[i].with(call.step));
  }

  double flops() const override {
    double all = 0.0;
    for (const MadeKernel &kernel : kernels)
      all += kernel->flops();
    return all;
  }

private:
  const std::vector<FixedRun> runs;
  std::vector<MadeKernel> kernels;
};

} // namespace

MadeKernel prepareAll(Backend &backend, const std::vector<FixedRun> &runs) {
  if (MadeKernel together = backend.prepareTogether(runs))
    return together;
  return std::make_unique<OneByOne>(backend, runs);
}

} // namespace mtplan::runtime

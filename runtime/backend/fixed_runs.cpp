//===- fixed_runs.cpp - Runs that are always the same ---------------------===//

#include "runtime/backend/fixed_runs.h"

namespace mtplan::runtime {

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

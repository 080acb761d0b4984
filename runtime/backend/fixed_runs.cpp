//===- fixed_runs.cpp - Runs that are always the same ---------------------===//

#include "runtime/backend/fixed_runs.h"

#include <algorithm>

#include "runtime/backend/element.h"

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

/// Memory that a run reads, or writes.
struct Touched {
  const std::byte *begin = nullptr, *end = nullptr;
  std::size_t run = 0;
  bool isWritten = false;
};

Touched touched(const void *data, const TensorView &view, std::size_t run,
                bool isWritten) {
  const auto *begin = static_cast<const std::byte *>(data);
  return {begin, begin + view.elements() * bytesOf(view.type), run, isWritten};
}

} // namespace

MadeKernel prepareAll(Backend &backend, const std::vector<FixedRun> &runs) {
  if (MadeKernel together = backend.prepareTogether(runs))
    return together;
  return std::make_unique<OneByOne>(backend, runs);
}

bool areApart(const std::vector<FixedRun> &runs) {
  std::vector<Touched> all;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto &[spec, inputs, outputs] = runs[r];
    for (std::size_t i = 0; i < inputs.size(); ++i)
      all.push_back(touched(inputs[i], spec.inputs[i], r, false));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      all.push_back(touched(outputs[i], spec.outputs[i], r, true));
  }
  std::ranges::sort(all, {}, &Touched::begin);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size() && all[j].begin < all[i].end;
         ++j)
      if (all[i].run != all[j].run && (all[i].isWritten || all[j].isWritten))
        return false;
  return true;
}

} // namespace mtplan::runtime

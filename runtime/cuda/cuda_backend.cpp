//===- cuda_backend.cpp - The CUDA backend --------------------------------===//

#include "runtime/cuda/cuda_backend.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/backend/followed.h"
#include "runtime/cuda/collectives/carrier.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/families.h"

namespace mtplan::runtime {
namespace cuda {
namespace {

const Makers &makers() {
  static const Makers kMakers = [] {
    Makers all;
    for (const auto add : {addAttentions, addAttentionGrads, addEmbeddings,
                           addExperts, addLosses, addMoves, addNorms,
                           addPointwise, addProducts, addSums, addUpdates})
      add(all);
    return all;
  }();
  return kMakers;
}

/// Runs batched products, and then one bias-gradient sum per product. This
/// kernel is used if cuBLASLt has no algorithm that computes product and sum
/// together.
class SumsAfter final : public Kernel {
public:
  SumsAfter(const KernelSpec &spec, EvenRuns theRuns, MadeKernel theProducts,
            MadeKernel theSums)
      : pairing(pairingOf(spec)), runs(std::move(theRuns)),
        products(std::move(theProducts)), sums(std::move(theSums)) {}

  void run(const Invocation &call) override {
    products->run(call);
    Invocation half = call;
    for (std::int64_t r = 0; r < runs.count; ++r) {
      const std::size_t above = pairing.secondInputs[0];
      const void *operand = static_cast<const std::byte *>(call.inputs[above]) +
                            r * runs.inputs[above];
      std::vector<void *> results;
      for (std::size_t o = pairing.firstOutputs; o < runs.outputs.size(); ++o)
        results.push_back(static_cast<std::byte *>(call.outputs[o]) +
                          r * runs.outputs[o]);
      half.inputs = &operand;
      half.outputs = results.data();
      sums->run(half);
    }
  }

  double flops() const override {
    return products->flops() + static_cast<double>(runs.count) * sums->flops();
  }

private:
  const Pairing pairing;
  const EvenRuns runs;
  const MadeKernel products, sums;
};

class CudaBackend final : public Backend {
public:
  explicit CudaBackend(const HostMaker &theHost)
      : makeHost(theHost), context(std::make_shared<Context>()),
        ownMemory(makeDeviceMemory(context)),
        ownQueue(makeDeviceQueue(context)) {}

  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    checkSpec(spec);
    if (isOfTwo(spec)) {
      MadeKernel both = makers().fused.at(spec.kernel)(spec, context);
      return both ? std::move(both) : makeSequential(*this, spec);
    }
    const auto found = makers().single.find(spec.kernel);
    if (found == makers().single.end())
      refuse(spec, "there is no such kernel for GPUs yet");
    return found->second(spec, context);
  }

  std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> &runs) override {
    if (runs.empty())
      return nullptr;
    for (const FixedRun &run : runs)
      checkSpec(run.spec);
    const auto found = makers().many.find(runs[0].spec.kernel);
    return found == makers().many.end() ? nullptr
                                        : found->second(runs, context);
  }

  std::unique_ptr<Kernel> prepareEven(const KernelSpec &spec,
                                      const EvenRuns &runs) override {
    checkSpec(spec);
    if (spec.kernel != "einsum")
      return nullptr;
    MadeKernel all = makeEvenProducts(spec, runs, context);
    return all || !spec.find(kBiasGradient) ? std::move(all)
                                            : makeSumsAfter(spec, runs);
  }

  Memory &memory() override { return *ownMemory; }
  Backend *host() override {
    if (!ownHost && makeHost)
      ownHost = makeHost();
    return ownHost.get();
  }
  Queue &queue() override { return *ownQueue; }
  std::unique_ptr<World> carrier(World &host) override {
    return makeCarrier(host, context);
  }
  DeviceFacts facts() const override { return factsOfDevice(); }

private:
  /// Makes a SumsAfter, or returns null if the kernels do not permit one.
  MadeKernel makeSumsAfter(const KernelSpec &spec, const EvenRuns &runs) {
    const auto [product, sum] = halvesOf(spec);
    const auto half = static_cast<std::ptrdiff_t>(pairingOf(spec).firstOutputs);
    MadeKernel products =
        makeEvenProducts(product,
                         {runs.count,
                          runs.inputs,
                          {runs.outputs.begin(), runs.outputs.begin() + half}},
                         context);
    MadeKernel sums = prepare(sum);
    // If `sum` has a fused consumer, a sequential kernel would write the sum to
    // memory for the consumer. A kernel of prepareEven() must not write this
    // intermediate value.
    if (!products || sums->isSequential())
      return nullptr;
    return std::make_unique<SumsAfter>(spec, runs, std::move(products),
                                       std::move(sums));
  }

  const HostMaker makeHost;
  std::unique_ptr<Backend> ownHost;
  const SharedContext context;
  const std::unique_ptr<Memory> ownMemory;
  const std::unique_ptr<Queue> ownQueue;
};

} // namespace
} // namespace cuda

/// Requests 32 instead of 8 hardware connections, before CUDA is initialized.
/// Streams that share a connection block each other, and a send may wait long
/// for its receiver. Besides the plan's streams, sends and NCCL use streams of
/// their own.
static void askForConnections() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

void prepareCuda(int ranks) {
  askForConnections();
  // By default CUDA loads a kernel at its first launch, and the loading waits
  // until the device is idle. This wait may deadlock with another rank that
  // waits for this rank.
  if (ranks > 1)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
}

int cudaDevices() {
  askForConnections();
  int devices = 0;
  // The call fails without a driver.
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

std::string whyNoCudaDevice() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess)
    return devices > 0 ? "" : "there is no GPU";
  return std::string("there is no GPU that CUDA can use (") +
         cudaGetErrorString(status) + ")";
}

void useCudaDevice(int device) {
  askForConnections();
  MTPLAN_CUDA(cudaSetDevice(device));
}

std::vector<std::string> cudaKernelNames() {
  std::vector<std::string> names;
  for (const auto &[name, maker] : cuda::makers().single)
    names.push_back(name);
  return names;
}

std::unique_ptr<Backend> makeCudaBackend() {
  return makeCudaBackendBeside(nullptr);
}

std::unique_ptr<Backend> makeCudaBackendBeside(const HostMaker &makeHost) {
  return std::make_unique<cuda::CudaBackend>(makeHost);
}

} // namespace mtplan::runtime

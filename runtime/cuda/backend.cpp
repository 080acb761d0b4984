//===- backend.cpp - A GPU's kernels --------------------------------------===//

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/backend/followed.h"
#include "runtime/cuda/collectives/carrier.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/cuda/device_facts.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/device_queue.h"
#include "runtime/cuda/families.h"
#include "runtime/cuda/pointwise.h"

namespace mtplan::runtime {
namespace cuda {
namespace {

const std::map<std::string, Maker> &makers() {
  static const std::map<std::string, Maker> kTable = [] {
    std::map<std::string, Maker> table = {
        {"adamw", makeAdamw},
        {"attention", makeAttention},
        {"attention_grad", makeAttentionGrad},
        {"balance_loss", makeBalance},
        {"balance_loss_grad", makeBalance},
        {"cross_entropy_grad", makeLoss},
        {"dropout", makeDropout},
        {"einsum", makeProduct},
        {"embedding", makeEmbedding},
        {"embedding_grad", makeEmbedding},
        {"gradient_factor", makeGradientFactor},
        {"layer_norm", makeNorm},
        {"layer_norm_grad", makeNorm},
        {"mask", makeMove},
        {"moe_combine", makeExperts},
        {"moe_combine_grad", makeExperts},
        {"moe_dispatch", makeExperts},
        {"moe_dispatch_grad", makeExperts},
        {"moe_gate", makeGate},
        {"moe_gate_grad", makeGate},
        {"moe_slots", makeSlots},
        {"piece", makeMove},
        {"position_embedding", makePosition},
        {"position_embedding_grad", makePosition},
        {"put_first", makePosition},
        {"put_first_grad", makePosition},
        {"rms_norm", makeNorm},
        {"rms_norm_grad", makeNorm},
        {"rope", makeRope},
        {"slice", makeMove},
        {"softmax", makeSoftmax},
        {"softmax_grad", makeSoftmax},
        {"square_sum", makeSquareSum},
        {"sum", makeSum},
        {"take_first", makePosition},
        {"take_first_grad", makePosition},
        {"token_loss", makeLoss},
        {"transpose", makeMove},
        {"vocab_max", makeLoss},
        {"vocab_pick", makeLoss},
        {"vocab_sum_exp", makeLoss},
        {"zeros", makeMove},
    };
    addPointwise(table);
    return table;
  }();
  return kTable;
}

// With another after them, or beside.
const std::map<std::string, Maker> &makersOfTwo() {
  static const std::map<std::string, Maker> kTable = {
      {"dropout", makeFollowedDropout},
      {"einsum", makeFollowedProduct},
      {"layer_norm_grad", makeFollowedNormGrad},
      {"rms_norm_grad", makeFollowedNormGrad},
      {"sum", makeFollowedSum},
  };
  return kTable;
}

// Small tensors of which a step has many.
const std::map<std::string, ManyMaker> &makersOfMany() {
  static const std::map<std::string, ManyMaker> kTable = {
      {"adamw", makeAdamwOfMany},
      {"square_sum", makeSquareSumOfMany},
  };
  return kTable;
}

/// Where no product sums its operand: all products, and then sum by sum.
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
      MadeKernel both = makersOfTwo().at(spec.kernel)(spec, context);
      return both ? std::move(both) : inTurn(*this, spec);
    }
    const auto found = makers().find(spec.kernel);
    if (found == makers().end())
      refuse(spec, "there is no such kernel for GPUs yet");
    return found->second(spec, context);
  }

  std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> &runs) override {
    if (runs.empty())
      return nullptr;
    for (const FixedRun &run : runs)
      checkSpec(run.spec);
    const auto found = makersOfMany().find(runs[0].spec.kernel);
    return found == makersOfMany().end() ? nullptr
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
  /// Products that are one, and then each one's sum.
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
    if (!products || sums->isInTurn()) // which writes what lies between
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

// Streams that share a connection to the device wait for each other, and there
// are 8 unless one says so before the device is used. Beside the plan's streams
// there are those of lines and of NCCL: what is sent may wait long for its
// receiver, and what is behind it must not.
static void askForConnections() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

void prepareCuda(int ranks) {
  askForConnections();
  // Else CUDA loads a kernel where it is first queued, and waits until the
  // device is idle to do so: which it may not be before another rank has gone
  // on, that waits for this one.
  if (ranks > 1)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
}

int cudaDevices() {
  askForConnections();
  int devices = 0;
  // Where there is no driver there is no device.
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
  for (const auto &[name, maker] : cuda::makers())
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

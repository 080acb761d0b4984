//===- device.cpp - Memory, queue and facts of a GPU ----------------------===//

#include "runtime/cuda/device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "runtime/cuda/cudnn/fused_attention.h"
#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

namespace {

class PinnedMemory final : public HostMemory {
public:
  void *allocate(std::size_t bytes) override {
    void *data = nullptr;
    MTPLAN_CUDA(cudaMallocHost(&data, std::max<std::size_t>(bytes, 1)));
    std::memset(data, 0, bytes);
    return data;
  }
  void release(void *data, std::size_t /*bytes*/) noexcept override {
    cudaFreeHost(data);
  }
};

class OnDevice : public Memory {
public:
  explicit OnDevice(SharedContext theContext)
      : context(std::move(theContext)), device(presentDevice()) {}

  void *allocate(std::size_t bytes) override {
    // cudaMalloc may return null for 0 bytes.
    const std::size_t length = std::max<std::size_t>(bytes, 1);
    void *data = take(length);
    MTPLAN_CUDA(cudaMemsetAsync(data, 0, length, context->stream().get()));
    // The host waits, because the memory may be used on other streams.
    context->stream().synchronise();
    return data;
  }
  void release(void *data, std::size_t /*bytes*/) noexcept override {
    cudaFree(data);
  }

  Memory &ofCollectives() override;
  Rounded roundedForCollectives() const override {
    return registered ? registered->roundedForCollectives() : Rounded{};
  }

  void upload(void *to, const void *from, std::size_t bytes) override {
    queueUpload(to, from, bytes);
    context->stream().synchronise();
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    queueDownload(to, from, bytes);
    context->stream().synchronise();
  }
  // Sets the device, because a new thread would use the first device, where
  // CUDA would create a context that takes half a GiB of another rank's memory.
  void fetch(void *to, const void *from, std::size_t bytes) override {
    MTPLAN_CUDA(cudaSetDevice(device));
    MTPLAN_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost,
                                fetches.get()));
    fetches.synchronise();
  }

  Memory &staging() override { return pinned; }
  void queueUpload(void *to, const void *from, std::size_t bytes) override {
    MTPLAN_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                                context->stream().get()));
  }
  void queueDownload(void *to, const void *from, std::size_t bytes) override {
    MTPLAN_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost,
                                context->stream().get()));
  }

protected:
  virtual void *take(std::size_t bytes) {
    void *data = nullptr;
    try {
      MTPLAN_CUDA(cudaMalloc(&data, bytes));
    } catch (const DeviceError &) {
      cudaGetLastError(); // resets the error for a retry
      throw;
    }
    return data;
  }

private:
  const SharedContext context;
  const int device;
  const Stream fetches;
  PinnedMemory pinned;
  std::unique_ptr<Memory> registered; ///< null until ofCollectives() is called
};

/// Manages device memory that can be registered with NCCL.
class Registered final : public OnDevice {
public:
  using OnDevice::OnDevice;

  void release(void *data, std::size_t /*bytes*/) noexcept override {
    releaseForNccl(data);
  }
  Memory &ofCollectives() override { return *this; }
  Rounded roundedForCollectives() const override { return rounded; }

private:
  void *take(std::size_t bytes) override {
    const std::size_t before = leftOnDevice();
    void *data = allocateForNccl(bytes);
    const std::size_t after = leftOnDevice();
    // `after` may exceed `before`, because other threads release memory.
    const std::size_t taken = std::max(bytes, before - std::min(before, after));
    rounded.asked += static_cast<std::int64_t>(bytes);
    rounded.taken += static_cast<std::int64_t>(taken);
    return data;
  }
  static std::size_t leftOnDevice() {
    std::size_t left = 0, all = 0;
    MTPLAN_CUDA(cudaMemGetInfo(&left, &all));
    return left;
  }

  Rounded rounded;
};

Memory &OnDevice::ofCollectives() {
  if (!context->registersMemory)
    return *this;
  if (!registered)
    registered = std::make_unique<Registered>(context);
  return *registered;
}

} // namespace

std::unique_ptr<Memory> makeDeviceMemory(const SharedContext &context) {
  return std::make_unique<OnDevice>(context);
}

namespace {

class Graph final : public Recording {
public:
  Graph(cudaGraph_t graph, SharedContext theContext)
      : context(std::move(theContext)) {
    MTPLAN_CUDA(cudaGraphInstantiate(&handle, graph, 0));
    // Without this call, the first launch would upload the graph.
    MTPLAN_CUDA(cudaGraphUpload(handle, context->stream(0).get()));
  }
  ~Graph() override {
    if (handle)
      cudaGraphExecDestroy(handle);
  }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void replay() override {
    MTPLAN_CUDA(cudaGraphLaunch(handle, context->stream(0).get()));
  }

private:
  const SharedContext context;
  cudaGraphExec_t handle = nullptr;
};

/// Captures the work on a stream. The destructor ends the capture after an
/// exception.
class Capture {
public:
  explicit Capture(const Stream &theStream) : stream(theStream) {
    MTPLAN_CUDA(
        cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (!ended)
      cudaStreamEndCapture(stream.get(), &graph);
    if (graph)
      cudaGraphDestroy(graph);
  }
  Capture(const Capture &) = delete;
  Capture &operator=(const Capture &) = delete;

  cudaGraph_t end() {
    ended = true;
    MTPLAN_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    return graph;
  }

private:
  const Stream &stream;
  bool ended = false;
  cudaGraph_t graph = nullptr;
};

/// Measures times on streams with CUDA events, which clear() makes reusable.
class DeviceClock final : public StreamClock {
public:
  explicit DeviceClock(SharedContext theContext)
      : context(std::move(theContext)) {}

  int mark() override {
    if (next == marks.size())
      marks.emplace_back(cudaEventDefault);
    MTPLAN_CUDA(cudaEventRecord(marks[next].get(), context->stream().get()));
    return static_cast<int>(next++);
  }
  double between(int from, int to) const override {
    float milliseconds = 0.0F;
    MTPLAN_CUDA(cudaEventElapsedTime(
        &milliseconds, marks[static_cast<std::size_t>(from)].get(),
        marks[static_cast<std::size_t>(to)].get()));
    return 1e-3 * static_cast<double>(milliseconds);
  }
  void clear() override { next = 0; }

private:
  const SharedContext context;
  std::vector<Event> marks;
  std::size_t next = 0;
};

class DeviceQueue final : public Queue {
public:
  explicit DeviceQueue(SharedContext theContext)
      : context(std::move(theContext)) {}

  void open(int streams, int count) override {
    context->open(static_cast<std::size_t>(streams));
    events.clear();
    for (int i = 0; i < count; ++i)
      events.emplace_back();
  }
  void select(int stream) override {
    context->select(static_cast<std::size_t>(stream));
  }
  void record(int event) override {
    MTPLAN_CUDA(cudaEventRecord(at(event), context->stream().get()));
  }
  void wait(int event) override {
    MTPLAN_CUDA(cudaStreamWaitEvent(context->stream().get(), at(event), 0));
  }
  void await(int event) override {
    MTPLAN_CUDA(cudaEventSynchronize(at(event)));
  }
  void finish() override {
    for (std::size_t i = 0; i < context->streams(); ++i)
      context->stream(i).synchronise();
  }

  std::unique_ptr<StreamClock> clock() override {
    return std::make_unique<DeviceClock>(context);
  }

  bool records() const override { return true; }
  std::unique_ptr<Recording>
  recorded(const std::function<void()> &work) override {
    Capture capture(context->stream(0));
    work();
    return std::make_unique<Graph>(capture.end(), context);
  }

private:
  cudaEvent_t at(int event) const {
    return events[static_cast<std::size_t>(event)].get();
  }

  const SharedContext context;
  std::vector<Event> events;
};

} // namespace

std::unique_ptr<Queue> makeDeviceQueue(const SharedContext &context) {
  return std::make_unique<DeviceQueue>(context);
}

namespace {

/// Formats the version of CUDA or a driver: 13000 is 13.0.
std::string versionText(int number) {
  return std::to_string(number / 1000) + '.' +
         std::to_string(number % 1000 / 10);
}

/// Formats the version of cuBLASLt or cuDNN: 130002 is 13.0.2, and 91900 is
/// 9.19.0.
std::string libraryVersionText(std::size_t number) {
  return std::to_string(number / 10000) + '.' +
         std::to_string(number % 10000 / 100) + '.' +
         std::to_string(number % 100);
}

} // namespace

DeviceFacts factsOfDevice() {
  int device = 0, library = 0, driver = 0;
  cudaDeviceProp properties{};
  MTPLAN_CUDA(cudaGetDevice(&device));
  MTPLAN_CUDA(cudaGetDeviceProperties(&properties, device));
  MTPLAN_CUDA(cudaRuntimeGetVersion(&library));
  MTPLAN_CUDA(cudaDriverGetVersion(&driver));
  DeviceFacts facts;
  facts.name = properties.name;
  facts.libraries = "CUDA " + versionText(library) + ", driver for " +
                    versionText(driver) + ", cuBLASLt " +
                    libraryVersionText(cublasLtGetVersion());
  if (const std::size_t fused = fusedAttentionVersion(); fused > 0)
    facts.libraries += ", cuDNN " + libraryVersionText(fused);
  facts.memory = static_cast<std::int64_t>(properties.totalGlobalMem);
  facts.sharesHost = false;
  return facts;
}

} // namespace mtplan::runtime::cuda

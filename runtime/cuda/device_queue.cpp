//===- device_queue.cpp - A GPU's streams and graphs ----------------------===//

#include "runtime/cuda/device_queue.h"

#include <vector>

namespace mtplan::runtime::cuda {

namespace {

/// A graph that is ready to be launched.
class Graph final : public Recording {
public:
  Graph(cudaGraph_t graph, SharedContext theContext)
      : context(std::move(theContext)) {
    MTPLAN_CUDA(cudaGraphInstantiate(&handle, graph, 0));
    // Its first launch need not carry it to the device.
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

/// Ends a capture whatever happens in it.
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

/// Events that keep when they happened. They stay, to be recorded anew.
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

} // namespace mtplan::runtime::cuda

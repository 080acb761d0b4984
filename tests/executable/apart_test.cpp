//===- apart_test.cpp - A device with memory of its own -------------------===//
//
// Runs the reference kernels as a device. The device cannot access the host's
// memory, and the host cannot access the device's: a kernel that runs on the
// wrong side ends the process by a signal. The test has one rank, because
// thread ranks communicate through shared memory.
//
//===----------------------------------------------------------------------===//

#include <map>

#include <sys/mman.h>

#include <gtest/gtest.h>

#include "passes/verify/prove.h"
#include "tests/executable/run_plan.h"
#include "tests/passes/verify/drawn_plan.h"

namespace mtplan::passes {
namespace {

using runtime::Backend, runtime::HostMemory, runtime::Invocation,
    runtime::Kernel, runtime::KernelSpec, runtime::Memory;

/// Holds pages that are accessible to one side at a time.
class Pages {
public:
  void *add(void *data, std::size_t bytes) {
    all[data] = bytes;
    return data;
  }
  std::size_t drop(void *data) { return all.extract(data).mapped(); }
  void allow(bool open) const {
    for (const auto &[data, bytes] : all)
      EXPECT_EQ(
          mprotect(data, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE), 0);
  }

private:
  std::map<void *, std::size_t> all;
};

class HostsSide : public HostMemory {
public:
  void *allocate(std::size_t bytes) override {
    return pages.add(HostMemory::allocate(bytes), std::max(bytes, 1UL));
  }
  void release(void *data, std::size_t bytes) noexcept override {
    pages.drop(data);
    HostMemory::release(data, bytes);
  }
  Pages pages;
};

class DevicesSide : public Memory {
public:
  /// While a turn exists, the device's pages are accessible. The host's pages
  /// are accessible at that time only if `copies`.
  class Turn {
  public:
    Turn(DevicesSide &theSide, bool copies) : side(theSide) {
      side.pages.allow(true);
      side.hosts.pages.allow(copies);
    }
    ~Turn() {
      side.pages.allow(false);
      side.hosts.pages.allow(true);
    }
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

  private:
    DevicesSide &side;
  };

  void *allocate(std::size_t bytes) override {
    void *data =
        pages.add(runtime::hostMemory().allocate(bytes), std::max(bytes, 1UL));
    pages.allow(false);
    return data;
  }
  void release(void *data, std::size_t bytes) noexcept override {
    pages.drop(data);
    runtime::hostMemory().release(data, bytes);
  }
  void upload(void *to, const void *from, std::size_t bytes) override {
    const Turn turn(*this, true);
    std::memcpy(to, from, bytes);
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    upload(to, from, bytes);
  }
  void fetch(void *to, const void *from, std::size_t bytes) override {
    upload(to, from, bytes);
  }
  Memory &staging() override { return hosts; }
  void queueUpload(void *to, const void *from, std::size_t bytes) override {
    upload(to, from, bytes);
  }
  void queueDownload(void *to, const void *from, std::size_t bytes) override {
    upload(to, from, bytes);
  }

private:
  Pages pages;
  HostsSide hosts;
};

class DevicesKernel : public Kernel {
public:
  DevicesKernel(std::unique_ptr<Kernel> what, DevicesSide &theSide)
      : kernel(std::move(what)), side(theSide) {}
  void run(const Invocation &call) override {
    const DevicesSide::Turn turn(side, false);
    kernel->run(call);
  }

private:
  const std::unique_ptr<Kernel> kernel;
  DevicesSide &side;
};

class ApartBackend : public Backend {
public:
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    return std::make_unique<DevicesKernel>(kernels->prepare(spec), side);
  }
  Memory &memory() override { return side; }
  Backend *host() override { return kernels.get(); }

private:
  const std::unique_ptr<Backend> kernels = runtime::makeReferenceBackend();
  DevicesSide side;
};

std::unique_ptr<Backend> makeApart() {
  return std::make_unique<ApartBackend>();
}

// The device gets a copy of the host's master weight, rounded to 16 bits.
TEST(Apart, DeviceAndHostMemoryStaySeparate) {
  constexpr int kSteps = 2;
  const Family family{"tiny-gpt2"};
  Step step(family, 1, 1);
  Random random = randomOf(family, 17);
  const Drawn drawn = draw(random, false, planner::layersOf(step.graph));
  DrawnStep made(family, drawn);
  std::optional<ProofPair> pair =
      buildProofPair(*made.step.module, *made.planned);
  ASSERT_TRUE(pair);
  mlir::MLIRContext *context = pair->logical->getContext();
  ir::RunOptions options;
  options.microBatches = drawn.microBatches;
  for (mlir::FloatType type :
       {mlir::FloatType::getF32(context), mlir::FloatType::getBF16(context)})
    for (bool offloads : {false, true}) {
      SCOPED_TRACE(offloads);
      auto planned = [&](bool there) {
        mlir::OwningOpRef<mlir::ModuleOp> copy(pair->logical->clone());
        setElementType(*copy, type);
        return alone(*copy, drawn.microBatches, there);
      };
      const Gathered expected = runPlan(
          planned(false), options, runtime::makeReferenceBackend, 0.0, kSteps);
      std::string worst;
      EXPECT_EQ(worstDifference(
                    runPlan(planned(offloads), options, makeApart, 0.0, kSteps),
                    expected, worst),
                0.0)
          << worst;
    }
}

} // namespace
} // namespace mtplan::passes

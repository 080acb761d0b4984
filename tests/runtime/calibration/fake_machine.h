//===- fake_machine.h - A machine whose costs are known ---------*- C++ -*-===//
//
// Kernels and collectives advance a clock by the time that the costs of the
// machine imply. They compute nothing, except all-reduces of f64.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_RUNTIME_CALIBRATION_FAKE_MACHINE_H
#define MTPLAN_TESTS_RUNTIME_CALIBRATION_FAKE_MACHINE_H

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/backend/einsum.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/signature.h"
#include "runtime/calibration/calibration.h"

namespace mtplan::runtime {

struct FakeMachine {
  double now = 0.0;               ///< seconds
  double launch = 3e-6;           ///< seconds per kernel
  double product = 2e12;          ///< flop/s
  double attention = 1e12;        ///< query elements * keys per second
  double stream = 1e10;           ///< bytes/s of all other kernels
  double latency = 5e-6;          ///< seconds per collective or message
  double link = 4e9;              ///< bytes/s of collectives and messages
  std::string lacks;              ///< name of a kernel that is missing
  std::map<std::string, int> ran; ///< number of runs, by kernel

  SecondsClock clock() {
    return [this] { return now; };
  }
};

class FakeKernel final : public Kernel {
public:
  FakeKernel(FakeMachine &m, const KernelSpec &spec)
      : machine(m), name(spec.kernel) {
    double bytes = 0.0;
    for (const std::vector<TensorView> *side : {&spec.inputs, &spec.outputs})
      for (const TensorView &view : *side)
        bytes += static_cast<double>(view.elements() * bytesOf(view.type));
    seconds = machine.launch;
    if (name == "einsum")
      seconds += flopsOf(spec) / machine.product;
    else if (name.starts_with("attention"))
      seconds += static_cast<double>(spec.inputs[0].elements() *
                                     spec.inputs[1].shape[1]) /
                 machine.attention;
    else
      seconds += bytes / machine.stream;
  }

  void run(const Invocation &call) override {
    EXPECT_NE(call.outputs, nullptr);
    machine.now += seconds;
    ++machine.ran[name];
  }

private:
  static double flopsOf(const KernelSpec &spec) {
    const Equation equation(spec);
    std::map<char, double> sizes;
    for (std::size_t i = 0; i < equation.lhs.size(); ++i)
      sizes[equation.lhs[i]] = static_cast<double>(spec.inputs[0].shape[i]);
    for (std::size_t i = 0; i < equation.rhs.size(); ++i)
      sizes[equation.rhs[i]] = static_cast<double>(spec.inputs[1].shape[i]);
    double flops = 2.0;
    for (const auto &[letter, size] : sizes)
      flops *= size;
    return flops;
  }

  FakeMachine &machine;
  const std::string name;
  double seconds = 0.0;
};

class FakeBackend : public Backend {
public:
  explicit FakeBackend(FakeMachine &m) : machine(m) {}
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    checkSpec(spec);
    if (spec.kernel == machine.lacks)
      refuse(spec, "there is none");
    return std::make_unique<FakeKernel>(machine, spec);
  }

private:
  FakeMachine &machine;
};

/// Acts as if all other ranks contributed the same value as this rank.
class FakeCommunicator final : public Communicator {
public:
  FakeCommunicator(FakeMachine &m, int ranks, int at)
      : machine(m), all(ranks), here(at) {}
  int size() const override { return all; }
  int place() const override { return here; }

  void allReduce(const std::string &, const void *in, void *out, Pieces pieces,
                 Reduction) override {
    take(pieces, 1);
    if (pieces.type != ElementType::f64)
      return;
    double value = 0.0;
    std::memcpy(&value, in, sizeof value);
    value *= all;
    std::memcpy(out, &value, sizeof value);
  }
  void reduce(const std::string &, const void *, void *, Pieces pieces,
              Reduction, int) override {
    take(pieces, 1);
  }
  void allGather(const std::string &, const void *, void *,
                 Pieces pieces) override {
    take(pieces, all);
  }
  void reduceScatter(const std::string &, const void *, void *, Pieces pieces,
                     Reduction) override {
    take(pieces, all);
  }
  void allToAll(const std::string &, const void *, void *,
                Pieces pieces) override {
    take(pieces, all);
  }
  void broadcast(const std::string &, void *, Pieces pieces, int) override {
    take(pieces, 1);
  }

private:
  void take(Pieces pieces, int places) {
    machine.now +=
        machine.latency + static_cast<double>(pieces.outer * pieces.inner *
                                              places * bytesOf(pieces.type)) /
                              machine.link;
  }

  FakeMachine &machine;
  const int all, here;
};

class FakeWorld final : public World {
public:
  FakeWorld(FakeMachine &m, int ranks) : machine(m), all(ranks) {}
  int size() const override { return all; }
  int rank() const override { return 0; }
  std::unique_ptr<Communicator> group(const std::string &,
                                      const std::vector<int> &ranks) override {
    EXPECT_EQ(ranks.front(), 0);
    return std::make_unique<FakeCommunicator>(
        machine, static_cast<int>(ranks.size()), 0);
  }
  void send(const std::string &, const void *, std::int64_t bytes, int,
            int) override {
    machine.now += machine.latency + static_cast<double>(bytes) / machine.link;
  }
  void receive(const std::string &, void *, std::int64_t, int, int) override {}
  void barrier(const std::string &) override {}
  std::chrono::milliseconds patience() const override { return {}; }
  void check() override {}
  void fail(const std::string &) noexcept override {}

private:
  FakeMachine &machine;
  const int all;
};

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_CALIBRATION_FAKE_MACHINE_H

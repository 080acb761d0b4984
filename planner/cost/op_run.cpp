//===- op_run.cpp - How software runs an operator -------------------------===//

#include "planner/cost/op_run.h"

#include <numeric>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

double extentOf(const Op &op, const std::vector<int> &factors) {
  double extent = 1.0;
  for (int factor : factors)
    extent *= static_cast<double>(op.factors[at(factor)].size);
  return extent;
}

class Runs {
public:
  Runs(const SegmentGraph &of, const Device &on, const Software &with,
       Precision precision, int devices)
      : segment(of), device(on), software(with), runs(of.ops.size()),
        maker(of.tensors.size(), -1) {
    bool eighths = precision == Precision::fp8;
    for (std::size_t o = 0; o < runs.size(); ++o) {
      const Op &op = segment.ops[o];
      runs[o].slowdown = slowestOf(device, devices);
      runs[o].precision = eighths ? Precision::bf16 : precision;
      for (const Use &result : op.results)
        maker[at(result.tensor)] = static_cast<int>(o);
      if (eighths && op.opClass == OpClass::gemm && isLayer(segment))
        addCasts(op, runs[o]);
    }
  }

  std::vector<OpRun> run() {
    if (software.batchesProducts) {
      batchReaders();
      batchSums();
    }
    fuseConsumers();
    return std::move(runs);
  }

private:
  bool isNorm(int tensor) const {
    int made = maker[at(tensor)];
    if (made < 0)
      return false;
    const PassKind pass = segment.ops[at(made)].pass;
    return pass == PassKind::layerNorm || pass == PassKind::rmsNorm;
  }

  // Forward casts the input and the weight. In backward, the product of a
  // gradient and a weight casts the gradient. All other products read values
  // that are already cast.
  void addCasts(const Op &op, OpRun &run) const {
    run.precision = Precision::fp8;
    const CastTraffic &casts = software.casts;
    int first = op.operands[0].tensor, second = op.operands[1].tensor;
    if (op.phase == Phase::forward) {
      run.firstCast = isNorm(first) ? casts.normalised : casts.input;
      run.secondCast = casts.weight;
    } else if (segment.tensors[at(second)].kind == TensorKind::parameter) {
      run.firstCast = casts.gradient;
    }
  }

  // Batches the products of one phase that have the same first operand. In
  // backward, such products compute the gradients of weights that multiply the
  // same activation.
  void batchReaders() {
    for (std::size_t o = 0; o < runs.size(); ++o) {
      const Op &op = segment.ops[o];
      if (op.opClass != OpClass::gemm)
        continue;
      double columns = 0.0;
      int sharers = 0;
      for (const Op &other : segment.ops)
        if (other.opClass == OpClass::gemm && other.phase == op.phase &&
            other.operands[0].tensor == op.operands[0].tensor &&
            other.m.size() == op.m.size() && other.k.size() == op.k.size()) {
          columns += extentOf(other, other.n);
          ++sharers;
        }
      if (sharers < 2)
        continue;
      runs[o].batched = columns / extentOf(op, op.n);
      // The products share one cast of their input.
      runs[o].firstCast /= sharers;
    }
  }

  // Batches the products whose results are summed into the gradient of one
  // input. The batched product multiplies by all weights, and its contraction
  // includes the additions.
  void batchSums() {
    std::vector<int> group(runs.size());
    std::iota(group.begin(), group.end(), 0);
    auto isPart = [&](int o) {
      return o >= 0 && segment.ops[at(o)].phase == Phase::backward &&
             (runs[at(o)].inProduct ||
              segment.ops[at(o)].opClass == OpClass::gemm);
    };
    for (std::size_t o = 0; o < runs.size(); ++o) {
      const Op &op = segment.ops[o];
      if (op.pass != PassKind::residual || op.phase != Phase::backward)
        continue;
      int one = maker[at(op.operands[0].tensor)];
      int two = maker[at(op.operands[1].tensor)];
      if (!isPart(one) || !isPart(two))
        continue;
      runs[o].inProduct = true;
      int into = group[at(one)], from = group[at(two)];
      for (int &member : group)
        if (member == from)
          member = into;
      group[o] = into;
    }
    std::vector<double> length(runs.size(), 0.0);
    for (std::size_t o = 0; o < runs.size(); ++o)
      if (segment.ops[o].opClass == OpClass::gemm)
        length[at(group[o])] += extentOf(segment.ops[o], segment.ops[o].k);
    for (std::size_t o = 0; o < runs.size(); ++o) {
      const Op &op = segment.ops[o];
      double own = op.opClass == OpClass::gemm ? extentOf(op, op.k) : 0.0;
      if (own > 0.0 && op.phase == Phase::backward &&
          length[at(group[o])] > own) {
        runs[o].batched = length[at(group[o])] / own;
        runs[o].batchesSums = true;
      }
    }
  }

  // Sets `savedPasses` of each operator that the software fuses with its
  // producer. If the operator is the only reader, fusion also saves the write
  // of the producer's result.
  void fuseConsumers() {
    std::vector<int> readers(segment.tensors.size(), 0);
    for (const Op &op : segment.ops)
      for (const Use &use : op.operands)
        ++readers[at(use.tensor)];
    for (const Accumulation &sum : segment.accumulations)
      ++readers[at(sum.tensor)];
    for (const std::vector<int> *leave :
         {&segment.carriedOut, &segment.gradientOut, &segment.reported})
      for (int tensor : *leave)
        ++readers[at(tensor)];
    for (std::size_t o = 0; o < runs.size(); ++o) {
      const Op &op = segment.ops[o];
      if (op.fusedOperand < 0 || runs[o].inProduct)
        continue;
      const int made = op.operands[at(op.fusedOperand)].tensor;
      const Op &before = segment.ops[at(maker[at(made)])];
      if (isFused(software, device,
                  fusionName(before.opClass == OpClass::gemm ? "" : before.kind,
                             op.kind, op.variant),
                  runs[o].precision))
        runs[o].savedPasses = readers[at(made)] == 1 ? 2 : 1;
    }
  }

  const SegmentGraph &segment;
  const Device &device;
  const Software &software;
  std::vector<OpRun> runs;
  std::vector<int> maker; ///< by tensor: index of its producer, or -1
};

} // namespace

std::vector<OpRun> opRunsOf(const SegmentGraph &segment, const Device &device,
                            const Software &software, Precision precision,
                            int devices) {
  return Runs(segment, device, software, precision, devices).run();
}

} // namespace mtplan::planner

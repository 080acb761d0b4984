//===- run_plan.h - Runs plans and compares results -------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_RUN_PLAN_H
#define MTPLAN_TESTS_EXECUTABLE_RUN_PLAN_H

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "ir/interpret/interpret.h"
#include "planner/simulate/schedule.h"
#include "runtime/executor/rank_executor.h"

namespace mtplan {

namespace runtime {
inline void PrintTo(const CollectiveCount &count, std::ostream *out) {
  *out << count.phase << " " << count.kind << " over " << count.group << ", "
       << count.bytes << " B";
}
} // namespace runtime

/// Holds the state of all ranks after the last step, combined by name. Ranks
/// that hold the same element must agree on its value to a tolerance.
struct Gathered {
  struct Whole {
    std::vector<double> elements;
    std::vector<bool> known;
  };
  using Table = std::map<ir::TensorKey, Whole>;
  Table gradients, parameters, firstMoments, secondMoments;
  std::map<std::string, double> reports; ///< reported values of the last step
  /// Counts the calls over all ranks.
  std::map<runtime::CollectiveCount, std::int64_t> collectives;
  double gradientNorm = 0.0;
  std::vector<std::string> faults;
};

/// Compiles a partitioned step with memory offsets. Returns the plan after it
/// has been checked, written and read back, so that tests run the plan of the
/// file. Throws std::runtime_error.
/// \param offloads  whether the host holds and updates the optimizer's state
/// \param overlapsReductions  whether gradients are reduced during backward,
/// and weights gathered ahead
runtime::Plan compiled(mlir::ModuleOp step, planner::ScheduleKind schedule,
                       int microBatches, bool offloads = false,
                       bool overlapsReductions = false);

/// Sets the element type of every floating-point tensor of `module`, which may
/// be at any stage of compilation, to `type`.
void setElementType(mlir::ModuleOp module, mlir::FloatType type);

/// Compiles the model for one rank.
runtime::Plan alone(mlir::ModuleOp logical, int microBatches,
                    bool offloads = false);

/// Adds a rank's shard of one layer's tensor to `whole`, and appends to
/// `faults` if another rank holds a value that differs by more than
/// `tolerance`.
void collect(const runtime::RankExecutor &rank, const runtime::Tensor &tensor,
             int copy, const std::string &name, double tolerance,
             Gathered::Whole &whole, std::vector<std::string> &faults);

using MakeBackend = std::function<std::unique_ptr<runtime::Backend>()>;

/// Runs steps of `plan` on threads, from `options.step` on, with the
/// interpreter's data, weights, masks and optimizer.
Gathered runPlan(const runtime::Plan &plan, const ir::RunOptions &options,
                 const MakeBackend &makeBackend, double tolerance,
                 int steps = 1);

/// Returns the largest difference of all gradients, parameters, reports, the
/// gradient norm and, if `expected` has them, moments. Differences are relative
/// to the largest element of their tensor. Writes the name of the tensor that
/// has the largest difference to `name`.
/// \param least  lower limit of the divisor, relative to the largest element of
/// all tensors of the kind (gradients, parameters, moments or reports). A key
/// bias's gradient, for example, is zero except for rounding.
double worstDifference(const Gathered &ran, const ir::RunResult &expected,
                       std::string &name, double least = 1e-3);
double worstDifference(const Gathered &ran, const Gathered &expected,
                       std::string &name, double least = 1e-3);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_RUN_PLAN_H

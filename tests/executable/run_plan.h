//===- run_plan.h - An executable plan run and compared ---------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EXECUTABLE_RUN_PLAN_H
#define MTPLAN_TESTS_EXECUTABLE_RUN_PLAN_H

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
  *out << count.phase << " " << count.kind << " over " << count.group;
}
} // namespace runtime

/// What all ranks of a run hold after its last step, put together by name.
/// Ranks that hold the same element must agree on it to `tolerance`.
struct Gathered {
  struct Whole {
    std::vector<double> elements;
    std::vector<bool> known;
  };
  using Table = std::map<ir::TensorKey, Whole>;
  Table gradients, parameters, firstMoments, secondMoments;
  std::map<std::string, double> reports; ///< of the last step
  std::map<runtime::CollectiveCount, std::int64_t> collectives; ///< of all
  double gradientNorm = 0.0;
  std::vector<std::string> faults;
};

/// A partitioned step with places, as a plan, checked, written and read back:
/// what runs is what stands in the file. Throws std::runtime_error.
/// \param offloads  the optimizer, to the host's memory
/// \param overlapsReduces  codegen/overlapped_reduces.h
runtime::Plan compiled(mlir::ModuleOp step, planner::ScheduleKind schedule,
                       int microBatches, bool offloads = false,
                       bool overlapsReduces = false);

/// The model as the program of one rank that has all of it.
runtime::Plan alone(mlir::ModuleOp logical, int microBatches,
                    bool offloads = false);

/// Adds what a rank has of one copy of a tensor to `whole`. Where another rank
/// has put something else, by more than `tolerance`, `faults` say so.
void gather(const runtime::RankExecutor &rank, const runtime::Tensor &tensor,
            int copy, const std::string &name, double tolerance,
            Gathered::Whole &whole, std::vector<std::string> &faults);

using MakeBackend = std::unique_ptr<runtime::Backend> (*)();

/// Runs steps of `plan` on threads, from `options.step` on, with the
/// interpreter's data, weights and masks, and its optimizer.
Gathered runPlan(const runtime::Plan &plan, const ir::RunOptions &options,
                 MakeBackend makeBackend, double tolerance, int steps = 1);

/// The largest difference of any gradient, parameter, moment or report,
/// relative to the largest element of its tensor; which, in `name`.
/// \param least  share of the largest element of all gradients (parameters,
/// ...)
///               that a tensor's largest counts as at least: that of a bias of
///               keys is zero but for what rounding leaves of a sum
double worstDifference(const Gathered &ran, const ir::RunResult &expected,
                       std::string &name, double least = 1e-3);
double worstDifference(const Gathered &ran, const Gathered &expected,
                       std::string &name, double least = 1e-3);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_RUN_PLAN_H

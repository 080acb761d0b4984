//===- run_plan.cpp - Runs plans and compares results ---------------------===//

#include "tests/executable/run_plan.h"

#include <cmath>
#include <mutex>

#include <gtest/gtest.h>

#include "mlir/Pass/PassManager.h"

#include "base/index.h"
#include "codegen/executable_plan.h"
#include "passes/layout/planner_op.h"
#include "passes/pipelines.h"
#include "passes/schedule/stage_contents.h"
#include "planner/search/space/setting.h"
#include "runtime/backend/element.h"
#include "runtime/executor/step_data.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"

namespace mtplan {

using base::sized;
using namespace runtime;

namespace {

constexpr const char *kGradient = "gradient of ", *kFirst = "first moment of ",
                     *kSecond = "second moment of ";

} // namespace

void setElementType(mlir::ModuleOp module, mlir::FloatType type) {
  auto change = [&](mlir::Value value) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
    if (tensor && llvm::isa<mlir::FloatType>(tensor.getElementType()))
      value.setType(mlir::RankedTensorType::get(tensor.getShape(), type));
  };
  module.walk([&](mlir::Operation *op) {
    llvm::for_each(op->getResults(), change);
    for (mlir::Region &region : op->getRegions())
      for (mlir::Block &block : region)
        llvm::for_each(block.getArguments(), change);
  });
}

Plan compiled(mlir::ModuleOp step, planner::ScheduleKind schedule,
              int microBatches, bool offloads, bool overlapsReductions) {
  passes::writeTasks(step, schedule, microBatches);
  mlir::PassManager manager(step.getContext());
  passes::PlacementOptions placement;
  placement.sumsPerUse = true; // like mtplan -o
  placement.overlapsReductions = overlapsReductions;
  placement.gathersAhead = overlapsReductions; // like --overlap on
  placement.offloads = offloads;
  passes::buildPlacement(manager, placement);
  if (mlir::failed(manager.run(step)))
    throw std::runtime_error("no places");
  mlir::FailureOr<Plan> plan = codegen::executablePlanOf(step, "any");
  if (mlir::failed(plan))
    throw std::runtime_error("no plan");
  Plan read = parsePlan(planText(*plan));
  EXPECT_EQ(checkPlan(read), std::vector<std::string>());
  return read;
}

Plan alone(mlir::ModuleOp logical, int microBatches, bool offloads) {
  mlir::OwningOpRef<mlir::ModuleOp> step(logical.clone());
  mlir::MLIRContext *context = step->getContext();
  (*step)->setAttr(ir::kMeshAttrName,
                   passes::toAttr(context, planner::meshOf(1, 1)));
  (*step)->setAttr(ir::kPartitionedAttrName, mlir::UnitAttr::get(context));
  return compiled(*step, planner::ScheduleKind::oneForwardOneBackward,
                  microBatches, offloads);
}

void collect(const RankExecutor &rank, const Tensor &tensor, int copy,
             const std::string &name, double tolerance, Gathered::Whole &whole,
             std::vector<std::string> &faults) {
  TensorView view = rank.place().viewOf(tensor);
  std::int64_t elements = 1;
  for (const runtime::Span &piece : view.pieces)
    elements *= piece.global;
  whole.elements.resize(sized(elements));
  whole.known.resize(sized(elements));
  rank.read(tensor, copy, [&](const std::byte *data) {
    forEachElement(view, [&](std::int64_t local, std::int64_t global) {
      double value = readElement(tensor.type, data, local);
      double &kept = whole.elements[sized(global)];
      if (whole.known[sized(global)] &&
          !(std::abs(kept - value) <= tolerance * (1 + std::abs(value))) &&
          faults.size() < 10)
        faults.push_back(name + ": element " + std::to_string(global) + " is " +
                         std::to_string(value) + " on one rank and " +
                         std::to_string(kept) + " on another");
      kept = value;
      whole.known[sized(global)] = true;
    });
  });
}

Gathered runPlan(const Plan &plan, const ir::RunOptions &options,
                 const MakeBackend &makeBackend, double tolerance, int steps) {
  Gathered all;
  std::mutex mutex;
  // Other tests may occupy all cores for a long time.
  WorldOptions patient;
  patient.patience = std::chrono::minutes(2);
  runOnThreads(plan.ranks, patient, [&](World &world) {
    std::unique_ptr<Backend> backend = makeBackend();
    RankExecutor rank(plan, world, *backend);
    rank.initialise([&](const Parameter &parameter, int copy,
                        const TensorView &piece, double *values) {
      Stream stream = Stream::ofParameter(options.seed, parameter.label,
                                          parameter.firstCopy + copy);
      forEachElement(piece, [&](std::int64_t local, std::int64_t global) {
        values[local] = initialValue(stream, parameter.init, global);
      });
    });
    StepOutput output;
    for (int step = 0; step < steps; ++step) {
      DrawnData data = drawnDataOf(plan, options.seed, options.step + step);
      StepInput input;
      input.data = &data;
      input.seed = options.seed;
      input.step = options.step + step;
      input.update.learningRate = options.adam.learningRate;
      input.update.beta1 = options.adam.beta1;
      input.update.beta2 = options.adam.beta2;
      input.update.epsilon = options.adam.epsilon;
      input.update.weightDecay = options.adam.decay;
      input.update.step = 1 + step;
      output = rank.step(input);
    }
    rank.settle();
    std::scoped_lock lock(mutex);
    all.gradientNorm = output.gradientNorm;
    for (const auto &[name, value] : output.reports)
      all.reports[name] = value;
    for (const auto &[key, count] : rank.collectives())
      all.collectives[key] += count;
    for (const Parameter &parameter : rank.stage().parameters)
      for (int copy = 0; copy < parameter.copies; ++copy) {
        ir::TensorKey key{parameter.label, parameter.firstCopy + copy};
        auto keep = [&](const Tensor &tensor, const char *kind,
                        Gathered::Table &table) {
          collect(rank, tensor, copy, kind + key.name(), tolerance, table[key],
                  all.faults);
        };
        keep(parameter.gradient, kGradient, all.gradients);
        keep(parameter.value, "", all.parameters);
        keep(parameter.firstMoment, kFirst, all.firstMoments);
        keep(parameter.secondMoment, kSecond, all.secondMoments);
      }
  });
  return all;
}

namespace {

struct Worst {
  double difference = 0.0;
  std::string name;

  void see(double expected, double got, double scale, const std::string &what) {
    double apart = std::abs(expected - got) / std::max(scale, 1e-30);
    if (apart <= difference)
      return;
    difference = std::isfinite(apart) ? apart : HUGE_VAL;
    name = what;
  }
};

using Elements = std::map<ir::TensorKey, const std::vector<double> *>;

Elements elementsOf(const ir::TensorTable &table) {
  Elements all;
  for (const auto &[key, tensor] : table)
    all[key] = &tensor.ranks.front().data;
  return all;
}

Elements elementsOf(const Gathered::Table &table) {
  Elements all;
  for (const auto &[key, whole] : table)
    all[key] = &whole.elements;
  return all;
}

void compare(const Gathered::Table &ran, const Elements &expected,
             const char *kind, double least, Worst &worst) {
  double largest = 0.0;
  for (const auto &[key, elements] : expected)
    for (double element : *elements)
      largest = std::max(largest, std::abs(element));
  for (const auto &[key, wanted] : expected) {
    const std::vector<double> &elements = *wanted;
    auto found = ran.find(key);
    if (found == ran.end() ||
        found->second.elements.size() != elements.size()) {
      worst.see(0.0, HUGE_VAL, 1.0,
                std::string(kind) + key.name() + " is not there");
      continue;
    }
    double scale = least * largest;
    for (double element : elements)
      scale = std::max(scale, std::abs(element));
    for (std::size_t i = 0; i < elements.size(); ++i)
      worst.see(elements[i],
                found->second.known[i] ? found->second.elements[i] : NAN, scale,
                kind + key.name() + " element " + std::to_string(i));
  }
  for (const auto &[key, whole] : ran)
    if (!expected.contains(key))
      worst.see(0.0, HUGE_VAL, 1.0, kind + key.name() + " is not the model's");
}

} // namespace

double worstDifference(const Gathered &ran, const ir::RunResult &expected,
                       std::string &name, double least) {
  Worst worst;
  compare(ran.gradients, elementsOf(expected.gradients), kGradient, least,
          worst);
  compare(ran.parameters, elementsOf(expected.parameters), "", least, worst);
  for (const auto &[key, tensor] : expected.results) {
    auto found = ran.reports.find(key.label);
    double value = tensor.ranks.front().data.front();
    // A report whose label has a `*` is a sum over layers and is not compared.
    if (key.label.find('*') == std::string::npos)
      worst.see(value, found == ran.reports.end() ? NAN : found->second,
                std::abs(value), "result " + key.label);
  }
  double squares = 0.0;
  for (const auto &[key, tensor] : expected.gradients)
    for (double element : tensor.ranks.front().data)
      squares += element * element;
  worst.see(std::sqrt(squares), ran.gradientNorm, std::sqrt(squares),
            "the norm of all gradients");
  name = worst.name;
  return worst.difference;
}

double worstDifference(const Gathered &ran, const Gathered &expected,
                       std::string &name, double least) {
  Worst worst;
  compare(ran.gradients, elementsOf(expected.gradients), kGradient, least,
          worst);
  compare(ran.parameters, elementsOf(expected.parameters), "", least, worst);
  compare(ran.firstMoments, elementsOf(expected.firstMoments), kFirst, least,
          worst);
  compare(ran.secondMoments, elementsOf(expected.secondMoments), kSecond, least,
          worst);
  for (const auto &[label, value] : expected.reports) {
    auto found = ran.reports.find(label);
    worst.see(value, found == ran.reports.end() ? NAN : found->second,
              std::abs(value), "result " + label);
  }
  worst.see(expected.gradientNorm, ran.gradientNorm, expected.gradientNorm,
            "the norm of all gradients");
  name = worst.name;
  return worst.difference;
}

} // namespace mtplan

//===- random_plan.h - Random plans of a training step ----------*- C++ -*-===//
//
// Makes random plans of a family's training step. Every operator, parameter,
// boundary and saved value gets a random legal choice; a repeated segment is
// split into runs of layers with different choices. The planner's exact solver
// adds the conversions, so that only plans the planner could return are tested.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PASSES_VERIFY_RANDOM_PLAN_H
#define MTPLAN_TESTS_PASSES_VERIFY_RANDOM_PLAN_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mlir/Pass/PassManager.h"

#include "passes/layout/bridge.h"
#include "passes/layout/planner_op.h"
#include "passes/passes.h"
#include "passes/verify/resize.h"
#include "planner/machine/machine_json.h"
#include "planner/search/segment/segment_plan.h"
#include "planner/search/segment/step_link.h"
#include "planner/search/space/pipeline_parts.h"
#include "planner/search/stage/stage_solver.h"
#include "planner/solve/chain_solver.h"
#include "tests/ir/model/loading.h"

namespace mtplan::passes {

/// Names an example model; `to` replaces `from` in its text to enable dropout.
struct Family {
  std::string example;
  std::string from = {}, to = {};
  int layers = 3; ///< repeated layers; 0: those of the file
  bool hasDropout = true;
  /// Lists the splits that the tensor axis may have in the model.
  std::set<std::string> splits = {"batch",    "column",  "feature",    "head",
                                  "hidden",   "partial", "replicated", "row",
                                  "sequence", "vocab"};
};

inline void PrintTo(const Family &family, std::ostream *out) {
  *out << family.example;
}

/// Returns an example of every model family and format.
inline std::vector<Family> families() {
  const std::string off = "\"attention_dropout\": 0.0";
  const std::string on = "\"attention_dropout\": 0.1";
  std::set<std::string> withExperts = Family().splits;
  withExperts.insert("expert");
  return {{"tiny-gpt2"},
          {"tiny-bert"},
          {"tiny-gptj"},
          {"tiny-gpt_neox"},
          {"tiny-gpt_neox-sequential", "\"hidden_act\"",
           "\"hidden_dropout\": 0.1, " + on + ", \"hidden_act\""},
          {"tiny-llama", off, on},
          {"tiny-mistral", off, on},
          {"tiny-qwen2", off, on},
          {"tiny-mixtral", off, on, 3, true, withExperts},
          {"tiny-qwen2_moe", off, on, 3, true, withExperts},
          {"tiny-vit"},
          {"tiny-t5"},
          {"tiny-t5_v1_1"},
          {"native/tiny-gpt2", "", "", 0},
          {"native/mlp",
           "",
           "",
           0,
           /*hasDropout=*/false,
           {"batch", "column", "feature", "partial", "replicated", "row",
            "sequence", "vocab"}}};
}

/// Holds a family's differentiated training step on a mesh.
class Step {
public:
  // There are enough samples for both axes to shard them.
  Step(const Family &family, int dp, int tp)
      : Step(family, planner::meshOf(dp, tp), 2L * dp * tp) {}

  Step(const Family &family, planner::Mesh on, std::int64_t samples)
      : mesh(std::move(on)), loading(textOf(family), overridesOf(family)) {
    if (!loading.model) {
      ADD_FAILURE() << family.example << ": " << loading.allErrors();
      return;
    }
    module = loading.model->module.get().clone();
    mlir::PassManager manager(&loading.context);
    manager.addPass(createDifferentiatePass());
    manager.addPass(createVerifyGradientsPass());
    EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
    resizeBatch(*module, samples);
    graph = buildModelGraph(*module);
    // Tensors count as 4 bytes wide, because 16-bit ones may not become
    // partial.
    for (planner::SegmentGraph &segment : graph.segments)
      for (planner::Tensor &tensor : segment.tensors)
        tensor.elementBytes = std::max(4, tensor.elementBytes);
  }

  /// Returns whether the model has dropout.
  bool dropsOut() {
    bool found = false;
    module->walk([&](mlir::Operation *op) {
      auto rate = op->getAttrOfType<mlir::FloatAttr>("rate");
      found |= rate && rate.getValueAsDouble() > 0.0;
    });
    return found;
  }

  /// Returns the step with `plans` applied.
  mlir::OwningOpRef<mlir::ModuleOp>
  planned(const std::vector<planner::SegmentPlan> &plans) {
    mlir::OwningOpRef<mlir::ModuleOp> copy(module->clone());
    applyPlan(*copy, graph, plans, mesh);
    return copy;
  }

  planner::Mesh mesh;
  ir::Loading loading;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  planner::ModelGraph graph;

private:
  static std::string textOf(const Family &family) {
    std::string text = ir::Loading::example(family.example);
    return family.from.empty() ? text : replaced(text, family.from, family.to);
  }
  static ir::ShapeOverrides overridesOf(const Family &family) {
    ir::ShapeOverrides overrides;
    if (family.layers > 0)
      overrides.layers = family.layers;
    return overrides;
  }
};

/// Makes random plans of one step.
class RandomPlanner {
public:
  /// \param splitRuns  splits repeated segments into the first layer and the
  ///                   rest, with different choices
  /// \param replicas   splits that the first axis (dp) may have
  RandomPlanner(const planner::ModelGraph &model, const planner::Mesh &mesh,
                bool splitRuns,
                std::vector<planner::Split> replicas = {planner::Split::batch})
      : graph(model), machine(planner::loadMachine("dgx-1")) {
    using enum planner::Split;
    setting.mesh = mesh;
    setting.rules = {
        {std::move(replicas), false},
        {{batch, sequence, column, row, head, vocab, expert, feature, hidden},
         true}};
    setting.microBatches = 2;
    setting.machine = &machine;
    setting.precision = planner::Precision::fp16;
    std::vector<std::vector<int>> cuts(graph.segments.size());
    if (splitRuns)
      for (std::vector<int> &cut : cuts)
        cut = {1};
    buildLinks(cuts);
    solver.emplace(chain);
  }

  /// \param how   the setting of a search candidate, without its machine
  /// \param parts virtual stages, whose layers get different choices
  RandomPlanner(const planner::ModelGraph &model, const planner::Setting &how,
                const std::vector<planner::PipelinePart> &parts)
      : graph(model), machine(planner::loadMachine("dgx-1")), setting(how) {
    setting.machine = &machine;
    std::vector<std::vector<int>> cuts(graph.segments.size());
    for (const planner::PipelinePart &part : parts)
      for (const planner::RepeatRange &range : part)
        if (range.first > 0)
          cuts[static_cast<std::size_t>(range.segment)].push_back(range.first);
    buildLinks(cuts);
    solver.emplace(chain);
  }

  /// Returns a plan that depends on `seed` only.
  std::vector<planner::SegmentPlan> plan(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    planner::ChainProblem drawn = chain;
    for (std::size_t l = 0; l < drawn.links.size(); ++l) {
      auto &tables = drawn.links[l].problem.tables;
      for (std::size_t t = pieces[l].firstDraw; t < tables.size(); ++t)
        for (double &time : tables[t].time)
          time = static_cast<double>(random() % 1'000'000);
    }
    planner::ChainSolution solution = solver->solve(drawn);
    EXPECT_TRUE(solution.feasible);
    std::vector<planner::SegmentPlan> plans;
    for (const planner::Run &run : solution.runs) {
      const Piece &piece = pieces[static_cast<std::size_t>(run.link)];
      planner::SegmentPlan plan = planner::readAssignment(
          graph, piece.segment,
          problems[static_cast<std::size_t>(piece.segment)], run.assignment);
      // The solver may return a repeated link as several runs.
      bool goesOn = !plans.empty() && plans.back().segment == piece.segment;
      plan.first =
          goesOn ? plans.back().first + plans.back().count : plan.first;
      plan.count = run.count;
      plans.push_back(std::move(plan));
    }
    return plans;
  }

private:
  struct Piece {
    int segment = 0;
    std::size_t firstDraw = 0; ///< index of the first table of random times
  };

  // For each segment, `cuts` has the layers before which the segment is split.
  void buildLinks(const std::vector<std::vector<int>> &cuts) {
    std::vector<bool> owners(graph.parameters.size(), true);
    for (std::size_t s = 0; s < graph.segments.size(); ++s) {
      int segment = static_cast<int>(s);
      problems.push_back(
          planner::buildSegmentProblem(graph, segment, setting, owners));
      planner::Link link = problems.back().link;
      std::size_t firstDraw = link.problem.tables.size();
      addDraws(problems.back(), link);
      int copies = link.repeat, begin = 0;
      std::vector<int> ends(cuts[s]);
      ends.push_back(copies);
      for (int end : ends)
        if (end > begin && end <= copies) {
          link.repeat = end - begin;
          chain.links.push_back(link);
          pieces.push_back({segment, firstDraw});
          begin = end;
        }
    }
  }

  // Adds a table of random times for every choice. Conversion sets have no
  // table, because they follow from the choices.
  static void addDraws(const planner::SegmentProblem &problem,
                       planner::Link &link) {
    std::vector<bool> isSet(link.problem.domains.size(), false);
    for (const planner::Conversions &conversions : problem.conversions)
      if (conversions.setVariable >= 0)
        isSet[static_cast<std::size_t>(conversions.setVariable)] = true;
    for (std::size_t v = 0; v < isSet.size(); ++v)
      if (!isSet[v])
        link.problem.tables.push_back(
            {{static_cast<int>(v)},
             std::vector<double>(
                 static_cast<std::size_t>(link.problem.domains[v]), 0.0),
             {}});
  }

  const planner::ModelGraph &graph;
  planner::Machine machine;
  planner::Setting setting;
  std::vector<planner::SegmentProblem> problems; ///< problem of each segment
  planner::ChainProblem chain;
  std::vector<Piece> pieces; ///< piece of each link
  std::optional<planner::ChainSolver> solver;
};

} // namespace mtplan::passes

#endif // MTPLAN_TESTS_PASSES_VERIFY_RANDOM_PLAN_H

//===- exported_plan.cpp - A plan in other formats ------------------------===//

#include <algorithm>

#include <fmt/format.h>

#include "planner/integers.h"
#include "planner/search/solve_candidate.h"
#include "planner/simulate/schedule.h"
#include "tools/driver/constraints.h"
#include "tools/driver/plan_text.h"
#include "tools/exchange/chrome_trace.h"
#include "tools/exchange/deepspeed.h"
#include "tools/exchange/megatron.h"
#include "tools/exchange/sharding_notation.h"
#include "tools/exchange/shardy.h"
#include "tools/exchange/torchtitan.h"
#include "tools/exchange/tp_plan.h"
#include "tools/report/plan_facts.h"
#include "tools/report/report.h"

namespace mtplan::tools {

using planner::at;
using planner::Layout;
using planner::SegmentPlan;

namespace {

struct Placed {
  std::string name; ///< "h.0..31.attn.q.weight"
  Layout layout;
  std::vector<NamedDim> dims;
};

// Returns "h.0..31.attn.q" for layers 0 to 31 of "h.*.attn.q".
std::string nameOfLayers(const std::string &label, int first, int count) {
  std::size_t star = label.find('*');
  if (star == label.npos)
    return label;
  std::string copies = std::to_string(first);
  if (count > 1)
    copies += ".." + std::to_string(first + count - 1);
  return label.substr(0, star) + copies + label.substr(star + 1);
}

// Writes a line for every stored parameter and for the first result of every
// forward operator. Layers with the same layout share a line. A layout that the
// notation cannot express is left out, with a note.
class Shardings {
public:
  Shardings(const PlanOutcome &outcome, ExportKind theKind)
      : graph(planner::withBatch(outcome.problem->graph,
                                 outcome.best()->config.microBatch *
                                     outcome.best()->config.dp)),
        plan(*outcome.best()), mesh(planner::meshOf(plan.config)),
        kind(theKind) {}

  Exported run() {
    const bool isPython =
        kind == ExportKind::jax || kind == ExportKind::dtensor;
    const std::string comment = isPython ? "    # " : "# ";
    out.text = heading() + comment + "parameters, as they are stored\n";
    for (const Placed &one : joined(parameters()))
      add(one);
    if (isPython)
      out.text += kind == ExportKind::jax ? "}\nactivations = {\n"
                                          : "}\nactivation_placements = {\n";
    out.text += comment + "results of operators in forward\n";
    for (const Placed &one : joined(results()))
      add(one);
    if (isPython)
      out.text += "}\n";
    if (plan.config.pp > 1)
      out.notes.push_back(fmt::format(
          "the mesh is that of one pipeline stage, of {}", plan.config.pp));
    return std::move(out);
  }

private:
  std::string heading() const {
    std::string sizes, names;
    for (const planner::MeshAxis &axis : mesh.axes) {
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", axis.size);
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", axis.name);
    }
    switch (kind) {
    case ExportKind::jax:
      return fmt::format("mesh = jax.make_mesh(({}), ({}))\nshardings = {{\n",
                         sizes, names);
    case ExportKind::dtensor:
      return fmt::format("mesh = init_device_mesh(\"cuda\", ({}), "
                         "mesh_dim_names=({}))\nplacements = {{\n",
                         sizes, names);
    case ExportKind::shardy:
      return writeShardyMesh(mesh, "mesh") + '\n';
    default: {
      std::string shape;
      for (const planner::MeshAxis &axis : mesh.axes)
        shape += fmt::format("{}{}:{}", shape.empty() ? "" : ";", axis.name,
                             axis.size);
      return "mesh_shape " + shape + '\n';
    }
    }
  }

  void add(const Placed &one) {
    Errors errors;
    std::string text;
    switch (kind) {
    case ExportKind::jax:
      text = fmt::format("    '{}': {},\n", one.name,
                         writePartitionSpec(one.layout, mesh, errors));
      break;
    case ExportKind::dtensor:
      text = fmt::format("    '{}': {},\n", one.name,
                         writeDTensor(one.layout, mesh));
      break;
    case ExportKind::shardy:
      text = fmt::format("{} {}\n", one.name,
                         writeShardy(one.layout, mesh, "mesh", errors));
      break;
    default:
      text =
          fmt::format("{} {}\n", one.name,
                      writeMeshTensorflow(one.layout, one.dims, mesh, errors));
      break;
    }
    if (errors.empty())
      out.text += text;
    for (const std::string &error : errors)
      out.notes.push_back(one.name + " is left out: " + error);
  }

  static std::vector<NamedDim> named(const std::vector<std::int64_t> &shape,
                                     const std::vector<std::string> &words) {
    std::vector<NamedDim> dims;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      auto same =
          std::count(words.begin(),
                     words.begin() + static_cast<std::ptrdiff_t>(d), words[d]);
      dims.push_back(
          {words[d] + (same > 0 ? std::to_string(same + 1) : ""), shape[d]});
    }
    return dims;
  }

  /// Holds a value of `count` layers from layer `first`.
  struct LabelledLayers {
    std::string label;
    int first, count;
    Placed placed;
  };

  std::vector<LabelledLayers> parameters() const {
    std::vector<LabelledLayers> all;
    for (const SegmentPlan &run : plan.plans())
      for (std::size_t p = 0; p < run.parameters.size(); ++p) {
        if (!run.parameters[p])
          continue;
        const planner::Parameter &parameter = graph.parameters[p];
        std::vector<std::string> words;
        for (planner::Split split : parameter.splits)
          words.emplace_back(nameOf(split));
        all.push_back(
            {parameter.name,
             run.first,
             run.count,
             {"", run.parameters[p]->stored, named(parameter.shape, words)}});
      }
    return all;
  }

  std::vector<LabelledLayers> results() const {
    std::vector<LabelledLayers> all;
    for (const SegmentPlan &run : plan.plans()) {
      const planner::SegmentGraph &segment = graph.segments[at(run.segment)];
      for (std::size_t o = 0; o < segment.ops.size(); ++o) {
        const planner::Op &op = segment.ops[o];
        if (op.phase != planner::Phase::forward)
          continue;
        const planner::Tensor &tensor =
            segment.tensors[at(op.results[0].tensor)];
        std::vector<std::string> words;
        for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
          int factor = op.results[0].factors[d];
          words.emplace_back(factor < 0 ? "whole"
                                        : nameOf(op.factors[at(factor)].split));
        }
        all.push_back({op.name,
                       run.first,
                       run.count,
                       {"", planner::resultLayout(op, run.strategies[o], 0),
                        named(tensor.shape, words)}});
      }
    }
    return all;
  }

  // Merges consecutive layers with the same label and layout.
  static std::vector<Placed> joined(std::vector<LabelledLayers> said) {
    std::vector<Placed> all;
    std::vector<bool> taken(said.size(), false);
    for (std::size_t i = 0; i < said.size(); ++i) {
      for (std::size_t j = i; j < said.size(); ++j) {
        if (taken[j] || said[j].label != said[i].label)
          continue;
        LabelledLayers one = said[j];
        for (std::size_t k = j; k < said.size(); ++k) {
          bool follows = k == j || said[k].first == one.first + one.count;
          if (taken[k] || said[k].label != one.label || !follows ||
              said[k].placed.layout != one.placed.layout)
            continue;
          taken[k] = true;
          one.count += k == j ? 0 : said[k].count;
        }
        // Several segments use a tied parameter, which is written once.
        bool again =
            one.label.find('*') == one.label.npos && !all.empty() &&
            std::ranges::find(all, one.label, &Placed::name) != all.end();
        one.placed.name = nameOfLayers(one.label, one.first, one.count);
        if (!again)
          all.push_back(std::move(one.placed));
      }
    }
    return all;
  }

  planner::ModelGraph graph;
  const planner::PlannedCandidate &plan;
  planner::Mesh mesh;
  ExportKind kind;
  Exported out;
};

// Returns the layout in which the first forward operator reads a weight;
// nothing if none in the run reads it.
std::optional<Layout> usedAs(const planner::ModelGraph &graph,
                             const SegmentPlan &run, int parameter) {
  const planner::SegmentGraph &segment = graph.segments[at(run.segment)];
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    for (std::size_t i = 0; i < segment.ops[o].operands.size(); ++i) {
      const planner::Tensor &tensor =
          segment.tensors[at(segment.ops[o].operands[i].tensor)];
      if (segment.ops[o].phase == planner::Phase::forward &&
          tensor.kind == planner::TensorKind::parameter &&
          tensor.parameter == parameter)
        return planner::operandLayout(segment.ops[o], run.strategies[o],
                                      static_cast<int>(i));
    }
  return std::nullopt;
}

Exported exportTpPlan(const PlanOutcome &outcome) {
  const planner::ModelGraph &graph = outcome.problem->graph;
  const planner::PlannedCandidate &plan = *outcome.best();
  planner::Mesh mesh = planner::meshOf(plan.config);
  int axis = planner::tensorAxisOf(mesh);
  std::vector<PlacedParameter> placed;
  std::vector<std::string> gathered;
  std::vector<SegmentPlan> runs = plan.plans();
  for (const SegmentPlan &run : runs)
    for (std::size_t p = 0; p < run.parameters.size(); ++p) {
      if (!run.parameters[p])
        continue;
      std::optional<Layout> used = usedAs(graph, run, static_cast<int>(p));
      const std::string &name = graph.parameters[p].name;
      if (!used)
        continue;
      if (planner::placementOf(run.parameters[p]->stored, axis) !=
              planner::placementOf(*used, axis) &&
          std::ranges::find(gathered, name) == gathered.end())
        gathered.push_back(name);
      std::size_t star = name.find('*');
      bool alike = std::ranges::all_of(runs, [&](const SegmentPlan &other) {
        auto there = usedAs(graph, other, static_cast<int>(p));
        return !there || *there == *used;
      });
      if (star == name.npos || alike) {
        if (std::ranges::find(placed, name, &PlacedParameter::name) ==
            placed.end())
          placed.push_back({name, *used});
        continue;
      }
      for (int copy = run.first; copy < run.first + run.count; ++copy)
        placed.push_back({nameOfLayers(name, copy, 1), *used});
    }
  Exported out = writeTpPlan(outcome.problem->model.family, placed, mesh);
  for (const std::string &name : gathered)
    out.notes.push_back(name + ": is stored otherwise over tp than it is used; "
                               "the notation says how it is used");
  return out;
}

// Adds notes on tiles and on products in fp8, which no trainer's configuration
// expresses.
Exported withNotes(Exported out, const PlanOutcome &outcome,
                   const char *where) {
  PlanFacts facts = factsOf(*outcome.problem, *outcome.best());
  if (std::string tiled = tiledText(facts); !tiled.empty())
    out.notes.push_back("weights are used in tiles, " + tiled + "; " + where);
  if (outcome.problem->options.precision == planner::Precision::fp8)
    out.notes.emplace_back("the plan's products are in fp8; written as bf16: "
                           "enable fp8 in the trainer");
  return out;
}

} // namespace

Exported exportPlan(const PlanOutcome &outcome, ExportKind kind) {
  const Problem &problem = *outcome.problem;
  const ir::LoadedModel &model = problem.model;
  const planner::PlannedCandidate &best = *outcome.best();
  TrainerConfig config;
  config.parallelism = best.config;
  config.parallelism.sequenceParallel = factsOf(problem, best).sequenceParallel;
  config.precision = problem.options.precision == planner::Precision::fp8
                         ? planner::Precision::bf16
                         : problem.options.precision;
  config.training.overlapGradReduce = problem.options.overlaps.reduce;
  config.training.overlapParamGather = problem.options.overlaps.gather;
  config.training.overlapPipeline = problem.options.overlaps.pointToPoint;
  ModelFacts &facts = config.model;
  facts.layers = model.layers;
  facts.hidden = model.hidden.value_or(0);
  facts.heads = model.heads.value_or(0);
  facts.kvHeads = model.kvHeads.value_or(facts.heads);
  facts.ffn = model.inner.value_or(0);
  facts.vocab = model.vocabulary.value_or(0);
  facts.sequence = model.sequence;
  facts.tied = std::ranges::any_of(
      problem.graph.parameters, [](const planner::Parameter &parameter) {
        return parameter.shared && parameter.name == "wte.weight";
      });
  if (model.family == "llama" || model.family == "mistral" ||
      model.family == "qwen2") {
    facts.swiglu = true;
    facts.linearBias = false;
    facts.norm = NormKind::rmsNorm;
    facts.position = PositionKind::rope;
  } else if (model.family == "gptj" || model.family == "gpt_neox") {
    facts.position = PositionKind::rope;
  }
  switch (kind) {
  case ExportKind::megatron:
    return withNotes(writeMegatron(config), outcome, "Megatron-LM has none");
  case ExportKind::deepspeed:
    return withNotes(writeDeepSpeed(config), outcome,
                     "in DeepSpeed the model's code asks for them: TiledLinear "
                     "(deepspeed/runtime/zero/tiling.py)");
  case ExportKind::torchtitan:
    return withNotes(writeTorchtitan(config), outcome, "torchtitan has none");
  case ExportKind::accelerate:
    return withNotes(writeAccelerate(config), outcome, "FSDP2 has none");
  case ExportKind::tpPlan:
    return exportTpPlan(outcome);
  case ExportKind::jax:
  case ExportKind::shardy:
  case ExportKind::dtensor:
  case ExportKind::meshTensorflow:
    return Shardings(outcome, kind).run();
  case ExportKind::constraints:
    return {constraintsOf(outcome.asked, problem, best), {}};
  }
  return {};
}

std::string traceTextOf(const PlanOutcome &outcome,
                        std::vector<std::string> &errors) {
  const Problem &problem = *outcome.problem;
  const planner::PlannedCandidate &best = *outcome.best();
  planner::Setting setting =
      planner::settingOf(problem.options, problem.machine, best.config);
  planner::StepProblem step = planner::stepProblemOf(
      planner::withBatch(problem.graph,
                         best.config.microBatch * best.config.dp),
      best.parts, setting, best.config, problem.options.overlaps);
  return writeChromeTrace(
      traceOf(planner::simulateStep(step, planner::scheduleOf(step.shape))),
      errors);
}

} // namespace mtplan::tools

//===- exported_shardings.cpp - Layouts of a plan in other notations ------===//

#include "tools/report/exported_shardings.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/integers.h"
#include "tools/exchange/sharding_notation.h"
#include "tools/exchange/shardy.h"
#include "tools/report/tensor_splits.h"

namespace mtplan::tools {

using planner::at;
using planner::Layout;
using planner::SegmentPlan;

namespace {

struct Placed {
  std::string name; ///< "h.0..31.attn.q.weight"
  Layout layout;
  std::vector<NamedDim> dims;
  std::int64_t padding = 0; ///< rows or columns that are padding
};

// Writes a line for every stored parameter and for the first result of every
// forward operator. Layers with the same layout share a line. A layout that the
// notation cannot express is left out, with a note.
class Shardings {
public:
  Shardings(const PlanOutcome &outcome, ExportKind theKind)
      : problem(*outcome.problem),
        graph(planner::withBatch(problem.graph,
                                 outcome.best()->config.microBatch *
                                     outcome.best()->config.dp)),
        plan(*outcome.best()), mesh(planner::meshOf(plan.config)),
        kind(theKind) {}

  Exported run() {
    const bool isPython =
        kind == ExportKind::jax || kind == ExportKind::dtensor;
    const std::string comment = isPython ? "    # " : "# ";
    out.text = heading() + comment + "parameters, as they are stored\n";
    const std::vector<Placed> stored = joined(parameters());
    for (const Placed &one : stored)
      add(one);
    if (isPython) {
      addShapes(stored);
      out.text += kind == ExportKind::jax ? "activations = {\n"
                                          : "activation_placements = {\n";
    }
    out.text += comment + "results of operators in forward\n";
    if (kind == ExportKind::jax)
      out.text += "    # (an Auto mesh cannot be asked for partial sums)\n";
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
    std::string sizes, names, kinds;
    for (const planner::MeshAxis &axis : mesh.axes) {
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", axis.size);
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", axis.name);
      kinds += fmt::format("{}AxisType.Auto", kinds.empty() ? "" : ", ");
    }
    switch (kind) {
    case ExportKind::jax:
      return fmt::format("import jax\n"
                         "from jax.sharding import AxisType, PartitionSpec as "
                         "P\n\n"
                         "mesh = jax.make_mesh(({}), ({}),\n"
                         "                     axis_types=({}))\n"
                         "shardings = {{\n",
                         sizes, names, kinds);
    case ExportKind::dtensor:
      return fmt::format(
          "from torch.distributed.device_mesh import init_device_mesh\n"
          "from torch.distributed.tensor import Partial, Replicate, Shard\n"
          "from torch.distributed.tensor.placement_types import "
          "_StridedShard\n\n"
          "mesh = init_device_mesh(\"cuda\", ({}), mesh_dim_names=({}))\n"
          "# weights of products are [out, in], as in torch.nn.Linear\n"
          "placements = {{\n",
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
      text = fmt::format("    {}'{}': {},\n",
                         one.layout.partial.empty() ? "" : "# ", one.name,
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

  void addShapes(const std::vector<Placed> &stored) {
    out.text += "}\nshapes = {\n";
    for (const Placed &one : stored) {
      std::vector<std::int64_t> sizes;
      for (const NamedDim &dim : one.dims)
        sizes.push_back(dim.size);
      out.text += fmt::format(
          "    '{}': ({}{}),{}\n", one.name, fmt::join(sizes, ", "),
          sizes.size() == 1 ? "," : "",
          one.padding > 0 ? fmt::format("  # with {} of padding", one.padding)
                          : "");
    }
    out.text += "}\n";
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

  /// Holds a value of `count` layers, which begin at layer `first`.
  struct LabelledLayers {
    std::string label;
    int first, count;
    Placed placed;
  };

  // Returns whether the parameter is a matrix [in, out] of a product.
  bool isInByOut(int parameter) const {
    if (graph.parameters[at(parameter)].shape.size() != 2)
      return false;
    for (const planner::SegmentGraph &segment : graph.segments)
      for (const planner::Op &op : segment.ops)
        for (const planner::Use &use : op.operands)
          if (op.phase == planner::Phase::forward && op.kind == "einsum" &&
              segment.tensors[at(use.tensor)].parameter == parameter)
            return std::ranges::find(op.k, use.factors[0]) != op.k.end();
    return false;
  }

  std::int64_t paddingOf(const planner::Parameter &parameter) const {
    const ir::LoadedModel &model = problem.model;
    const bool isTable =
        model.vocabulary && model.paddedVocabulary &&
        std::ranges::find(parameter.shape, *model.paddedVocabulary) !=
            parameter.shape.end() &&
        std::ranges::find(parameter.splits, planner::Split::vocab) !=
            parameter.splits.end();
    return isTable ? *model.paddedVocabulary - *model.vocabulary : 0;
  }

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
        Placed placed{"", run.parameters[p]->stored,
                      named(parameter.shape, words), paddingOf(parameter)};
        if (kind == ExportKind::dtensor && isInByOut(static_cast<int>(p))) {
          std::swap(placed.layout.dims[0], placed.layout.dims[1]);
          std::swap(placed.dims[0], placed.dims[1]);
        }
        all.push_back({parameter.name, run.first, run.count, placed});
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

  const Problem &problem;
  planner::ModelGraph graph;
  const planner::PlannedCandidate &plan;
  planner::Mesh mesh;
  ExportKind kind;
  Exported out;
};

} // namespace

Exported exportShardings(const PlanOutcome &outcome, ExportKind kind) {
  return Shardings(outcome, kind).run();
}

} // namespace mtplan::tools

//===- graph_check.h - The invariants of an op graph ------------*- C++ -*-===//
//
// Checks the invariants that the comments of planner/graph/op_graph.h state.
// The planner itself relies on the compiler (passes/layout/bridge.h) for them.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PLANNER_GRAPH_CHECK_H
#define MTPLAN_TESTS_PLANNER_GRAPH_CHECK_H

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "planner/graph/op_graph.h"
#include "planner/integers.h"

namespace mtplan::planner {

using base::childPointer;

/// Checks one graph and collects its errors.
class GraphCheck {
public:
  explicit GraphCheck(const ModelGraph &model) : graph(model) {}

  std::vector<std::string> run() {
    if (graph.segments.empty())
      fail("/segments", "is empty; a model needs at least one");
    if (graph.sequence < 0)
      fail("/sequence", "is ", graph.sequence, ", must not be negative");
    for (std::size_t p = 0; p < graph.parameters.size(); ++p)
      checkParameter(graph.parameters[p], childPointer("/parameters", p));
    for (std::size_t s = 0; s < graph.segments.size(); ++s)
      checkSegment(graph.segments[s], childPointer("/segments", s));
    for (std::size_t s = 0; s + 1 < graph.segments.size(); ++s)
      checkCarried(graph.segments[s], graph.segments[s + 1],
                   childPointer("/segments", s + 1));
    return std::move(errors);
  }

private:
  static std::string quoted(const std::string &name) {
    return '"' + name + '"';
  }

  // Adds an error: the concatenation of `parts`, which are texts and integers.
  template <typename... Parts>
  void fail(const std::string &pointer, const Parts &...parts) {
    std::string &error = errors.emplace_back(pointer + ": ");
    ((error += textOf(parts)), ...);
  }

  static std::string textOf(const std::string &text) { return text; }
  static std::string textOf(const char *text) { return text; }
  static std::string textOf(std::int64_t number) {
    return std::to_string(number);
  }

  bool inRange(int index, std::size_t size, const std::string &pointer,
               const char *what) {
    if (index >= 0 && at(index) < size)
      return true;
    fail(pointer, "is ", index, ", but there are ", size, " ", what);
    return false;
  }

  void atLeast(std::int64_t value, std::int64_t least,
               const std::string &pointer) {
    if (value < least)
      fail(pointer, "is ", value, ", must be at least ", least);
  }

  void checkShape(const std::vector<std::int64_t> &shape,
                  const std::string &pointer) {
    for (std::size_t d = 0; d < shape.size(); ++d)
      atLeast(shape[d], 1, childPointer(pointer, d));
  }

  void checkParameter(const Parameter &parameter, const std::string &pointer) {
    checkShape(parameter.shape, pointer + "/shape");
    atLeast(parameter.elementBytes, 1, pointer + "/element_bytes");
    atLeast(parameter.copies, 1, pointer + "/copies");
    if (parameter.splits.size() != parameter.shape.size())
      fail(pointer + "/splits", "names ", parameter.splits.size(),
           " splits for ", parameter.shape.size(), " dimensions");
  }

  void checkTensor(const Tensor &tensor, const std::string &pointer) {
    checkShape(tensor.shape, pointer + "/shape");
    atLeast(tensor.elementBytes, 1, pointer + "/element_bytes");
    if (tensor.batchDim < -1 ||
        tensor.batchDim >= static_cast<int>(tensor.shape.size()))
      fail(pointer + "/batch_dim", "is ", tensor.batchDim,
           ", but the tensor has ", tensor.shape.size(), " dimensions");
    if (tensor.kind == TensorKind::parameter) {
      if (inRange(tensor.parameter, graph.parameters.size(),
                  pointer + "/parameter", "parameters") &&
          graph.parameters[at(tensor.parameter)].shape != tensor.shape)
        fail(pointer + "/shape", "differs from the shape of parameter ",
             quoted(graph.parameters[at(tensor.parameter)].name));
    } else if (tensor.parameter != -1) {
      fail(pointer + "/parameter", "is ", tensor.parameter, ", but ",
           quoted(tensor.name), " is not of kind \"parameter\"");
    }
  }

  void checkUse(const Use &use, const Op &op, const SegmentGraph &segment,
                const std::string &pointer) {
    if (!inRange(use.tensor, segment.tensors.size(), pointer + "/tensor",
                 "tensors"))
      return;
    const Tensor &tensor = segment.tensors[at(use.tensor)];
    if (use.factors.size() != tensor.shape.size()) {
      fail(pointer + "/factors", "lists ", use.factors.size(), " factors, but ",
           quoted(tensor.name), " has ", tensor.shape.size(), " dimensions");
      return;
    }
    for (std::size_t d = 0; d < use.factors.size(); ++d) {
      int index = use.factors[d];
      std::string here = childPointer(pointer + "/factors", d);
      if (index == -1 || !inRange(index, op.factors.size(), here, "factors"))
        continue;
      const Factor &factor = op.factors[at(index)];
      // A factor may count blocks of the dimension, as heads do of features.
      if (factor.size < 1 || tensor.shape[d] % factor.size != 0)
        fail(here, "factor ", quoted(factor.name), " has size ", factor.size,
             ", but dimension ", d, " of ", quoted(tensor.name), " has size ",
             tensor.shape[d]);
      auto before = use.factors.begin() + static_cast<std::ptrdiff_t>(d);
      if (std::find(use.factors.begin(), before, index) != before)
        fail(here, "factor ", quoted(factor.name),
             " runs along two dimensions of ", quoted(tensor.name));
    }
  }

  void checkFactor(const Factor &factor, const std::string &pointer) {
    atLeast(factor.size, 1, pointer + "/size");
    if (!std::isfinite(factor.skew) || factor.skew < 0)
      fail(pointer + "/skew", "must be a number of at least 0");
  }

  // Checks that every factor of m, n, k and batch is in the operands and result
  // that define the role, and that no factor has two roles.
  void checkRoles(const Op &op, const std::string &pointer) {
    if (op.opClass != OpClass::gemm) {
      if (!op.m.empty() || !op.n.empty() || !op.k.empty() || !op.batch.empty())
        fail(pointer, "has m, n, k or batch, but its class is not \"gemm\"");
      return;
    }
    if (op.operands.size() < 2 || op.results.empty()) {
      fail(pointer, "is a gemm with ", op.operands.size(), " operands and ",
           op.results.size(), " results, needs 2 and 1");
      return;
    }
    struct Role {
      const char *name;
      const std::vector<int> *factors;
      bool first, second, result;
    };
    const Role roles[] = {{"m", &op.m, true, false, true},
                          {"n", &op.n, false, true, true},
                          {"k", &op.k, true, true, false},
                          {"batch", &op.batch, true, true, true}};
    std::vector<const char *> taken(op.factors.size(), nullptr);
    for (const Role &role : roles)
      for (std::size_t i = 0; i < role.factors->size(); ++i) {
        int index = (*role.factors)[i];
        std::string here = childPointer(pointer + '/' + role.name, i);
        if (!inRange(index, op.factors.size(), here, "factors"))
          continue;
        const char *&owner = taken[at(index)];
        const std::string name = quoted(op.factors[at(index)].name);
        if (owner)
          fail(here, "factor ", name, " already has the role ", owner);
        owner = role.name;
        checkMembership(op.operands[0], index, role.first, here, name,
                        "the first operand");
        checkMembership(op.operands[1], index, role.second, here, name,
                        "the second operand");
        checkMembership(op.results[0], index, role.result, here, name,
                        "the result");
      }
  }

  void checkMembership(const Use &use, int factor, bool wanted,
                       const std::string &pointer, const std::string &name,
                       const char *where) {
    if (contains(use.factors, factor) != wanted)
      fail(pointer, "factor ", name, " is ", (wanted ? "not " : ""), "in ",
           where);
  }

  void checkOp(const Op &op, const SegmentGraph &segment,
               const std::string &pointer) {
    for (std::size_t f = 0; f < op.factors.size(); ++f)
      checkFactor(op.factors[f], childPointer(pointer + "/factors", f));
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      checkUse(op.operands[i], op, segment,
               childPointer(pointer + "/operands", i));
    for (std::size_t i = 0; i < op.results.size(); ++i)
      checkUse(op.results[i], op, segment,
               childPointer(pointer + "/results", i));
    if (op.results.empty())
      fail(pointer + "/results", "is empty; an operator makes something");
    if (op.kind.empty() && !op.variant.empty())
      fail(pointer + "/variant", "is ", quoted(op.variant),
           ", but there is no kind that it is of");
    if (!std::isfinite(op.flops.value) || op.flops.value < 0)
      fail(pointer + "/flops", "must be a number of at least 0");
    for (std::size_t i = 0; i < op.addends.size(); ++i)
      inRange(op.addends[i], op.operands.size(),
              childPointer(pointer + "/addends", i), "operands");
    for (std::size_t g = 0; g < op.linearGroups.size(); ++g) {
      std::string group = childPointer(pointer + "/linear_groups", g);
      if (op.linearGroups[g].empty())
        fail(group, "is empty; a linear group names at least one operand");
      for (std::size_t i = 0; i < op.linearGroups[g].size(); ++i)
        inRange(op.linearGroups[g][i], op.operands.size(),
                childPointer(group, i), "operands");
    }
    checkRoles(op, pointer);
  }

  // Checks that each tensor has one producer, that arguments have none, and
  // that producers precede their consumers.
  void checkOrder(const SegmentGraph &segment, const std::string &pointer) {
    std::vector<int> maker(segment.tensors.size(), -1);
    auto valid = [&](int tensor) { return exists(tensor, segment); };
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      for (std::size_t r = 0; r < segment.ops[o].results.size(); ++r) {
        int tensor = segment.ops[o].results[r].tensor;
        if (!valid(tensor))
          continue;
        std::string here =
            childPointer(childPointer(pointer + "/ops", o) + "/results", r) +
            "/tensor";
        auto index = at(tensor);
        const Tensor &made = segment.tensors[index];
        if (maker[index] >= 0)
          fail(here, quoted(made.name), " is already made by operator ",
               maker[index]);
        else
          maker[index] = static_cast<int>(o);
        if (made.kind != TensorKind::activation)
          fail(here, quoted(made.name), " is an argument and cannot be made");
      }
    for (const std::vector<int> *arguments :
         {&segment.carriedIn, &segment.gradientIn})
      for (int tensor : *arguments)
        if (valid(tensor) && maker[at(tensor)] >= 0)
          fail(childPointer(pointer + "/tensors", at(tensor)),
               "comes in from a neighbour but is made by operator ",
               maker[at(tensor)]);

    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      for (std::size_t i = 0; i < segment.ops[o].operands.size(); ++i) {
        int tensor = segment.ops[o].operands[i].tensor;
        if (!valid(tensor))
          continue;
        std::string here =
            childPointer(childPointer(pointer + "/ops", o) + "/operands", i) +
            "/tensor";
        auto index = at(tensor);
        const std::string name = quoted(segment.tensors[index].name);
        if (maker[index] < 0) {
          if (!isArgument(segment, tensor))
            fail(here, name, " is made by no operator and is no argument");
          continue;
        }
        if (maker[index] >= static_cast<int>(o))
          fail(here, name, " is read before operator ", maker[index],
               " makes it");
      }
  }

  // Checks that a fused operator is pointwise in its producer's first result,
  // and that the producer has no other fused consumer.
  void checkFusedOperand(const SegmentGraph &segment, const Op &op,
                         const std::string &pointer,
                         std::vector<bool> &isFused) {
    if (op.fusedOperand == -1 ||
        !inRange(op.fusedOperand, op.operands.size(), pointer, "operands"))
      return;
    const Use &operand = op.operands[at(op.fusedOperand)];
    if (op.opClass != OpClass::memory)
      fail(pointer, "is of an operator that is not of class \"memory\"");
    if (op.results.empty() || operand.factors != op.results[0].factors)
      fail(pointer, "operand ", op.fusedOperand,
           " does not run along the factors of the result");
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const Op &maker = segment.ops[o];
      if (maker.opClass == OpClass::attention || maker.phase != op.phase ||
          maker.results.empty() || maker.results[0].tensor != operand.tensor)
        continue;
      if (isFused[o])
        fail(pointer, "operator ", o,
             " is fused with another operator already");
      isFused[o] = true;
      return;
    }
    fail(pointer, "operand ", op.fusedOperand,
         " is the first result of no product or pass of the same phase");
  }

  static bool exists(int tensor, const SegmentGraph &segment) {
    return tensor >= 0 && at(tensor) < segment.tensors.size();
  }

  static bool isArgument(const SegmentGraph &segment, int tensor) {
    return segment.tensors[at(tensor)].kind != TensorKind::activation ||
           contains(segment.carriedIn, tensor) ||
           contains(segment.gradientIn, tensor);
  }

  bool checkList(const std::vector<int> &list, const SegmentGraph &segment,
                 const std::string &pointer) {
    bool sound = true;
    for (std::size_t i = 0; i < list.size(); ++i)
      sound &= inRange(list[i], segment.tensors.size(),
                       childPointer(pointer, i), "tensors");
    return sound;
  }

  void sameShapes(const SegmentGraph &first, const std::vector<int> &left,
                  const SegmentGraph &second, const std::vector<int> &right,
                  const std::string &pointer, const char *what) {
    if (left.size() != right.size()) {
      fail(pointer, "lists ", right.size(), " tensors for ", left.size(), " ",
           what);
      return;
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Tensor &a = first.tensors[at(left[i])];
      const Tensor &b = second.tensors[at(right[i])];
      if (a.shape != b.shape)
        fail(childPointer(pointer, i), quoted(b.name), " and ", quoted(a.name),
             " must have one shape");
    }
  }

  void checkSegment(const SegmentGraph &segment, const std::string &pointer) {
    atLeast(segment.repeat, 1, pointer + "/repeat");
    atLeast(segment.first, 0, pointer + "/first");
    for (std::size_t t = 0; t < segment.tensors.size(); ++t)
      checkTensor(segment.tensors[t], childPointer(pointer + "/tensors", t));
    bool backward = false;
    std::vector<bool> isFused(segment.ops.size(), false);
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      std::string here = childPointer(pointer + "/ops", o);
      checkOp(segment.ops[o], segment, here);
      checkFusedOperand(segment, segment.ops[o], here + "/follows", isFused);
      if (backward && segment.ops[o].phase == Phase::forward)
        fail(here + "/phase", "is \"forward\" after a backward operator");
      backward |= segment.ops[o].phase == Phase::backward;
    }
    checkOrder(segment, pointer);

    bool sound = checkList(segment.carriedIn, segment, pointer + "/carried_in");
    sound &= checkList(segment.carriedOut, segment, pointer + "/carried_out");
    sound &= checkList(segment.gradientIn, segment, pointer + "/gradient_in");
    sound &= checkList(segment.gradientOut, segment, pointer + "/gradient_out");
    checkList(segment.reported, segment, pointer + "/reported");
    if (sound && backward) {
      sameShapes(segment, segment.carriedOut, segment, segment.gradientIn,
                 pointer + "/gradient_in", "carried out");
      sameShapes(segment, segment.carriedIn, segment, segment.gradientOut,
                 pointer + "/gradient_out", "carried in");
    }
    if (sound && segment.repeat > 1)
      sameShapes(segment, segment.carriedOut, segment, segment.carriedIn,
                 pointer + "/carried_in", "carried out of the copy before");
    for (std::size_t i = 0; i < segment.accumulations.size(); ++i) {
      const Accumulation &sum = segment.accumulations[i];
      std::string here = childPointer(pointer + "/accumulations", i);
      bool both = inRange(sum.tensor, segment.tensors.size(), here + "/tensor",
                          "tensors");
      both &= inRange(sum.parameter, graph.parameters.size(),
                      here + "/parameter", "parameters");
      if (both && segment.tensors[at(sum.tensor)].shape !=
                      graph.parameters[at(sum.parameter)].shape)
        fail(here, "the gradient and its parameter must have one shape");
    }
  }

  void checkCarried(const SegmentGraph &before, const SegmentGraph &after,
                    const std::string &pointer) {
    auto sound = [](const std::vector<int> &list, const SegmentGraph &segment) {
      return std::ranges::all_of(
          list, [&](int tensor) { return exists(tensor, segment); });
    };
    if (sound(before.carriedOut, before) && sound(after.carriedIn, after))
      sameShapes(before, before.carriedOut, after, after.carriedIn,
                 pointer + "/carried_in", "carried out of the segment before");
  }

  const ModelGraph &graph;
  std::vector<std::string> errors;
};

/// Returns a sentence for every violation, each starting with a pointer such as
/// "/segments/0/ops/2/phase"; empty if the graph is valid. The complexity is
/// linear in the graph.
inline std::vector<std::string> check(const ModelGraph &graph) {
  return GraphCheck(graph).run();
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_GRAPH_CHECK_H

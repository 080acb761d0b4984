//===- step_specification.h - The fastest step, by exhaustion ---*- C++ -*-===//
//
// Specifies planner/search: tries every strategy of every operator, every state
// of every parameter, every layout of a boundary or saved value, and every way
// of converting each tensor, without the search's tables and elimination.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PLANNER_SEARCH_SEGMENT_STEP_SPECIFICATION_H
#define MTPLAN_TESTS_PLANNER_SEARCH_SEGMENT_STEP_SPECIFICATION_H

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "planner/cost/compute_cost.h"
#include "planner/search/segment/reshard_prices.h"
#include "tests/planner/plain_times.h"

namespace mtplan::planner {

/// Returns the lowest price of making all layouts in the bit mask `wanted` from
/// those in the bit mask `have`. Tries every order of conversions and every
/// source of each. Any layout with a row in `price` may be an intermediate
/// layout.
inline double cheapestTree(const std::vector<std::vector<double>> &price,
                           unsigned have, unsigned wanted) {
  if ((wanted & ~have) == 0)
    return 0.0;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t to = 0; to < price.size(); ++to)
    for (std::size_t from = 0; from < price.size(); ++from)
      if ((have >> from & 1U) && !(have >> to & 1U) && price[from][to] < best)
        best = std::min(best, price[from][to] +
                                  cheapestTree(price, have | 1U << to, wanted));
  return best;
}

class StepSpecification {
public:
  StepSpecification(const ModelGraph &m, const Setting &s)
      : model(m), setting(s) {}

  /// Returns the number of assignments of the largest segment.
  double size() {
    double largest = 0;
    for (std::size_t s = 0; s < model.segments.size(); ++s) {
      start(s);
      double product = 1;
      for (const Choice &choice : choices)
        product *= static_cast<double>(choice.count);
      largest = std::max(largest, product);
    }
    return largest;
  }

  /// Returns the seconds of the fastest step of the chain.
  double fastest() {
    std::vector<std::map<Key, double>> tables;
    for (std::size_t s = 0; s < model.segments.size(); ++s)
      tables.push_back(tableOf(s));
    double best = kNever;
    for (int shared = 0; shared < 64; ++shared) {
      std::map<int, double> reached{{0, 0.0}};
      for (std::size_t s = 0; s < tables.size(); ++s)
        for (int copy = 0; copy < model.segments[s].repeat; ++copy) {
          std::map<int, double> next;
          for (const auto &[key, time] : tables[s]) {
            auto [in, out, state] = key;
            if (state >= 0 && state != shared)
              continue;
            // The chain may begin and end in any state.
            bool first = s == 0 && copy == 0;
            double before = kNever;
            for (const auto &[at, spent] : reached)
              if (first || at == in)
                before = std::min(before, spent);
            auto [known, isNew] = next.emplace(out, before + time);
            known->second = std::min(known->second, before + time);
          }
          reached = std::move(next);
        }
      for (const auto &[at, spent] : reached)
        best = std::min(best, spent);
    }
    return best;
  }

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  using Key = std::tuple<int, int, int>; // in state, out state, shared state

  struct Choice {
    int count = 1;
    // `layouts` and `cost` (seconds) have an element for each value of the
    // choice.
    struct Port {
      int tensor = 0;
      bool makes = false;
      Phase phase = Phase::forward;
      std::vector<Layout> layouts;
    };
    std::vector<Port> ports;
    std::vector<double> cost;
    enum { inside, in, out, shared } role = inside;
  };

  int tp() const { return setting.mesh.axes[1].size; }
  bool allowed(Split split) const { return setting.rules[1].has(split); }

  std::vector<Layout> boundary(const Tensor &tensor) const {
    Layout base = Layout::replicated(3);
    if (setting.mesh.axes[0].size > 1)
      base.dims[0] = {0};
    std::vector<Layout> all{base};
    const Split names[] = {Split::batch, Split::sequence, Split::hidden};
    for (std::size_t d = 0; d < 3 && tp() > 1; ++d) {
      Layout layout = base;
      layout.dims[d].push_back(1);
      if (allowed(names[d]) && divides(tensor.shape, layout, setting.mesh))
        all.push_back(layout);
    }
    return all;
  }

  void addParameter(const SegmentGraph &segment, int p, bool pays) {
    const Parameter &parameter = model.parameters[static_cast<std::size_t>(p)];
    const Device &device = setting.machine->device;
    Choice choice;
    Choice::Port kept, gradient;
    for (int d = -1; d < 2; ++d) {
      if (d >= 0 && (tp() == 1 ||
                     !allowed(parameter.splits[static_cast<std::size_t>(d)])))
        continue;
      for (bool late : {false, true}) {
        if (late && tp() == 1)
          continue;
        Layout stored = Layout::replicated(2), summed = stored;
        if (d >= 0)
          stored.dims[static_cast<std::size_t>(d)] = {1};
        if (!late)
          summed = stored;
        if (setting.mesh.axes[0].size > 1)
          summed.partial.push_back(0);
        if (late)
          summed.partial.push_back(1);
        kept.layouts.push_back(stored);
        gradient.layouts.push_back(summed);
        double rank = 64.0 / (d >= 0 ? tp() : 1);
        choice.cost.push_back(pays
                                  ? price(summed, stored, parameter.shape) +
                                        // Per weight, the update moves 28
                                        // bytes; the norm reads 2 bytes.
                                        (28 + 2) * rank / device.bandwidth.value
                                  : 0.0);
      }
    }
    choice.count = static_cast<int>(kept.layouts.size());
    kept.makes = true;
    for (std::size_t t = 0; t < segment.tensors.size(); ++t)
      if (segment.tensors[t].parameter == p) {
        kept.tensor = static_cast<int>(t);
        choice.ports.push_back(kept);
      }
    gradient.phase = Phase::backward;
    // All micro-batches but the first read back the gradient sum.
    for (std::size_t i = 0; i < choice.cost.size(); ++i) {
      double sum = 64.0 * 2;
      for (const std::vector<int> &axes : gradient.layouts[i].dims)
        for (int axis : axes)
          sum /= setting.mesh.axes[static_cast<std::size_t>(axis)].size;
      choice.cost[i] += sum / device.bandwidth.value *
                        static_cast<double>(setting.microBatches - 1) *
                        static_cast<double>(segment.accumulations.size());
    }
    for (const Accumulation &sum : segment.accumulations) {
      gradient.tensor = sum.tensor;
      choice.ports.push_back(gradient);
    }
    if (parameter.shared)
      choice.role = Choice::shared;
    choices.push_back(choice);
  }

  void start(std::size_t s) {
    const SegmentGraph &segment = model.segments[s];
    choices.clear();
    for (const Op &op : segment.ops) {
      std::vector<AxisRule> rules = setting.rules;
      rules[1].allowReplicated = op.opClass == OpClass::memory;
      Choice choice;
      std::vector<Strategy> all = strategiesOf(op, setting.mesh, rules);
      // The two axes may divide a batch separately but not together. If no
      // strategy is left for this reason, the setting's own rules apply.
      if (all.empty())
        all = strategiesOf(op, setting.mesh, setting.rules);
      choice.count = static_cast<int>(all.size());
      for (const Strategy &strategy : all) {
        double time =
            static_cast<double>(setting.microBatches) *
            computeTime(op, strategy, segment.tensors, setting.mesh,
                        *setting.machine, *setting.software, setting.precision)
                .value;
        for (int reported : segment.reported)
          if (op.results[0].tensor == reported)
            time += price(resultLayout(op, strategy, 0), Layout::replicated(0),
                          {}, 8); // reported values are in double precision
        choice.cost.push_back(time);
      }
      auto add = [&](const Use &use, bool makes, auto layoutOf) {
        Choice::Port port{use.tensor, makes, op.phase, {}};
        for (const Strategy &strategy : all)
          port.layouts.push_back(layoutOf(strategy));
        choice.ports.push_back(port);
      };
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        add(op.operands[i], false, [&](const Strategy &strategy) {
          return operandLayout(op, strategy, static_cast<int>(i));
        });
      add(op.results[0], true, [&](const Strategy &strategy) {
        return resultLayout(op, strategy, 0);
      });
      choices.push_back(choice);
    }
    auto cross = [&](const std::vector<int> &tensors, bool makes, Phase phase,
                     auto role) {
      for (int tensor : tensors) {
        Choice choice;
        choice.ports = {
            {tensor, makes, phase,
             boundary(segment.tensors[static_cast<std::size_t>(tensor)])}};
        choice.count = static_cast<int>(choice.ports[0].layouts.size());
        choice.cost.assign(choice.ports[0].layouts.size(), 0.0);
        choice.role = role;
        choices.push_back(choice);
      }
    };
    cross(segment.carriedIn, true, Phase::forward, Choice::in);
    cross(segment.gradientOut, false, Phase::backward, Choice::in);
    cross(segment.carriedOut, false, Phase::forward, Choice::out);
    cross(segment.gradientIn, true, Phase::backward, Choice::out);
    for (const Accumulation &sum : segment.accumulations) {
      bool shared =
          model.parameters[static_cast<std::size_t>(sum.parameter)].shared;
      addParameter(segment, sum.parameter, !shared || s == 0);
    }
    gather(segment);
  }

  // Collects the layouts in which each tensor is made or read, the prices of
  // changes between them, and the numbers of every port's layouts.
  void gather(const SegmentGraph &segment) {
    layouts.assign(segment.tensors.size(), {});
    saved.assign(segment.tensors.size(), false);
    numbers.clear();
    for (const Choice &choice : choices) {
      numbers.emplace_back();
      for (const Choice::Port &port : choice.ports) {
        auto t = static_cast<std::size_t>(port.tensor);
        std::vector<int> indices;
        for (const Layout &layout : port.layouts) {
          auto at = std::ranges::find(layouts[t], layout);
          indices.push_back(static_cast<int>(at - layouts[t].begin()));
          if (at == layouts[t].end())
            layouts[t].push_back(layout);
        }
        numbers.back().push_back(indices);
        if (!port.makes && port.phase == Phase::backward &&
            segment.tensors[t].kind == TensorKind::activation &&
            segment.tensors[t].phase == Phase::forward)
          saved[t] = true;
      }
    }
    prices.assign(segment.tensors.size(), {});
    bool moves = allowed(Split::batch) || allowed(Split::sequence);
    for (std::size_t t = 0; t < layouts.size(); ++t) {
      bool ofWeight = segment.tensors[t].shape.size() == 2; // a weight or its
                                                            // gradient
      bool inPlace = !moves && ofWeight;
      for (const Layout &from : layouts[t]) {
        prices[t].emplace_back();
        for (const Layout &to : layouts[t]) {
          int placed = placementOf(from, 1);
          bool stays = inPlace && placed >= 0 && placed != placementOf(to, 1);
          // A 16-bit value that is no weight or weight gradient does not become
          // partial.
          bool becomesPartial =
              !ofWeight && std::ranges::any_of(to.partial, [&](int axis) {
                return placementOf(from, axis) != kPartial;
              });
          prices[t].back().push_back(
              stays || becomesPartial
                  ? kNever
                  : price(from, to, segment.tensors[t].shape));
        }
      }
    }
    trees.assign(layouts.size(), {});
  }

  double price(const Layout &from, const Layout &to,
               const std::vector<std::int64_t> &shape,
               double elementBytes = 2) const {
    return reshardTime(from, to, shape, elementBytes, setting.mesh,
                       *setting.machine)
        .value;
  }

  double tree(std::size_t t, int made, unsigned wanted) {
    auto [at, isNew] = trees[t].emplace(std::pair(made, wanted), 0.0);
    if (isNew)
      at->second = cheapestTree(prices[t], 1U << made, wanted);
    return at->second;
  }

  double tensorTime(std::size_t t, int made, unsigned ahead, unsigned back) {
    if (!saved[t])
      return tree(t, made, ahead) + tree(t, made, back);
    bool isWhole = std::ranges::any_of(layouts[t], [](const Layout &layout) {
      return layout.partial.empty();
    });
    double best = kNever;
    for (std::size_t i = 0; i < layouts[t].size(); ++i)
      if (!isWhole || layouts[t][i].partial.empty())
        best = std::min(best, tree(t, made, ahead | 1U << i) +
                                  tree(t, static_cast<int>(i), back));
    return best;
  }

  // Returns the seconds that fusion saves: one launch, and the time to read the
  // producer's result. If only the fused consumer reads the result, the time to
  // write it is saved, too.
  double savedBy(const SegmentGraph &segment, std::size_t o, std::size_t v,
                 const std::vector<int> &made) const {
    const Op &op = segment.ops[o];
    const Device &device = setting.machine->device;
    if (op.fusedOperand < 0 || device.kernels.fusions[0].empty())
      return 0;
    auto operand = static_cast<std::size_t>(op.fusedOperand);
    auto t = static_cast<std::size_t>(op.operands[operand].tensor);
    if (numbers[o][operand][v] != made[t])
      return 0;
    int readers = 0;
    for (const Choice &choice : choices)
      for (const Choice::Port &port : choice.ports)
        readers += !port.makes && port.tensor == static_cast<int>(t);
    const Layout &layout =
        layouts[t][static_cast<std::size_t>(numbers[o][operand][v])];
    double bytes =
        localBytes(segment.tensors[t].shape, layout, 2, setting.mesh);
    return device.launch.value +
           (readers == 1 ? 2 : 1) * bytes / device.bandwidth.value;
  }

  std::map<Key, double> tableOf(std::size_t s) {
    start(s);
    const SegmentGraph &segment = model.segments[s];
    std::map<Key, double> table;
    std::vector<int> value(choices.size(), 0);
    std::vector<int> made(segment.tensors.size());
    std::vector<unsigned> ahead(made.size()), back(made.size());
    while (true) {
      double time = 0;
      int states[2] = {0, 0}, sharedState = -1;
      std::ranges::fill(ahead, 0U);
      std::ranges::fill(back, 0U);
      for (std::size_t c = 0; c < choices.size(); ++c) {
        const Choice &choice = choices[c];
        auto v = static_cast<std::size_t>(value[c]);
        time += choice.cost[v];
        if (choice.role == Choice::in || choice.role == Choice::out) {
          int &state = states[choice.role == Choice::out];
          state = state * choice.count + value[c];
        }
        if (choice.role == Choice::shared)
          sharedState = value[c];
        for (std::size_t p = 0; p < choice.ports.size(); ++p) {
          const Choice::Port &port = choice.ports[p];
          auto t = static_cast<std::size_t>(port.tensor);
          int number = numbers[c][p][v];
          if (port.makes)
            made[t] = number;
          else
            (port.phase == Phase::forward ? ahead : back)[t] |= 1U << number;
        }
      }
      double moved = 0;
      for (std::size_t t = 0; t < made.size(); ++t)
        if (segment.tensors[t].kind != TensorKind::input)
          moved += tensorTime(t, made[t], ahead[t], back[t]);
      for (std::size_t o = 0; o < segment.ops.size(); ++o)
        moved -= savedBy(segment, o, static_cast<std::size_t>(value[o]), made);
      time += moved * static_cast<double>(setting.microBatches);
      auto [at, isNew] =
          table.emplace(Key{states[0], states[1], sharedState}, time);
      at->second = std::min(at->second, time);
      std::size_t c = choices.size();
      while (c > 0 && ++value[c - 1] == choices[c - 1].count)
        value[--c] = 0;
      if (c == 0)
        return table;
    }
  }

  const ModelGraph &model;
  const Setting &setting;
  std::vector<Choice> choices;
  std::vector<std::vector<std::vector<int>>> numbers; // [choice][port][value]
  std::vector<std::vector<Layout>> layouts;           // [tensor]
  std::vector<std::vector<std::vector<double>>> prices;
  std::vector<bool> saved;
  std::vector<std::map<std::pair<int, unsigned>, double>> trees;
};

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SEARCH_SEGMENT_STEP_SPECIFICATION_H

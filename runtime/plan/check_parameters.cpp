//===- check_parameters.cpp - Checks each parameter's tensors -------------===//

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/plan/plan_checks.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

// Holds the layers of the model that have a parameter: [first, end).
struct Copies {
  std::int64_t first, end;
  bool meet(const Copies &other) const {
    return first < other.end && other.first < end;
  }
};

Copies copiesOf(const Parameter &parameter) {
  bool numbered = parameter.label.find('*') != std::string::npos;
  std::int64_t first = numbered ? parameter.firstCopy : 0;
  return {first, first + parameter.copies};
}

std::vector<std::int64_t> globalShape(const Plan &plan, const Tensor &tensor) {
  std::vector<std::int64_t> shape = tensor.shape;
  for (std::size_t d = 0; d < tensor.split.size(); ++d)
    for (int axis : tensor.split[d])
      shape[d] = times(shape[d], plan.mesh[indexed(axis)].size);
  return shape;
}

std::vector<std::vector<int>> splitOf(const Tensor &tensor) {
  std::vector<std::vector<int>> split = tensor.split;
  split.resize(tensor.shape.size());
  return split;
}

bool isFloat(ElementType type) { return type != ElementType::i32; }

class StageParameters {
public:
  StageParameters(const Plan &whole, std::size_t number, Faults &list)
      : plan(whole), stage(whole.stages[number]), s(number), faults(list) {}

  void check() {
    for (i = 0; i < stage.parameters.size(); ++i)
      checkOne(stage.parameters[i]);
  }

private:
  void fail(const std::string &member, const std::string &what) {
    faults.add(at("stages", s, "parameters", i) + member, what);
  }

  void checkOne(const Parameter &parameter) {
    if (parameter.copies > 1 && parameter.label.find('*') == std::string::npos)
      fail("/label", "\"" + parameter.label + "\" stands for " +
                         std::to_string(parameter.copies) +
                         " copies, but has no * for their number");
    checkPlace(parameter, parameter.value, "value", MemoryClass::parameters);
    checkPlace(parameter, parameter.gradient, "gradient",
               MemoryClass::gradients);
    if (parameter.master)
      checkPlace(parameter, *parameter.master, "master",
                 MemoryClass::optimizer);
    checkPlace(parameter, parameter.firstMoment, "first_moment",
               MemoryClass::optimizer);
    checkPlace(parameter, parameter.secondMoment, "second_moment",
               MemoryClass::optimizer);
    checkShapes(parameter);
    for (std::size_t a = 0; a < parameter.alike.size(); ++a)
      if (std::count(parameter.alike.begin(), parameter.alike.end(),
                     parameter.alike[a]) > 1) {
        fail(at("alike", a),
             "axis " + std::to_string(parameter.alike[a]) + " is listed twice");
        break;
      }
    // After the reduction, a gradient is sharded or replicated over each axis,
    // but not partial. Therefore each axis on which ranks of the stage differ
    // either shards the gradient or is listed in `alike`.
    for (std::size_t a = 0; a < plan.mesh.size(); ++a) {
      const int axis = static_cast<int>(a);
      bool isSplit = splits(parameter.gradient, axis);
      bool isAlike =
          std::ranges::find(parameter.alike, axis) != parameter.alike.end();
      const std::string name =
          "axis " + std::to_string(a) + " (\"" + plan.mesh[a].name + "\")";
      if (isSplit && isAlike)
        fail("/alike", "has " + name +
                           ", which splits the gradient; what differs is not "
                           "alike");
      if (!isSplit && !isAlike && extends(axis))
        fail("/alike", "needs " + name +
                           ", over which the stage has ranks and the gradient "
                           "is not split");
    }
  }

  static bool splits(const Tensor &tensor, int axis) {
    return std::ranges::any_of(tensor.split, [&](const std::vector<int> &axes) {
      return std::ranges::find(axes, axis) != axes.end();
    });
  }

  // Returns whether the stage's ranks have different coordinates on the axis.
  bool extends(int axis) const {
    int below = 1;
    for (std::size_t a = indexed(axis) + 1; a < plan.mesh.size(); ++a)
      below *= plan.mesh[a].size;
    auto placeOf = [&](int rank) {
      return rank / below % plan.mesh[indexed(axis)].size;
    };
    return std::ranges::any_of(stage.ranks, [&](int rank) {
      return placeOf(rank) != placeOf(stage.ranks[0]);
    });
  }

  // Returns whether a rank's shard under the split `fine` is part of the rank's
  // shard under `coarse`. In that case the weight can be its own master.
  static bool isWithin(const std::vector<std::vector<int>> &fine,
                       const std::vector<std::vector<int>> &coarse) {
    for (std::size_t d = 0; d < coarse.size(); ++d)
      if (d >= fine.size() || fine[d].size() < coarse[d].size() ||
          !std::equal(coarse[d].begin(), coarse[d].end(), fine[d].begin()))
        return false;
    return true;
  }

  void checkShapes(const Parameter &parameter) {
    const Tensor &gradient = parameter.gradient;
    const std::vector<std::int64_t> whole = globalShape(plan, parameter.value);
    auto global = [&](const Tensor &tensor, const std::string &member) {
      std::vector<std::int64_t> shape = globalShape(plan, tensor);
      if (shape != whole)
        fail(member + "/shape",
             shapeWords(tensor.shape) + " is " + shapeWords(shape) +
                 " over the axes that split it, but the value is " +
                 shapeWords(whole));
    };
    global(gradient, "/gradient");
    checkUnpadded(parameter.unpadded, whole);
    auto alike = [&](const Tensor &tensor, const std::string &member) {
      if (tensor.shape != gradient.shape)
        fail(member + "/shape", "must be " + shapeWords(gradient.shape) +
                                    " as the gradient's, got " +
                                    shapeWords(tensor.shape));
      if (splitOf(tensor) != splitOf(gradient))
        fail(member + "/split", "must be that of the gradient");
      if (!isFloat(tensor.type))
        fail(member + "/type", "must be a floating-point type, got i32");
    };
    if (parameter.master)
      alike(*parameter.master, "/master");
    else if (!isWithin(splitOf(gradient), splitOf(parameter.value)))
      fail("/master", "is missing: the value is " +
                          shapeWords(parameter.value.shape) +
                          ", the gradient and the state are " +
                          shapeWords(gradient.shape));
    alike(parameter.firstMoment, "/first_moment");
    alike(parameter.secondMoment, "/second_moment");
    const auto value = splitOf(parameter.value), state = splitOf(gradient);
    for (std::size_t d = 0; d < std::min(value.size(), state.size()); ++d)
      for (int axis : value[d])
        if (std::ranges::find(state[d], axis) == state[d].end())
          fail("/gradient/split",
               "dimension " + std::to_string(d) + " must be split by axis " +
                   std::to_string(axis) + " (\"" +
                   plan.mesh[indexed(axis)].name + "\"), as the value's");
    if (!isFloat(parameter.value.type))
      fail("/value/type", "must be a floating-point type, got i32");
    if (!isFloat(gradient.type))
      fail("/gradient/type", "must be a floating-point type, got i32");
  }

  void checkUnpadded(const std::vector<std::int64_t> &unpadded,
                     const std::vector<std::int64_t> &whole) {
    if (unpadded.empty())
      return;
    if (unpadded.size() != whole.size())
      return fail("/unpadded", "has " + std::to_string(unpadded.size()) +
                                   " extents, but the value has " +
                                   std::to_string(whole.size()) +
                                   " dimensions");
    for (std::size_t d = 0; d < whole.size(); ++d)
      if (unpadded[d] < 1 || unpadded[d] > whole[d])
        fail(at("unpadded", d),
             "must be from 1 to " + std::to_string(whole[d]) +
                 ", the value's extent, got " + std::to_string(unpadded[d]));
  }

  // Checks the buffer of a parameter's tensor. No other tensor of a parameter
  // may use the same entries.
  void checkPlace(const Parameter &parameter, const Tensor &tensor,
                  const std::string &member, MemoryClass expected) {
    const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
    const std::string name = bufferName(stage, tensor.buffer);
    MemoryClass found = stage.arenas[indexed(buffer.arena)].memoryClass;
    // A reduce-scattered gradient may be in the memory of activations.
    bool waits =
        expected == MemoryClass::gradients && found == MemoryClass::activations;
    bool isOffloaded =
        expected == MemoryClass::optimizer && found == MemoryClass::host;
    if (found != expected && !isOffloaded && !waits)
      fail('/' + member + "/buffer",
           name + " is of class " + std::string(wordOf(found)) +
               "; it must be " + std::string(wordOf(expected)) +
               (expected == MemoryClass::optimizer ? " or host" : ""));
    if (const std::string misfit = misfitOf(stage, tensor); !misfit.empty())
      fail('/' + member + "/shape", misfit);
    if (buffer.slots != 1)
      fail('/' + member + "/buffer",
           name + " has " + std::to_string(buffer.slots) +
               " slots; what is kept over micro-batches has one");
    for (int copy = 0; copy < parameter.copies; ++copy) {
      std::int64_t entry = tensor.entry + std::int64_t{copy} * tensor.entryStep;
      if (entry < 0 || entry >= buffer.entries)
        return fail('/' + member + (copy == 0 ? "/entry" : "/entry_step"),
                    "copy " + std::to_string(copy) + " is in entry " +
                        std::to_string(entry) + ", but " + name + " has " +
                        std::to_string(buffer.entries));
      auto [taken, fresh] =
          owners.try_emplace({tensor.buffer, entry}, at(i, member));
      if (!fresh)
        return fail('/' + member + (copy == 0 ? "/buffer" : "/entry_step"),
                    "copy " + std::to_string(copy) + " is in entry " +
                        std::to_string(entry) + " of " + name +
                        ", which /stages/" + std::to_string(s) + "/parameters" +
                        taken->second + " has");
    }
  }

  const Plan &plan;
  const Stage &stage;
  std::size_t s, i = 0;
  Faults &faults;
  /// Names, by buffer and entry, the tensor that uses the entry.
  std::map<std::pair<int, std::int64_t>, std::string> owners;
};

// If several stages have a parameter, only the first of them may count it in
// the gradient norm.
void checkCounting(const Plan &plan, Faults &faults) {
  struct Holder {
    std::size_t stage, number;
  };
  std::map<std::string, std::vector<Holder>> holders;
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (std::size_t i = 0; i < plan.stages[s].parameters.size(); ++i) {
      const Parameter &parameter = plan.stages[s].parameters[i];
      std::optional<Holder> earlier;
      for (const Holder &other : holders[parameter.label])
        if (copiesOf(plan.stages[other.stage].parameters[other.number])
                .meet(copiesOf(parameter)) &&
            !earlier)
          earlier = other;
      holders[parameter.label].push_back({s, i});
      const std::string where = at("stages", s, "parameters", i);
      if (earlier && earlier->stage == s)
        faults.add(where + "/label", "\"" + parameter.label +
                                         "\" is parameter " +
                                         std::to_string(earlier->number) +
                                         " as well, with the same copies");
      else if (earlier && !parameter.countedElsewhere)
        faults.add(where + "/counted_elsewhere",
                   "must be true: stage " + std::to_string(earlier->stage) +
                       " has \"" + parameter.label + "\", too");
      else if (!earlier && parameter.countedElsewhere)
        faults.add(where + "/counted_elsewhere",
                   "must be false: no earlier stage has \"" + parameter.label +
                       '"');
    }
}

} // namespace

void checkParameters(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    StageParameters(plan, s, faults).check();
  checkCounting(plan, faults);
}

} // namespace mtplan::runtime

//===- dimension_names.cpp - Names for the sizes in a program -------------===//

#include "codegen/source/dimension_names.h"

#include <algorithm>
#include <set>

#include "codegen/source/text.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

constexpr const char *kTypes = "types"; // labels the input of token types

std::int64_t integerOf(const KernelCall &call, const std::string &name) {
  const auto *value = settingValue<std::int64_t>(call.settings, name);
  return value ? *value : 0;
}

std::string wordOf(const KernelCall &call, const std::string &name) {
  const auto *value = settingValue<std::string>(call.settings, name);
  return value ? *value : "";
}

/// Returns whether an operand with fewer dimensions than the other operands
/// shares their last dimensions, like a norm's weight [C] for [B, T, C]. For
/// other kernels, such an operand shares the first dimensions, like ids [B, T].
bool sharesLastDimensions(const std::string &kernel) {
  static const std::set<std::string> kKernels = {
      "layer_norm", "layer_norm_grad", "rms_norm",      "rms_norm_grad",
      "sum",        "put_first",       "put_first_grad"};
  return kKernels.contains(kernel);
}

/// Returns whether two dimensions of a kernel's operands may have the same size
/// and position but different meanings.
bool rearranges(const std::string &kernel) {
  return kernel == "transpose" || kernel == "slice" || kernel == "piece" ||
         kernel.starts_with("take_first") ||
         kernel.starts_with("position_embedding");
}

template <typename See> void forInstructions(const Plan &plan, See see) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (const Program &program : plan.stages[s].programs)
      for (const Instruction &instruction : program.instructions)
        see(s, instruction);
}

} // namespace

DimensionNames::DimensionNames(const Plan &thePlan) : plan(thePlan) {
  std::set<std::string> taken = {"B", "T", "C", "H", "L", "V"};
  for (const Axis &axis : plan.mesh)
    axes.push_back(identifierFor(axis.name, taken));
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (const Parameter &one : plan.stages[s].parameters) {
      for (const Tensor *tensor :
           {&one.value, &one.gradient, &one.firstMoment, &one.secondMoment})
        learnSplit({s, tensor});
      if (one.master)
        learnSplit({s, &*one.master});
    }
  forInstructions(plan, [&](std::size_t stage, const Instruction &one) {
    for (const auto *some : {&one.inputs, &one.outputs})
      for (const Tensor &tensor : *some)
        learnSplit({stage, &tensor});
  });
  forInstructions(plan, [&](std::size_t stage, const Instruction &one) {
    learnFrom(stage, one);
  });
  forInstructions(plan, [&](std::size_t stage, const Instruction &one) {
    relate(stage, one);
  });
  relateStages();
  constexpr int kRounds = 3; // round 0 has the most reliable kernels
  for (int round = 0; round < kRounds; ++round)
    forInstructions(plan, [&](std::size_t stage, const Instruction &one) {
      nameFrom(stage, one, round);
    });
}

std::string DimensionNames::known(const std::string &name,
                                  std::int64_t value) const {
  for (const Dimension &one : dimensions)
    if (one.size == value && one.name.starts_with(name) &&
        one.name.find_first_not_of("0123456789", name.size()) ==
            std::string::npos)
      return one.name;
  return std::to_string(value);
}

std::string DimensionNames::limitOf(const Input &input) const {
  return known(input.label == kTypes ? "S" : "V", input.limit);
}

const std::string &DimensionNames::axis(int which) const {
  return axes[indexed(which)];
}

void DimensionNames::learnSplit(const Place &place) {
  const Tensor &tensor = *place.tensor;
  if (std::ranges::all_of(tensor.split, &std::vector<int>::empty))
    return;
  const auto [found, isNew] = splits.try_emplace(
      {place.stage, tensor.buffer, tensor.shape}, tensor.split);
  if (!isNew && found->second != tensor.split)
    found->second.clear();
}

void DimensionNames::learnSplitOfSum(std::size_t stage,
                                     const Instruction &instruction) {
  const Tensor &in = instruction.inputs[0], &out = instruction.outputs[0];
  const auto learn = [&](const Tensor &from, const Tensor &to) {
    const std::vector<std::vector<int>> split = splitOf({stage, &from});
    if (!split.empty() && splitOf({stage, &to}).empty() &&
        from.shape == to.shape)
      splits.try_emplace({stage, to.buffer, to.shape}, split);
  };
  learn(in, out);
  learn(out, in);
}

void DimensionNames::learnFrom(std::size_t stage,
                               const Instruction &instruction) {
  if (const auto *sum = std::get_if<KernelCall>(&instruction.what);
      sum && sum->kernel == "accumulate")
    return learnSplitOfSum(stage, instruction);
  const auto *call = std::get_if<Collective>(&instruction.what);
  if (!call)
    return;
  const auto axis = std::ranges::find(
      plan.mesh, plan.groups[indexed(call->group)].name, &Axis::name);
  const bool gathers = call->kind == CollectiveKind::allGather;
  if (axis == plan.mesh.end() ||
      (!gathers && call->kind != CollectiveKind::reduceScatter))
    return;
  Tensor whole = gathers ? instruction.outputs[0] : instruction.inputs[0];
  Tensor piece = gathers ? instruction.inputs[0] : instruction.outputs[0];
  const std::size_t dimension =
      indexed(gathers ? call->gathered : call->scattered);
  const int sharded = static_cast<int>(axis - plan.mesh.begin());
  whole.split = splitOf({stage, &whole});
  piece.split = splitOf({stage, &piece});
  if (whole.split.empty() && dimension < piece.split.size() &&
      !piece.split[dimension].empty() &&
      piece.split[dimension].back() == sharded) {
    whole.split = piece.split;
    whole.split[dimension].pop_back();
    splits.try_emplace({stage, whole.buffer, whole.shape}, whole.split);
    return;
  }
  piece.split = whole.split;
  piece.split.resize(piece.shape.size());
  piece.split[dimension].push_back(sharded);
  splits.try_emplace({stage, piece.buffer, piece.shape}, piece.split);
}

const std::vector<std::vector<int>> &
DimensionNames::splitOf(const Place &place) const {
  const Tensor &tensor = *place.tensor;
  if (!tensor.split.empty())
    return tensor.split;
  const auto found = splits.find({place.stage, tensor.buffer, tensor.shape});
  return found == splits.end() ? tensor.split : found->second;
}

std::vector<std::int64_t>
DimensionNames::globalShape(const Place &place) const {
  std::vector<std::int64_t> shape = place.tensor->shape;
  const std::vector<std::vector<int>> &split = splitOf(place);
  for (std::size_t d = 0; d < split.size(); ++d)
    for (const int axis : split[d])
      shape[d] *= plan.mesh[indexed(axis)].size;
  return shape;
}

std::size_t DimensionNames::nodeOf(const Place &place, std::size_t dimension) {
  const std::vector<std::int64_t> shape = globalShape(place);
  const auto [found, isNew] = nodes.try_emplace(
      Key{place.stage, place.tensor->buffer, shape, dimension}, parents.size());
  if (isNew) {
    parents.push_back(parents.size());
    sizes.push_back(shape[dimension]);
  }
  return found->second;
}

std::size_t DimensionNames::rootOf(std::size_t node) const {
  while (parents[node] != node)
    node = parents[node];
  return node;
}

// Gives two dimensions the same name unless their sizes differ.
void DimensionNames::unite(const Place &one, std::size_t i, const Place &other,
                           std::size_t j) {
  const std::size_t a = rootOf(nodeOf(one, i)), b = rootOf(nodeOf(other, j));
  if (a != b && sizes[a] == sizes[b])
    parents[b] = a;
}

void DimensionNames::uniteLeading(const Place &one, const Place &other) {
  const std::vector<std::int64_t> a = globalShape(one), b = globalShape(other);
  for (std::size_t d = 0; d < std::min(a.size(), b.size()) && a[d] == b[d]; ++d)
    unite(one, d, other, d);
}

void DimensionNames::uniteTrailing(const Place &one, const Place &other) {
  const std::vector<std::int64_t> a = globalShape(one), b = globalShape(other);
  for (std::size_t back = 1; back <= std::min(a.size(), b.size()) &&
                             a[a.size() - back] == b[b.size() - back];
       ++back)
    unite(one, a.size() - back, other, b.size() - back);
}

void DimensionNames::relateLetters(std::size_t stage,
                                   const Instruction &instruction,
                                   const std::string &equation) {
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string letters[] = {equation.substr(0, comma),
                                 equation.substr(comma + 1, arrow - comma - 1),
                                 equation.substr(arrow + 2)};
  const Place tensors[] = {{stage, &instruction.inputs[0]},
                           {stage, &instruction.inputs[1]},
                           {stage, &instruction.outputs[0]}};
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t u = t + 1; u < 3; ++u)
      for (std::size_t i = 0; i < letters[t].size(); ++i)
        if (const auto j = letters[u].find(letters[t][i]);
            j != std::string::npos)
          unite(tensors[t], i, tensors[u], j);
  // A bias, and each tensor of a fused consumer, has either all dimensions of
  // the result or only the last one.
  for (const auto *some : {&instruction.inputs, &instruction.outputs})
    for (std::size_t i = some == &instruction.inputs ? 2 : 1; i < some->size();
         ++i) {
      const Place other{stage, &(*some)[i]};
      if (globalShape(other) == globalShape(tensors[2]))
        uniteLeading(tensors[2], other);
      else if (other.tensor->shape.size() == 1)
        uniteTrailing(tensors[2], other);
    }
}

void DimensionNames::relate(std::size_t stage, const Instruction &instruction) {
  std::vector<Place> tensors;
  for (const auto *some : {&instruction.inputs, &instruction.outputs})
    for (const Tensor &tensor : *some)
      tensors.push_back({stage, &tensor});
  for (const Place &place : tensors)
    for (std::size_t d = 0; d < place.tensor->shape.size(); ++d)
      nodeOf(place, d);
  std::string kernel;
  if (std::holds_alternative<Collective>(instruction.what)) {
    for (std::size_t d = 0; d < tensors[0].tensor->shape.size(); ++d)
      unite(tensors[0], d, tensors[1], d);
    return;
  }
  if (const auto *call = std::get_if<KernelCall>(&instruction.what)) {
    kernel = call->kernel;
    if (kernel == "einsum")
      return relateLetters(stage, instruction, wordOf(*call, "equation"));
    if (kernel == "embedding" || kernel == "embedding_grad") {
      const Place ids = tensors[0], table = tensors[kernel == "embedding"],
                  rows = tensors[2];
      if (kernel == "embedding_grad") {
        uniteTrailing(tensors[1], tensors[2]);
        return uniteLeading(ids, tensors[1]);
      }
      uniteTrailing(table, rows);
      return uniteLeading(ids, rows);
    }
  }
  if (kernel.starts_with("moe_dispatch") || kernel.starts_with("moe_combine")) {
    // Dispatched tokens are [E, B, capacity, C]. Other tensors are [B, T, E] or
    // [B, T, C].
    for (const Place &one : tensors)
      for (const Place &other : tensors)
        if (one.tensor->shape.size() == 4 && other.tensor->shape.size() == 3) {
          unite(one, 0, other, 2);
          unite(one, 1, other, 0);
          unite(one, 3, other, 2);
        } else {
          uniteLeading(one, other);
        }
    return;
  }
  if (rearranges(kernel)) {
    for (const Place &one : tensors)
      if (one.tensor->shape.size() == tensors[0].tensor->shape.size() &&
          kernel != "transpose")
        for (std::size_t d = 0; d < one.tensor->shape.size(); ++d)
          unite(tensors[0], d, one, d);
    if (kernel.starts_with("position_embedding"))
      for (const Place &one : tensors) {
        const Tensor &first = *tensors[0].tensor;
        unite(tensors[0], first.shape.size() - 1, one,
              one.tensor->shape.size() - 1);
      }
    return;
  }
  for (std::size_t t = 0; t < tensors.size(); ++t)
    for (std::size_t u = t + 1; u < tensors.size(); ++u)
      if (sharesLastDimensions(kernel) &&
          tensors[t].tensor->shape.size() != tensors[u].tensor->shape.size())
        uniteTrailing(tensors[t], tensors[u]);
      else
        uniteLeading(tensors[t], tensors[u]);
}

// Gives equal names to the dimensions of a parameter or a message in all
// stages, and to the dimensions of a parameter, its gradient, its moments and
// its master weights.
void DimensionNames::relateStages() {
  std::map<std::string, Place> parameters;
  std::map<int, Place> channels;
  const auto match = [&](auto &known, const auto &key, const Place &place) {
    const auto [found, isNew] = known.try_emplace(key, place);
    if (!isNew)
      uniteLeading(found->second, place);
  };
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (const Parameter &parameter : plan.stages[s].parameters) {
      const Place value{s, &parameter.value};
      match(parameters, parameter.label, value);
      for (const Tensor *other : {&parameter.gradient, &parameter.firstMoment,
                                  &parameter.secondMoment})
        uniteLeading(value, {s, other});
      if (parameter.master)
        uniteLeading(value, {s, &*parameter.master});
    }
  forInstructions(plan, [&](std::size_t stage, const Instruction &one) {
    if (const auto *transfer = std::get_if<Transfer>(&one.what))
      match(channels, transfer->channel,
            Place{stage, transfer->sends ? &one.inputs[0] : &one.outputs[0]});
  });
}

std::string DimensionNames::constant(const Dimension &wanted) {
  std::string name = wanted.name;
  for (int i = 2;; ++i) {
    const auto found = std::ranges::find(dimensions, name, &Dimension::name);
    if (found == dimensions.end()) {
      dimensions.push_back({name, wanted.size, wanted.meaning});
      return name;
    }
    if (found->size == wanted.size)
      return name;
    name = wanted.name + std::to_string(i);
  }
}

void DimensionNames::name(const Place &place, std::size_t dimension,
                          const std::vector<Dimension> &factors) {
  const std::size_t root = rootOf(nodeOf(place, dimension));
  std::int64_t product = 1;
  for (const Dimension &factor : factors)
    product *= factor.size;
  if (names.contains(root) || product != sizes[root])
    return;
  for (const Dimension &factor : factors)
    names[root].push_back(constant(factor));
}

void DimensionNames::nameFrom(std::size_t stage, const Instruction &instruction,
                              int round) {
  const auto nameAs = [&](const Tensor &tensor, std::size_t dimension,
                          const char *word, const char *meaning) {
    name({stage, &tensor}, dimension,
         {{word, globalShape({stage, &tensor})[dimension], meaning}});
  };
  const auto nameVocabulary = [&](const Tensor &tensor, std::size_t d) {
    const std::int64_t size = globalShape({stage, &tensor})[d];
    if (known("S", size) != std::to_string(size))
      return nameAs(tensor, d, "S", "token types");
    const bool isPadded = known("V", size) == std::to_string(size);
    nameAs(tensor, d, isPadded ? "Vp" : "V",
           isPadded ? "V, padded" : "tokens of the vocabulary");
  };
  const auto last = [](const Tensor &tensor) {
    return tensor.shape.size() - 1;
  };
  if (const auto *input = std::get_if<Input>(&instruction.what)) {
    const Tensor &tensor = instruction.outputs[0];
    if (round == 0 && input->limit > 0)
      constant(input->label == kTypes
                   ? Dimension{"S", input->limit, "token types"}
                   : Dimension{"V", input->limit, "tokens of the vocabulary"});
    for (std::size_t d = 0; round == 0 && d < input->dims.size(); ++d)
      if (input->dims[d] == "batch")
        nameAs(tensor, d, "B", "samples of a micro-batch, over all ranks");
      else if (input->dims[d] == "sequence")
        nameAs(tensor, d, "T", "positions of a sample");
    return;
  }
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  if (!call)
    return;
  const std::string &kernel = call->kernel;
  const std::vector<Tensor> &in = instruction.inputs;
  if (round == 0 && kernel == "embedding") {
    nameVocabulary(in[1], 0);
    nameAs(in[1], 1, "C", "channels of the residual stream");
  } else if (round == 0 && kernel == "vocab_max") {
    nameVocabulary(in[0], last(in[0]));
  } else if (round == 0 && kernel == "position_embedding") {
    nameAs(in[1], 0, "maxT", "positions that have an embedding");
  } else if (round == 0 && kernel == "moe_gate") {
    nameAs(in[0], last(in[0]), "E", "experts");
  } else if (round == 0 && kernel == "moe_dispatch") {
    nameAs(instruction.outputs[0], 2, "capacity",
           "tokens of a sample that an expert takes");
  } else if (round == 1 && (kernel == "layer_norm" || kernel == "rms_norm") &&
             integerOf(*call, "head_dim") == 0) {
    nameAs(in[0], last(in[0]), "C", "channels of the residual stream");
  } else if (round == 1 && kernel == "attention") {
    const std::int64_t width = integerOf(*call, "head_dim");
    const Dimension features{"D", width, "channels of an attention head"};
    const std::int64_t heads = globalShape({stage, &in[0]})[2] / width,
                       keys = globalShape({stage, &in[1]})[2] / width;
    const Dimension queryHeads{"H", heads, "attention heads"};
    constant(features);
    constant(queryHeads);
    name({stage, &in[0]}, 2, {queryHeads, features});
    Dimension keyHeads = queryHeads;
    if (keys != heads) {
      keyHeads = {"KV", keys, "heads of keys and values"};
      constant(keyHeads);
    }
    name({stage, &in[1]}, 2, {keyHeads, features});
    name({stage, &in[2]}, 2, {keyHeads, features});
    const Tensor &sums = instruction.outputs[1];
    for (std::size_t d = 0; d < sums.shape.size(); ++d)
      if (globalShape({stage, &sums})[d] == heads)
        name({stage, &sums}, d, {queryHeads});
  } else if (round == 2 && (kernel == "activation" || kernel == "swiglu" ||
                            wordOf(*call, "then").starts_with("activation"))) {
    const Tensor &made = instruction.outputs[0];
    if (!made.shape.empty())
      nameAs(made, last(made), "F", "channels of the feed-forward layer");
  }
}

Extent DimensionNames::written(std::size_t stage, const Tensor &tensor,
                               std::size_t dimension, bool isLocal) const {
  const Place place{stage, &tensor};
  const std::vector<std::int64_t> shape = globalShape(place);
  Extent extent;
  extent.value = isLocal ? tensor.shape[dimension] : shape[dimension];
  extent.text = std::to_string(extent.value);
  const auto node = nodes.find(Key{stage, tensor.buffer, shape, dimension});
  if (node == nodes.end())
    return extent;
  const auto found = names.find(rootOf(node->second));
  if (found == names.end())
    return extent;
  std::string division;
  std::int64_t ranks = 1;
  const std::vector<std::vector<int>> &split = splitOf(place);
  if (isLocal && dimension < split.size())
    for (const int axis : split[dimension])
      if (const int size = plan.mesh[indexed(axis)].size; size > 1) {
        division += " / " + axes[indexed(axis)];
        ranks *= size;
      }
  // The split divides the first constant of the product, which counts heads,
  // and not the constant that counts the channels of a head.
  const std::string &first = found->second.front();
  const auto constant = std::ranges::find(dimensions, first, &Dimension::name);
  if (constant->size % ranks != 0)
    return extent;
  extent.text = first + division;
  for (std::size_t f = 1; f < found->second.size(); ++f)
    extent.text += " * " + found->second[f];
  return extent;
}

Extent DimensionNames::local(std::size_t stage, const Tensor &tensor,
                             std::size_t dimension) const {
  return written(stage, tensor, dimension, true);
}

Extent DimensionNames::global(std::size_t stage, const Tensor &tensor,
                              std::size_t dimension) const {
  return written(stage, tensor, dimension, false);
}

} // namespace mtplan::codegen

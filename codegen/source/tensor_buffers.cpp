//===- tensor_buffers.cpp - A buffer for each tensor ----------------------===//

#include "codegen/source/tensor_buffers.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

struct ResultName {
  std::string text;
  bool isExact = false; ///< more precise than the plan's name
};

ResultName nameOfResult(const Instruction &instruction, std::size_t result) {
  const std::string &label = instruction.label;
  if (const auto *call = std::get_if<Collective>(&instruction.what))
    switch (call->kind) {
    case CollectiveKind::allReduce:
      return {label + ".sum", true};
    case CollectiveKind::allGather:
      return {label + ".full", true};
    case CollectiveKind::reduceScatter:
      return {label + ".shard", true};
    case CollectiveKind::allToAll:
      return {label + ".exchanged", true};
    }
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  if (!call)
    return {label};
  if (call->kernel == "cross_entropy_grad")
    return {"logits.grad", true};
  // A scalar accumulator is a number that the step reports, and not a gradient.
  if (call->kernel == "accumulate" && instruction.outputs[0].shape.empty())
    return {label + ".total", true};
  if (call->kernel == "piece" || (call->kernel == "adamw" && result == 0))
    return {label + ".shard", true};
  static const std::map<std::string, std::vector<std::string>> kResults = {
      {"attention", {"", ".log_sum_exp"}},
      {"attention_grad", {".dq", ".dk", ".dv", ".dbias"}},
      {"layer_norm_grad", {".dx", ".dweight", ".dbias"}},
      {"rms_norm_grad", {".dx", ".dweight"}}};
  const auto found = kResults.find(call->kernel);
  if (found != kResults.end() && result < found->second.size())
    return {label + found->second[result], !found->second[result].empty()};
  const auto *then = settingValue<std::string>(call->settings, kThen);
  if (then && result + 1 == instruction.outputs.size())
    return {label + "." + *then};
  return {label};
}

/// Returns `text` without its ending `end`, or "" if `text` does not end in
/// `end`.
std::string without(const std::string &text, const std::string &end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : "";
}

/// Returns the label of a forward operator if the result is the total gradient
/// of the operator's first operand over all its uses; otherwise "".
std::string operatorOfSum(const Instruction &instruction, std::size_t result) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  if (call && call->kernel.ends_with("_norm_grad") &&
      result + 1 == instruction.outputs.size() &&
      findSetting(call->settings, kThen))
    return without(instruction.label, ".grad");
  return without(instruction.label, ".sum");
}

bool isGather(const Instruction &instruction) {
  const auto *call = std::get_if<runtime::Collective>(&instruction.what);
  return call && call->kind == runtime::CollectiveKind::allGather;
}

/// If the result is a part of the operand, returns the suffix of the result's
/// name after the operand's name; otherwise "".
std::string suffixOfPart(const Instruction &instruction) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  if (call && call->kernel == "mask")
    return ".masked";
  if (!call || call->kernel != "slice")
    return "";
  const auto *dim = settingValue<std::int64_t>(call->settings, "dim");
  constexpr std::size_t kDims = 3; // samples, positions, channels
  if (instruction.outputs[0].shape.size() != kDims)
    return ".shard";
  return !dim || *dim == 0 ? ".samples"
         : *dim == 1       ? ".positions"
                           : ".channels";
}

/// Finds the tensors of a stage. A tensor comprises a definition and all its
/// uses, in all programs. Definitions that reach the same use form one tensor.
/// For example, a layer reads the input of the first layer or the previous
/// layer's output.
class BufferDivision {
public:
  explicit BufferDivision(Stage &theStage)
      : stage(theStage), isShared(stage.buffers.size(), true) {
    for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
      const MemoryClass in =
          stage.arenas[indexed(stage.buffers[b].arena)].memoryClass;
      isShared[b] =
          in == MemoryClass::activations || in == MemoryClass::workspace;
    }
    for (const Parameter &parameter : stage.parameters) {
      for (const Tensor *tensor :
           {&parameter.value, &parameter.gradient, &parameter.firstMoment,
            &parameter.secondMoment})
        isShared[indexed(tensor->buffer)] = false;
      if (parameter.master)
        isShared[indexed(parameter.master->buffer)] = false;
    }
    for (Program &program : stage.programs)
      collect(program);
    for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *entries)
        run(entry);
    tensorsOf.resize(stage.buffers.size());
    for (std::size_t node = 0; node < nodes.size(); ++node)
      if (nodes[node].parent == node)
        tensorsOf[indexed(nodes[node].buffer)].push_back(node);
  }

  void divideBuffers() {
    std::vector<Buffer> buffers;
    std::vector<std::map<std::size_t, int>> numbers(stage.buffers.size());
    for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
      std::map<std::string, int> byName;
      const auto number = [&](const std::string &name) {
        const auto [found, isNew] =
            byName.try_emplace(name, static_cast<int>(buffers.size()));
        if (isNew) {
          buffers.push_back(stage.buffers[b]);
          buffers.back().name = name;
        }
        return found->second;
      };
      if (tensorsOf[b].empty())
        numbers[b][kNone] = number(stage.buffers[b].name);
      for (const std::size_t tensor : tensorsOf[b])
        numbers[b][tensor] = number(nameOf(tensor));
    }
    const std::vector<Buffer> old =
        std::exchange(stage.buffers, std::move(buffers));
    const auto renumber = [&](Tensor &tensor, std::size_t node) {
      const auto &own = numbers[indexed(tensor.buffer)];
      tensor.buffer = own.at(node == kNone ? kNone : rootOf(node));
    };
    for (Parameter &parameter : stage.parameters) {
      for (Tensor *tensor : {&parameter.value, &parameter.gradient,
                             &parameter.firstMoment, &parameter.secondMoment})
        renumber(*tensor, kNone);
      if (parameter.master)
        renumber(*parameter.master, kNone);
    }
    std::size_t p = 0;
    for (Program &program : stage.programs) {
      std::size_t next = 0;
      const std::vector<std::size_t> &own = programs[p++].nodes;
      for (Instruction &instruction : program.instructions)
        for (auto *some : {&instruction.inputs, &instruction.outputs})
          for (Tensor &tensor : *some)
            renumber(tensor, own[next++]);
    }
  }

private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// Identifies a tensor by buffer, entry and entry step.
  using Place = std::tuple<int, int, int>;
  /// Identifies a tensor's bytes in a run by buffer, entry and slot.
  using Bytes = std::tuple<int, int, int>;

  /// Describes a definition, or a value that a program reads from an earlier
  /// run. The nodes of one tensor form a tree, and the root combines the facts
  /// of all its nodes.
  struct Node {
    std::size_t parent;
    int buffer;
    std::set<std::string> names = {}; ///< of all definitions
    bool isExact = false;       ///< `names` are more precise than the plan's
    bool isOfBackward = false;  ///< a definition is in backward
    bool isFromOutside = false; ///< defined outside of repeated layers
    /// Says whether the first instructions of a layer read the tensor. The last
    /// of these instructions is the first one whose first operand is in a
    /// shared buffer (`isShared`).
    bool entersLayer = false;
    bool leavesLayer = false; ///< read outside of repeated layers
    bool isWeight = false;    ///< gathered from a parameter
    /// The tensor's name is the name of tensor `from`, or `origin` if `from` is
    /// kNone, followed by `suffix`, unless `suffix` is empty.
    std::size_t from = kNone;
    std::string origin = {}, suffix = {};
  };

  struct ProgramTensors {
    /// Lists the node of each operand and result in the order of the
    /// instructions. The node is kNone if `isShared` is false for the buffer.
    std::vector<std::size_t> nodes;
    /// `taken` holds the values that a run reads from earlier runs, and `left`
    /// the values that the run leaves for later runs.
    std::map<Place, std::size_t> taken, left;
  };

  Place placeOf(const Tensor &tensor) const {
    return stage.buffers[indexed(tensor.buffer)].entries == 1
               ? Place{tensor.buffer, 0, 0}
               : Place{tensor.buffer, tensor.entry, tensor.entryStep};
  }

  std::size_t newNode(int buffer) {
    nodes.push_back({nodes.size(), buffer});
    return nodes.size() - 1;
  }

  std::size_t rootOf(std::size_t node) const {
    while (nodes[node].parent != node)
      node = nodes[node].parent;
    return node;
  }

  void unite(std::size_t one, std::size_t other) {
    const std::size_t a = rootOf(one), b = rootOf(other);
    if (a == b)
      return;
    Node &to = nodes[std::min(a, b)], &from = nodes[std::max(a, b)];
    from.parent = to.parent;
    to.names.merge(from.names);
    to.isExact = to.isExact || from.isExact || to.names.size() > 1;
    to.isOfBackward = to.isOfBackward || from.isOfBackward;
    to.isFromOutside = to.isFromOutside || from.isFromOutside;
    to.entersLayer = to.entersLayer || from.entersLayer;
    to.leavesLayer = to.leavesLayer || from.leavesLayer;
    to.isWeight = to.isWeight || from.isWeight;
  }

  void collect(const Program &program) {
    ProgramTensors &all = programs.emplace_back();
    const bool isPhase = program.name.ends_with(".forward") ||
                         program.name.ends_with(".backward");
    const bool isLayer = isPhase && isOfLayer(program);
    bool hasEntered = !isLayer;
    for (const Instruction &instruction : program.instructions) {
      for (const Tensor &tensor : instruction.inputs) {
        std::size_t node = kNone;
        if (isShared[indexed(tensor.buffer)]) {
          const Place place = placeOf(tensor);
          if (const auto found = all.left.find(place); found != all.left.end())
            node = found->second;
          else if (const auto early = all.taken.find(place);
                   early != all.taken.end())
            node = early->second;
          else
            nodes[all.taken[place] = node = newNode(tensor.buffer)]
                .leavesLayer = isPhase && !isLayer;
        }
        all.nodes.push_back(node);
      }
      const std::size_t operand =
          instruction.inputs.empty()
              ? kNone
              : all.nodes[all.nodes.size() - instruction.inputs.size()];
      firstOperands.try_emplace(instruction.label, operand);
      for (std::size_t n = all.nodes.size() - instruction.inputs.size();
           !hasEntered && n < all.nodes.size(); ++n)
        if (all.nodes[n] != kNone)
          nodes[all.nodes[n]].entersLayer = true;
      hasEntered = hasEntered || operand != kNone;
      for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
        const Tensor &tensor = instruction.outputs[o];
        std::size_t node = kNone;
        if (isShared[indexed(tensor.buffer)]) {
          all.left[placeOf(tensor)] = node = newNode(tensor.buffer);
          const auto [name, isExact] = nameOfResult(instruction, o);
          nodes[node].names.insert(name);
          nodes[node].isExact = isExact;
          nodes[node].isOfBackward = program.name.ends_with(".backward");
          nodes[node].isFromOutside = !isLayer;
          nodes[node].isWeight = isGather(instruction) &&
                                 (operand == kNone || nodes[operand].isWeight);
          derive(node, instruction, o, operand);
        }
        all.nodes.push_back(node);
      }
    }
  }

  /// Sets the suffix of a result's name, and the tensor or label whose name
  /// precedes the suffix.
  void derive(std::size_t node, const Instruction &instruction,
              std::size_t result, std::size_t operand) {
    Node &made = nodes[node];
    if (std::holds_alternative<Input>(instruction.what) && made.isOfBackward) {
      made.origin = instruction.label;
      made.suffix = ".bwd";
    } else if (const auto found =
                   firstOperands.find(operatorOfSum(instruction, result));
               found != firstOperands.end() && found->second != kNone) {
      made.from = found->second;
      made.suffix = ".grad";
    } else if (made.suffix = suffixOfPart(instruction); !made.suffix.empty()) {
      made.from = operand;
      made.origin = stage.buffers[indexed(instruction.inputs[0].buffer)].name;
    }
  }

  Bytes bytesOf(const Place &place, int copy, int microBatch) const {
    const auto [buffer, entry, step] = place;
    const Buffer &one = stage.buffers[indexed(buffer)];
    return {buffer, (entry + copy * step) % one.entries,
            microBatch % one.slots};
  }

  void run(const ScheduleEntry &entry) {
    const ProgramTensors &all = programs[indexed(entry.program)];
    for (int i = 0; i < entry.count; ++i) {
      const int copy = entry.first + i * entry.step;
      for (const auto &[place, node] : all.taken)
        if (const auto found =
                present.find(bytesOf(place, copy, entry.microBatch));
            found != present.end())
          unite(node, found->second);
      for (const auto &[place, node] : all.left)
        present[bytesOf(place, copy, entry.microBatch)] = node;
    }
  }

  std::string nameOf(std::size_t root) const {
    const Node &tensor = nodes[root];
    const std::string &planned = stage.buffers[indexed(tensor.buffer)].name;
    if (!tensor.isWeight && (tensor.names.size() > 1 ||
                             (tensor.entersLayer && tensor.isFromOutside)))
      return tensor.isOfBackward ? "layer_output_grad" : "layer_input";
    if (!tensor.isWeight && tensor.leavesLayer && !tensor.isFromOutside &&
        !tensor.names.empty())
      return tensor.isOfBackward ? "layer_input_grad" : "layer_output";
    if (!tensor.suffix.empty())
      return (tensor.from == kNone ? tensor.origin
                                   : nameOf(rootOf(tensor.from))) +
             tensor.suffix;
    const bool isPlanned =
        !tensor.isExact && tensorsOf[indexed(tensor.buffer)].front() == root;
    return isPlanned || tensor.names.empty() ? planned : *tensor.names.begin();
  }

  Stage &stage;
  std::vector<bool> isShared; ///< by buffer: whether several tensors may use it
  std::vector<ProgramTensors> programs;
  /// Maps a label to the first operand's node in the label's first instruction.
  std::map<std::string, std::size_t> firstOperands;
  std::map<Bytes, std::size_t> present; ///< the node of the latest value
  std::vector<Node> nodes;
  /// Lists the root nodes of each buffer's tensors in program order.
  std::vector<std::vector<std::size_t>> tensorsOf;
};

} // namespace

bool isInLayer(std::string_view label) {
  return label.find('*') != std::string_view::npos;
}

bool isOfLayer(const Program &program) {
  return std::ranges::any_of(program.instructions, [](const Instruction &one) {
    return isInLayer(one.label) && !isGather(one);
  });
}

bool areSameBytes(const Buffer &one, const Buffer &other) {
  return one.arena == other.arena && one.offset == other.offset &&
         one.size == other.size && one.entries == other.entries &&
         one.entryStride == other.entryStride && one.slots == other.slots &&
         one.slotStride == other.slotStride;
}

Plan withTensorBuffers(Plan plan) {
  for (Stage &stage : plan.stages)
    BufferDivision(stage).divideBuffers();
  return plan;
}

} // namespace mtplan::codegen

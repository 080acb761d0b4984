//===- model_state.cpp - All that training keeps, whole -------------------===//

#include "runtime/checkpoint/model_state.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

namespace {

/// A file is closed before the tensor that would make it larger.
constexpr std::int64_t kFileBytes = std::int64_t{4} << 30;
constexpr std::array kKinds = {StateKind::weight, StateKind::firstMoment,
                               StateKind::secondMoment};

std::string fileStem(StateKind kind) {
  return kind == StateKind::weight        ? "weights"
         : kind == StateKind::firstMoment ? "first_moments"
                                          : "second_moments";
}

const Tensor &tensorOf(const Parameter &parameter, StateKind kind) {
  switch (kind) {
  case StateKind::weight:
    return parameter.master ? *parameter.master : parameter.value;
  case StateKind::firstMoment:
    return parameter.firstMoment;
  case StateKind::secondMoment:
    break;
  }
  return parameter.secondMoment;
}

std::string numbered(const std::string &stem, std::size_t file,
                     std::size_t files) {
  auto five = [](std::size_t number) {
    std::string digits = std::to_string(number);
    return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') +
           digits;
  };
  return stem + "-" + five(file) + "-of-" + five(files) + ".safetensors";
}

// Gives the tensors of one kind their files and places.
void place(ModelState &state, StateKind kind) {
  std::vector<std::vector<int>> groups;
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (state.tensors[i].kind != kind)
      continue;
    const std::int64_t bytes = state.tensors[i].bytes();
    if (groups.empty() || filled + bytes > kFileBytes) {
      groups.emplace_back();
      filled = 0;
    }
    groups.back().push_back(static_cast<int>(i));
    filled += bytes;
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    SafetensorsHeader header;
    // Without it some readers refuse a file.
    header.metadata = {{"format", "pt"}};
    for (const int i : groups[g]) {
      const StateTensor &tensor = state.tensors[static_cast<std::size_t>(i)];
      header.tensors.push_back(
          {tensor.name, safetensorsType(tensor.type), tensor.shape, 0, 0});
    }
    StateFile file;
    file.name = numbered(fileStem(kind), g + 1, groups.size());
    file.header = layOut(header);
    file.bytes = header.dataStart;
    for (std::size_t t = 0; t < groups[g].size(); ++t) {
      StateTensor &tensor =
          state.tensors[static_cast<std::size_t>(groups[g][t])];
      tensor.file = static_cast<int>(state.files.size());
      tensor.offset = header.dataStart + header.tensors[t].begin;
      file.bytes = header.dataStart + header.tensors[t].end;
    }
    state.files.push_back(std::move(file));
  }
}

} // namespace

std::int64_t StateTensor::bytes() const {
  return std::accumulate(shape.begin(), shape.end(), bytesOf(type),
                         std::multiplies<>());
}

int ModelState::find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(tensors, name, {}, &StateTensor::name);
  return found != tensors.end() && found->name == name
             ? static_cast<int>(found - tensors.begin())
             : -1;
}

std::string safetensorsType(ElementType type) {
  switch (type) {
  case ElementType::f64:
    return "F64";
  case ElementType::f32:
    return "F32";
  case ElementType::f16:
    return "F16";
  case ElementType::bf16:
    return "BF16";
  case ElementType::i32:
    return "I32";
  }
  return "";
}

std::optional<ElementType> floatNamed(std::string_view word) {
  for (const ElementType type : {ElementType::f64, ElementType::f32,
                                 ElementType::bf16, ElementType::f16})
    if (word == safetensorsType(type))
      return type;
  return std::nullopt;
}

std::string stateName(const Parameter &parameter, int copy, StateKind kind) {
  std::string name = parameter.label;
  if (const std::size_t star = name.find('*'); star != std::string::npos)
    name.replace(star, 1, std::to_string(parameter.firstCopy + copy));
  return name + (kind == StateKind::weight        ? ""
                 : kind == StateKind::firstMoment ? ".first_moment"
                                                  : ".second_moment");
}

std::vector<std::int64_t> wholeShape(const Plan &plan, const Tensor &tensor) {
  std::vector<std::int64_t> shape = tensor.shape;
  for (std::size_t d = 0; d < tensor.split.size(); ++d)
    for (const int axis : tensor.split[d])
      shape[d] *= plan.mesh[static_cast<std::size_t>(axis)].size;
  return shape;
}

std::string shapeWords(const std::vector<std::int64_t> &shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + "]";
}

ModelState placed(std::vector<StateTensor> tensors) {
  ModelState state;
  state.tensors = std::move(tensors);
  for (const StateKind kind : kKinds)
    place(state, kind);
  return state;
}

ModelState modelStateOf(const Plan &plan) {
  std::map<std::string, StateTensor> byName;
  for (const Stage &stage : plan.stages)
    for (const Parameter &parameter : stage.parameters)
      for (int copy = 0; copy < parameter.copies; ++copy)
        for (const StateKind kind : kKinds) {
          const Tensor &tensor = tensorOf(parameter, kind);
          StateTensor whole;
          whole.name = stateName(parameter, copy, kind);
          whole.kind = kind;
          whole.type = tensor.type;
          whole.shape = parameter.unpadded.empty() ? wholeShape(plan, tensor)
                                                   : parameter.unpadded;
          const auto [known, added] = byName.emplace(whole.name, whole);
          if (!added && (known->second.shape != whole.shape ||
                         known->second.type != whole.type))
            throw CheckpointError(
                whole.name + ": one stage of the plan has it as " +
                safetensorsType(known->second.type) +
                shapeWords(known->second.shape) + ", another as " +
                safetensorsType(whole.type) + shapeWords(whole.shape));
        }
  std::vector<StateTensor> tensors;
  tensors.reserve(byName.size());
  for (auto &[name, tensor] : byName)
    tensors.push_back(std::move(tensor));
  return placed(std::move(tensors));
}

} // namespace mtplan::runtime

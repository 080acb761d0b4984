//===- model_state.cpp - The state in a checkpoint ------------------------===//

#include "runtime/checkpoint/model_state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

#include "base/index.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

using base::sized;

namespace {

/// Limits the bytes of data in a file of several tensors.
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
    // Some readers reject a file without this entry.
    header.metadata = {{"format", "pt"}};
    for (const int i : groups[g]) {
      const StateTensor &tensor = state.tensors[sized(i)];
      header.tensors.push_back(
          {tensor.name, safetensorsType(tensor.type), tensor.shape, 0, 0});
    }
    StateFile file;
    file.name = numbered(fileStem(kind), g + 1, groups.size());
    file.header = layOut(header);
    file.bytes = header.dataStart;
    for (std::size_t t = 0; t < groups[g].size(); ++t) {
      StateTensor &tensor = state.tensors[sized(groups[g][t])];
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
      shape[d] *= plan.mesh[sized(axis)].size;
  return shape;
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

//===----------------------------------------------------------------------===//
// The slices of a rank
//===----------------------------------------------------------------------===//

namespace {

class Slices {
public:
  Slices(const ModelState &theState, const RankCoordinates &thePlace)
      : state(theState), place(thePlace) {}

  /// Adds the part of `tensor` that is in `box`. The shards of `box` are at
  /// least as fine as the shards of `tensor`.
  void add(const Parameter &parameter, StateKind kind, const Tensor &tensor,
           const Tensor &box) {
    const TensorView held = place.viewOf(tensor);
    TensorView view = place.viewOf(box);
    view.type = tensor.type;
    TensorView inLocal = view;
    for (std::size_t d = 0; d < view.shape.size(); ++d)
      inLocal.pieces[d] = {view.pieces[d].offset - held.pieces[d].offset,
                           held.shape[d]};
    for (int copy = 0; copy < parameter.copies; ++copy)
      slices.push_back({state.find(stateName(parameter, copy, kind)), view,
                        &tensor, inLocal, copy});
  }
  void add(const Parameter &parameter, StateKind kind, const Tensor &tensor) {
    add(parameter, kind, tensor, tensor);
  }

  std::vector<StateSlice> slices;

private:
  const ModelState &state;
  const RankCoordinates &place;
};

const Stage &stageOf(const Plan &plan, const RankCoordinates &place) {
  return plan.stages[sized(place.stage())];
}

} // namespace

BoxRuns::BoxRuns(const TensorView &box,
                 const std::vector<std::int64_t> &whole) {
  std::vector<Dimension> all(whole.size());
  std::int64_t wholeStride = 1, boxStride = 1;
  for (std::size_t d = whole.size(); d-- > 0;) {
    const std::int64_t offset = box.pieces[d].offset;
    all[d] = {std::min(box.shape[d], whole[d] - offset), wholeStride,
              boxStride};
    if (all[d].extent <= 0)
      return;
    first.inWhole += offset * wholeStride;
    wholeStride *= whole[d];
    boxStride *= box.shape[d];
  }
  // A run covers all trailing dimensions of which the box has all indices, and
  // the box's range of the dimension before these.
  std::size_t inner = whole.size();
  elements = 1;
  while (inner > 0 && all[inner - 1].extent == whole[inner - 1] &&
         all[inner - 1].extent == box.shape[inner - 1])
    elements *= whole[--inner];
  if (inner > 0)
    elements *= all[--inner].extent;
  runs = 1;
  for (std::size_t d = 0; d < inner; ++d)
    runs *= all[d].extent;
  all.resize(inner);
  outer = std::move(all);
}

BoxRuns::Start BoxRuns::at(std::int64_t run) const {
  Start start = first;
  for (std::size_t d = outer.size(); d-- > 0;) {
    const std::int64_t index = run % outer[d].extent;
    run /= outer[d].extent;
    start.inWhole += index * outer[d].inWhole;
    start.inBox += index * outer[d].inBox;
  }
  return start;
}

std::int64_t BoxRuns::firstBehind(std::int64_t inWhole) const {
  std::int64_t low = 0, high = runs;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (at(middle).inWhole + elements > inWhole)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

std::vector<StateSlice> ownedSlices(const Plan &plan, const ModelState &state,
                                    const RankCoordinates &place) {
  Slices owned(state, place);
  for (const Parameter &parameter : stageOf(plan, place).parameters) {
    const bool first = std::ranges::all_of(parameter.alike, [&](int axis) {
      return place.coordinateOn(axis) == 0;
    });
    if (parameter.countedElsewhere || !first)
      continue;
    // ZeRO 1 and 2 shard moments and masters. A weight without a master stays
    // replicated, so its slices follow the shards of the first moment.
    owned.add(parameter, StateKind::weight,
              parameter.master ? *parameter.master : parameter.value,
              parameter.firstMoment);
    owned.add(parameter, StateKind::firstMoment, parameter.firstMoment);
    owned.add(parameter, StateKind::secondMoment, parameter.secondMoment);
  }
  return std::move(owned.slices);
}

std::vector<StateSlice> neededSlices(const Plan &plan, const ModelState &state,
                                     const RankCoordinates &place) {
  Slices needed(state, place);
  for (const Parameter &parameter : stageOf(plan, place).parameters) {
    needed.add(parameter, StateKind::weight, parameter.value);
    if (parameter.master)
      needed.add(parameter, StateKind::weight, *parameter.master);
    needed.add(parameter, StateKind::firstMoment, parameter.firstMoment);
    needed.add(parameter, StateKind::secondMoment, parameter.secondMoment);
  }
  return std::move(needed.slices);
}

void copySlice(const StateSlice &slice, const std::byte *local, std::byte *to) {
  const std::int64_t size = bytesOf(slice.view.type);
  forEachRun(
      slice.inLocal, slice.local->shape,
      [&](std::int64_t inLocal, std::int64_t inSlice, std::int64_t count) {
        std::memcpy(to + inSlice * size, local + inLocal * size,
                    sized(count * size));
      });
}

} // namespace mtplan::runtime

//===- stage_names.cpp - A stage's tensors as expressions -----------------===//

#include "codegen/source/stage_names.h"

#include <algorithm>
#include <cstdlib>

#include "codegen/source/schedule_lines.h"
#include "codegen/source/tensor_buffers.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::codegen {

using runtime::indexed, runtime::Tensor;

std::string typeText(runtime::ElementType type) {
  return std::string(wordOf(type));
}

std::int64_t elementsOf(const Tensor &tensor) {
  std::int64_t all = 1;
  for (const std::int64_t size : tensor.shape)
    all *= size;
  return all;
}

std::int64_t roomFor(const Tensor &tensor) {
  constexpr std::int64_t kUnit = 256;
  return (elementsOf(tensor) * bytesOf(tensor.type) + kUnit - 1) / kUnit *
         kUnit;
}

std::string productText(const std::vector<std::string> &factors) {
  std::string text;
  for (const std::string &factor : factors)
    if (factor != "1")
      text += (text.empty() ? "" : " * ") + factor;
  return text.empty() ? "1" : text;
}

std::string grouped(const std::string &expression) {
  return expression.find(' ') == std::string::npos ? expression
                                                   : "(" + expression + ")";
}

StageNames::StageNames(const runtime::Plan &thePlan, std::size_t theStage,
                       const DimensionNames &theDimensions,
                       const SettingNames &theSettings)
    : plan(thePlan), number(theStage), stage(plan.stages[theStage]),
      dimensions(theDimensions), settings(theSettings) {
  std::set<std::string> taken;
  for (const runtime::Buffer &one : stage.buffers)
    buffers.push_back(identifierFor(one.name, taken));
  addFirstUses();
  addFirstLayers();
}

void StageNames::addFirstUses() {
  firstUses.resize(stage.buffers.size(), nullptr);
  const auto see = [&](const Tensor &tensor) {
    const Tensor *&first = firstUses[indexed(tensor.buffer)];
    if (!first)
      first = &tensor;
  };
  for (const runtime::Parameter &parameter : stage.parameters) {
    for (const Tensor *tensor :
         {&parameter.value, &parameter.gradient, &parameter.firstMoment,
          &parameter.secondMoment})
      see(*tensor);
    if (parameter.master)
      see(*parameter.master);
  }
  for (const runtime::Program &program : stage.programs)
    for (const runtime::Instruction &instruction : program.instructions)
      for (const auto *some : {&instruction.inputs, &instruction.outputs})
        for (const Tensor &tensor : *some)
          see(tensor);
}

void StageNames::addFirstLayers() {
  std::vector<int> layers;
  const auto add = [&](int layer) {
    if (std::ranges::find(layers, layer) == layers.end())
      layers.push_back(layer);
  };
  for (const runtime::Program &program : stage.programs)
    if (isOfLayer(program))
      add(program.firstCopy);
  for (const runtime::Parameter &parameter : stage.parameters)
    if (isInLayer(parameter.label))
      add(parameter.firstCopy);
  if (plan.stages.size() == 1 && layers == std::vector{0})
    return;
  for (const int layer : layers)
    starts.push_back(
        {"firstLayer" +
             (starts.empty() ? "" : std::to_string(starts.size() + 1)),
         layer});
}

std::string StageNames::layerOf(std::string_view label, int firstCopy) const {
  if (!isInLayer(label))
    return "0";
  const auto found = std::ranges::find(starts, firstCopy, &FirstLayer::layer);
  return found == starts.end() ? "now.layer"
                               : "buf::" + found->name + " + now.layer";
}

std::string StageNames::axis(int axis) const {
  return "kAxis_" + dimensions.axis(axis);
}

std::string StageNames::product(std::int64_t count,
                                const Tensor &tensor) const {
  for (std::size_t end = tensor.shape.size(); end > 0 && count > 1; --end) {
    std::int64_t value = 1;
    for (std::size_t first = end; first-- > 0;)
      if ((value *= tensor.shape[first]) == count)
        return elements(tensor, first, end);
  }
  return std::to_string(count);
}

bool StageNames::isConstant(const std::string &name, std::int64_t value) const {
  return std::ranges::any_of(dimensions.all(), [&](const Dimension &one) {
    return one.name == name && one.size == value;
  });
}

std::string StageNames::elements(const Tensor &tensor, std::size_t first,
                                 std::size_t end) const {
  std::vector<std::string> factors;
  for (std::size_t d = first; d < std::min(end, tensor.shape.size()); ++d)
    factors.push_back(extent(tensor, d));
  return productText(factors);
}

/// Returns the entry of a tensor's buffer in a run. Entries that descend begin
/// at the last layer: "L - 1 - now.layer".
std::string StageNames::entryOf(const Tensor &tensor) const {
  const int step = tensor.entryStep;
  const std::string first = layersText(plan, tensor.entry);
  if (step == 0)
    return tensor.entry > 1 ? first : std::to_string(tensor.entry);
  if (step == -1) {
    const bool isLast = layersText(plan, tensor.entry + 1).starts_with('L');
    return (isLast ? layersText(plan, tensor.entry + 1) + " - 1" : first) +
           " - now.layer";
  }
  const std::string layer =
      step == 1 ? "now.layer" : std::to_string(step) + " * now.layer";
  return layer +
         (tensor.entry == 0 ? "" : " + " + std::to_string(tensor.entry));
}

std::string StageNames::reference(const Tensor &tensor,
                                  std::string_view buffer) const {
  const std::string name(buffer), entry = entryOf(tensor);
  const bool isOfRun = entry == "now.layer" ||
                       stage.buffers[indexed(tensor.buffer)].entries == 1;
  return (isOfRun ? "now[" + name + "]"
                  : "now.entry(" + name + ", " + entry + ")") +
         (firstUse(indexed(tensor.buffer))->type == tensor.type
              ? ""
              : ".as(" + typeText(tensor.type) + ")");
}

std::string StageNames::tensor(const Tensor &tensor) const {
  return reference(tensor, "buf::" + buffers[indexed(tensor.buffer)]);
}

std::string StageNames::integers(const Tensor &tensor) const {
  return "integers(" + this->tensor(tensor) + ")";
}

std::int64_t StageNames::apart(const Tensor &from, const Tensor &to) const {
  return stage.buffers[indexed(to.buffer)].offset -
         stage.buffers[indexed(from.buffer)].offset;
}

bool StageNames::isPartOf(const Tensor &a, const Tensor &b) const {
  return overlap(a, b) && (a.buffer == b.buffer ||
                           !areSameBytes(stage.buffers[indexed(a.buffer)],
                                         stage.buffers[indexed(b.buffer)]));
}

bool StageNames::overlap(const Tensor &a, const Tensor &b) const {
  const runtime::Buffer &one = stage.buffers[indexed(a.buffer)],
                        &other = stage.buffers[indexed(b.buffer)];
  if (areSameBytes(one, other))
    return a.entry == b.entry && a.entryStep == b.entryStep;
  return one.arena == other.arena && one.offset < endOf(other) &&
         other.offset < endOf(one);
}

std::int64_t StageNames::ranksAlong(const Tensor &tensor,
                                    std::size_t dim) const {
  std::int64_t ranks = 1;
  if (dim < tensor.split.size())
    for (const int axis : tensor.split[dim])
      ranks *= plan.mesh[indexed(axis)].size;
  return ranks;
}

std::string StageNames::place(const Tensor &tensor, std::size_t dim) const {
  std::string text;
  for (const int axis : tensor.split[dim]) {
    const int size = plan.mesh[indexed(axis)].size;
    if (size == 1)
      continue;
    const std::string own =
        std::string("now.at(").append(this->axis(axis)).append(")");
    text = text.empty() ? own
                        : std::string("(")
                              .append(text)
                              .append(" * ")
                              .append(dimensions.axis(axis))
                              .append(" + ")
                              .append(own)
                              .append(")");
  }
  return text;
}

std::string StageNames::offset(const Tensor &tensor, std::size_t dim) const {
  if (ranksAlong(tensor, dim) == 1)
    return "0";
  const std::string size = extent(tensor, dim);
  return place(tensor, dim) + (size == "1" ? "" : " * " + grouped(size));
}

std::string StageNames::span(const Tensor &tensor, std::size_t dim) const {
  const std::string whole = dimensions.global(number, tensor, dim).text;
  if (ranksAlong(tensor, dim) == 1)
    return "{0, " + whole + "}";
  std::vector<std::string> axes;
  for (const int axis : tensor.split[dim])
    if (plan.mesh[indexed(axis)].size > 1)
      axes.push_back(this->axis(axis));
  return "now.shard(" + whole + ", " + listText(axes) + ")";
}

std::string StageNames::view(const Tensor &tensor) const {
  std::vector<std::string> extents, spans;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    extents.push_back(extent(tensor, d));
    spans.push_back(span(tensor, d));
  }
  return listText(std::vector<std::string>{typeText(tensor.type),
                                           listText(extents), listText(spans)});
}

std::string StageNames::shape(const Tensor &tensor) const {
  std::string text = std::string(wordOf(tensor.type)) + " [";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::string size = extent(tensor, d);
    std::erase(size, ' ');
    text += (d > 0 ? ", " : "") + size;
  }
  return text + "]";
}

} // namespace mtplan::codegen

//===- stage_names.cpp - How a program speaks of a stage's tensors --------===//

#include "codegen/source/stage_names.h"

#include <cstdlib>

#include "codegen/source/text.h"
#include "runtime/plan/buffer_end.h"
#include "runtime/plan/index.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::codegen {

using runtime::indexed, runtime::Tensor;

std::string typeText(runtime::ElementType type) {
  return "ElementType::" + std::string(wordOf(type));
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

StageNames::StageNames(const runtime::Plan &thePlan,
                       const runtime::Stage &theStage)
    : plan(thePlan), stage(theStage) {
  std::set<std::string> taken;
  for (const runtime::Buffer &one : stage.buffers)
    buffers.push_back(identifierFor(one.name, taken));
  std::set<std::string> names;
  for (const runtime::Axis &one : plan.mesh)
    axes.push_back(identifierFor(one.name, names));
}

std::string StageNames::axis(int axis) const { return axes[indexed(axis)]; }

std::string StageNames::reference(const char *how, const Tensor &tensor) const {
  std::string entry = tensor.entry == 0 ? "" : std::to_string(tensor.entry);
  if (const int step = tensor.entryStep; step != 0) {
    const std::string times =
        step == 1 || step == -1 ? "" : std::to_string(std::abs(step)) + " * ";
    entry += step < 0        ? (entry.empty() ? "-" : " - ")
             : entry.empty() ? ""
                             : " + ";
    entry += times + "now.layer";
  }
  return std::string("now.") + how +
         "(buf::" + buffers[indexed(tensor.buffer)] +
         (entry.empty() ? "" : ", ") + entry + ")";
}

std::string StageNames::tensor(const Tensor &tensor) const {
  return reference(std::string(wordOf(tensor.type)).c_str(), tensor);
}

std::string StageNames::integers(const Tensor &tensor) const {
  return reference("integers", tensor);
}

bool StageNames::overlap(const Tensor &a, const Tensor &b) const {
  if (a.buffer == b.buffer)
    return a.entry == b.entry && a.entryStep == b.entryStep;
  const runtime::Buffer &one = stage.buffers[indexed(a.buffer)],
                        &other = stage.buffers[indexed(b.buffer)];
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
        std::string("now.at(").append(axes[indexed(axis)]).append(")");
    text = text.empty() ? own
                        : std::string("(")
                              .append(text)
                              .append(" * ")
                              .append(std::to_string(size))
                              .append(" + ")
                              .append(own)
                              .append(")");
  }
  return text;
}

std::string StageNames::offset(const Tensor &tensor, std::size_t dim) const {
  if (ranksAlong(tensor, dim) == 1)
    return "0";
  const std::int64_t size = tensor.shape[dim];
  return place(tensor, dim) + (size == 1 ? "" : " * " + std::to_string(size));
}

std::string StageNames::span(const Tensor &tensor, std::size_t dim) const {
  return listText(std::vector<std::string>{
      offset(tensor, dim),
      std::to_string(ranksAlong(tensor, dim) * tensor.shape[dim])});
}

std::string StageNames::view(const Tensor &tensor) const {
  std::vector<std::string> spans;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    spans.push_back(span(tensor, d));
  return listText(std::vector<std::string>{
      typeText(tensor.type), listText(tensor.shape), listText(spans)});
}

std::string StageNames::shape(const Tensor &tensor) const {
  std::string text = std::string(wordOf(tensor.type)) + " [";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    text += (d > 0 ? ", " : "") + std::to_string(tensor.shape[d]);
    if (ranksAlong(tensor, d) == 1)
      continue;
    std::string by;
    for (const int axis : tensor.split[d])
      if (plan.mesh[indexed(axis)].size > 1)
        by += (by.empty() ? "" : " ") + plan.mesh[indexed(axis)].name;
    text += "/" + by;
  }
  return text + "]";
}

} // namespace mtplan::codegen

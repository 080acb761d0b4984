//===- stage_names.cpp - A stage's tensors as expressions -----------------===//

#include "codegen/source/stage_names.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

#include "codegen/source/pass_schedule.h"
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
                       int inFlight, const DimensionNames &theDimensions,
                       const SettingNames &theSettings)
    : plan(thePlan), number(theStage), stage(plan.stages[theStage]),
      dimensions(theDimensions), settings(theSettings) {
  findShare();
  addFirstLayers();
  addLayers();
  addLines();
  if (inFlight > 1)
    all.push_back({"inFlight", std::to_string(inFlight),
                   "micro-batches that go forward before the first backward"});
  std::set<std::string> taken = {"part", "parts"};
  for (const StageConstant &one : all)
    taken.insert(one.name);
  for (const runtime::Buffer &one : stage.buffers)
    buffers.push_back(identifierFor(one.name, taken));
  addViews(taken);
  addFirstUses();
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
  for (const int layer : layers) {
    starts.emplace_back(
        layer, "firstLayer" +
                   (starts.empty() ? "" : std::to_string(starts.size() + 1)));
    all.push_back({starts.back().second, std::to_string(layer),
                   "layers before these in the model"});
  }
}

void StageNames::findShare() {
  const auto pp = std::ranges::find(plan.mesh, "pp", &runtime::Axis::name);
  if (pp == plan.mesh.end() || plan.layers % pp->size != 0)
    return;
  const int layers = plan.layers / pp->size;
  const auto runsThem = [&](const runtime::Stage &one) {
    return std::ranges::any_of(one.schedule,
                               [&](const runtime::ScheduleEntry &entry) {
                                 return entry.count == layers;
                               });
  };
  if (std::ranges::all_of(plan.stages, runsThem))
    share = layers;
}

void StageNames::addLayers() {
  const auto add = [&](int layer) {
    if (layer <= 1 || layers(layer).starts_with('L') ||
        std::ranges::find(counts, layer, &std::pair<int, std::string>::first) !=
            counts.end())
      return;
    counts.emplace_back(
        layer,
        "layers" + (counts.empty() ? "" : std::to_string(counts.size() + 1)));
    all.push_back({counts.back().second, std::to_string(layer), "layers"});
  };
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const runtime::ScheduleEntry &entry : *entries) {
      add(entry.count);
      if (entry.count == 1)
        add(entry.first);
    }
  for (const runtime::Parameter &parameter : stage.parameters)
    add(parameter.copies);
}

std::string StageNames::layers(int layer) const {
  if (layer > 1 && layer == plan.layers)
    return "L";
  if (layer > 1 && layer == share)
    return "L / pp";
  const auto found =
      std::ranges::find(counts, layer, &std::pair<int, std::string>::first);
  return found == counts.end() ? std::to_string(layer)
                               : "buf::" + found->second;
}

namespace {

std::string lineName(bool sends, const std::string &peer) {
  std::string name = peer;
  name[0] = static_cast<char>(std::toupper(name[0]));
  return (sends ? "lineTo" : "lineFrom") + name;
}

} // namespace

void StageNames::addLines() {
  const auto own = static_cast<int>(number);
  for (const runtime::Program &program : stage.programs)
    for (const runtime::Instruction &instruction : program.instructions) {
      const auto *transfer = std::get_if<runtime::Transfer>(&instruction.what);
      if (!transfer)
        continue;
      const int from = transfer->sends ? own : transfer->stage,
                to = transfer->sends ? transfer->stage : own;
      const std::string name =
          lineName(transfer->sends,
                   peer(transfer->sends, transfer->stage, isBackward(program)));
      if (std::ranges::find(all, name, &StageConstant::name) == all.end())
        all.push_back(
            {name, "kLine" + std::to_string(from) + "To" + std::to_string(to),
             ""});
    }
}

std::string StageNames::line(bool sends, int other, bool isGradient) const {
  return "buf::" + lineName(sends, peer(sends, other, isGradient));
}

std::string StageNames::peer(bool sends, int other, bool isGradient) const {
  const auto stages = static_cast<int>(plan.stages.size());
  const int distance = (other - static_cast<int>(number) + stages) % stages;
  const bool isNext = distance == 1, isPrevious = distance == stages - 1;
  if (isNext && isPrevious)
    return sends != isGradient ? "next" : "previous";
  return isNext       ? "next"
         : isPrevious ? "previous"
                      : "stage" + std::to_string(other);
}

std::string StageNames::peerStage(bool sends, int other,
                                  bool isGradient) const {
  const std::string word = peer(sends, other, isGradient);
  return word.starts_with("stage") ? "stage " + std::to_string(other)
                                   : "the " + word + " stage";
}

std::string StageNames::layerOf(std::string_view label, int firstCopy) const {
  if (!isInLayer(label))
    return "0";
  const auto found =
      std::ranges::find(starts, firstCopy, &std::pair<int, std::string>::first);
  return found == starts.end() ? "now.layer"
                               : "buf::" + found->second + " + now.layer";
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

namespace {

/// Returns whether a buffer holds the tensors that pass from layer to layer.
bool isHandedOn(const std::string &buffer) {
  return buffer.starts_with("layer_");
}

/// Returns whether a tensor has the name of its buffer. This holds if the
/// buffer has one entry. It also holds if each layer's tensor is in the entry
/// with the layer's number and does not pass from layer to layer.
bool hasEntryOfLayer(const runtime::Buffer &buffer, const Tensor &tensor) {
  return buffer.entries == 1 || (tensor.entry == 0 && tensor.entryStep == 1 &&
                                 !isHandedOn(buffer.name));
}

/// Returns the name of a view. A tensor that passes from layer to layer is
/// named by its role in the segment (h_input), and a message by its direction.
/// Any other view has the buffer's name with a suffix.
std::string nameOfView(const runtime::Program &program,
                       const runtime::Instruction &instruction,
                       const std::string &buffer, bool isRead) {
  const bool isGradient = isBackward(program);
  if (const auto *transfer = std::get_if<runtime::Transfer>(&instruction.what))
    return std::string(transfer->sends ? "sent_" : "received_") +
           (isGradient ? "gradient" : "activation");
  if (!isHandedOn(buffer))
    return buffer +
           (std::holds_alternative<runtime::Collective>(instruction.what)
                ? "_ahead" // for a layer that runs later
                : "_own");
  const std::string segment = program.name.substr(0, program.name.find('.'));
  return segment + (isRead == isGradient ? "_output" : "_input") +
         (isGradient ? "_grad" : "");
}

} // namespace

void StageNames::addViews(std::set<std::string> &taken) {
  const auto see = [&](const runtime::Program &program,
                       const runtime::Instruction &instruction,
                       const Tensor &tensor, bool isRead) {
    const runtime::Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
    const bool isMessage =
        std::holds_alternative<runtime::Transfer>(instruction.what);
    if ((!isMessage && hasEntryOfLayer(buffer, tensor)) ||
        viewOf(tensor, isMessage))
      return;
    views.push_back(
        {identifierFor(nameOfView(program, instruction,
                                  buffers[indexed(tensor.buffer)], isRead),
                       taken),
         tensor.buffer, tensor.entry, tensor.entryStep, isMessage});
  };
  for (const runtime::Program &program : stage.programs)
    for (const runtime::Instruction &instruction : program.instructions) {
      for (const Tensor &tensor : instruction.inputs)
        see(program, instruction, tensor, true);
      for (const Tensor &tensor : instruction.outputs)
        see(program, instruction, tensor, false);
    }
  // An update may cover only some of the layers of a parameter.
  for (const runtime::Parameter &parameter : stage.parameters) {
    std::vector<const Tensor *> tensors = {
        &parameter.value, &parameter.gradient, &parameter.firstMoment,
        &parameter.secondMoment};
    if (parameter.master)
      tensors.push_back(&*parameter.master);
    for (const Tensor *tensor : tensors)
      see({}, {}, *tensor, true);
  }
}

std::vector<std::string> StageNames::memberNames() const {
  std::vector<std::string> members = buffers;
  for (const BufferView &view : views)
    members.push_back(view.name);
  return members;
}

const BufferView *StageNames::viewOf(const Tensor &tensor,
                                     bool isMessage) const {
  const auto view = std::ranges::find_if(views, [&](const BufferView &one) {
    return one.buffer == tensor.buffer && one.first == tensor.entry &&
           one.step == tensor.entryStep && one.isMessage == isMessage;
  });
  return view == views.end() ? nullptr : &*view;
}

const std::string &StageNames::memberOf(const Tensor &tensor) const {
  const auto index = indexed(tensor.buffer);
  if (hasEntryOfLayer(stage.buffers[index], tensor))
    return buffers[index];
  const BufferView *view = viewOf(tensor, false);
  if (!view)
    throw std::logic_error(buffers[index] + ": an entry has no name");
  return view->name;
}

std::string StageNames::asBuffer(const std::string &member,
                                 const Tensor &tensor) const {
  return "buf::" + member +
         (firstUse(indexed(tensor.buffer))->type == tensor.type
              ? ""
              : ".as(" + typeText(tensor.type) + ")");
}

std::string StageNames::bufferOf(const Tensor &tensor) const {
  return asBuffer(memberOf(tensor), tensor);
}

std::string StageNames::message(const Tensor &tensor) const {
  return "now[" + asBuffer(viewOf(tensor, true)->name, tensor) + "]";
}

std::string StageNames::tensor(const Tensor &tensor) const {
  return "now[" + bufferOf(tensor) + "]";
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

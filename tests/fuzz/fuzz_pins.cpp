//===- fuzz_pins.cpp - Fuzzes pins ----------------------------------------===//
//
// The input's lines are pins on a small fixed graph. A pin is rejected, or
// every operator that it names has a strategy that obeys it, and every
// parameter that it names has the pinned layout.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/graph/strategy.h"
#include "planner/search/space/pins.h"
#include "tools/text/pin_text.h"

using namespace mtplan::planner;
using mtplan::tools::parsePins;

namespace {

constexpr int kCopies = 12;
constexpr int kRanks = 2;
const std::vector<Split> kSplits = {Split::row, Split::column, Split::batch,
                                    Split::vocab};

Factor factor(const char *name, std::int64_t size, Split split) {
  return {name, size, split, true, Reduction::sum, 0.0};
}

Tensor activation(const std::string &name, std::vector<std::int64_t> shape) {
  return {name, std::move(shape), 2, TensorKind::activation, Phase::forward, -1,
          0};
}

Tensor parameter(const Parameter &of, int index) {
  return {of.name,        of.shape, 2, TensorKind::parameter,
          Phase::forward, index,    -1};
}

Op makeOp(const std::string &name, std::vector<Factor> factors,
          std::vector<Use> operands, Use result,
          std::vector<std::vector<int>> linearGroups) {
  Op op;
  op.name = name;
  op.factors = std::move(factors);
  op.operands = std::move(operands);
  op.results = {std::move(result)};
  op.linearGroups = std::move(linearGroups);
  return op;
}

/// Returns an embedding, twelve layers of a product with an input of odd width
/// and a residual add, and a head that is tied to the embedding.
ModelGraph smallGraph() {
  ModelGraph graph;
  graph.parameters = {
      {"wte.weight", {16, 9}, {Split::vocab, Split::column}, 2, 1, true, true},
      {"h.*.fc.weight",
       {9, 6},
       {Split::row, Split::column},
       2,
       kCopies,
       false,
       true},
      {"h.*.fc.bias", {6}, {Split::column}, 2, kCopies, false, false}};
  Factor b = factor("b", 4, Split::batch);

  SegmentGraph embed;
  embed.name = "embed";
  embed.tensors = {activation("ids", {4}), parameter(graph.parameters[0], 0),
                   activation("wte", {4, 9})};
  embed.tensors[0].kind = TensorKind::input;
  embed.ops = {makeOp(
      "wte", {b, factor("v", 16, Split::vocab), factor("h", 9, Split::column)},
      {{0, {0}}, {1, {1, 2}}}, {2, {0, 2}}, {{1}})};

  SegmentGraph block;
  block.name = "h";
  block.repeat = kCopies;
  block.tensors = {activation("carried", {4, 9}),
                   parameter(graph.parameters[1], 1),
                   parameter(graph.parameters[2], 2),
                   activation("h.*.fc", {4, 6}), activation("h.*.add", {4, 6})};
  block.ops = {
      makeOp("h.*.fc",
             {b, factor("i", 9, Split::row), factor("o", 6, Split::column)},
             {{0, {0, 1}}, {1, {1, 2}}, {2, {2}}}, {3, {0, 2}}, {}),
      makeOp("h.*.add", {b, factor("h", 6, Split::hidden)},
             {{3, {0, 1}}, {3, {0, 1}}}, {4, {0, 1}}, {{0, 1}})};

  SegmentGraph head;
  head.name = "head";
  head.tensors = {activation("carried", {4, 9}),
                  parameter(graph.parameters[0], 0),
                  activation("lm_head", {4, 16})};
  head.ops = {makeOp(
      "lm_head", {b, factor("i", 9, Split::row), factor("v", 16, Split::vocab)},
      {{0, {0, 1}}, {1, {2, 1}}}, {2, {0, 2}}, {{0}})};
  graph.segments = {embed, block, head};
  return graph;
}

// Splits segments like mtplan: each part of a repeated segment has its own
// parameters.
ModelGraph cutAt(const ModelGraph &whole,
                 const std::vector<std::vector<int>> &cuts) {
  ModelGraph graph = whole;
  graph.segments.clear();
  for (std::size_t s = 0; s < whole.segments.size(); ++s) {
    const SegmentGraph &segment = whole.segments[s];
    std::vector<int> starts{segment.first};
    starts.insert(starts.end(), cuts[s].begin(), cuts[s].end());
    starts.push_back(segment.first + segment.repeat);
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      if (starts[i] >= starts[i + 1])
        std::abort();
      SegmentGraph part = segment;
      part.first = starts[i];
      part.repeat = starts[i + 1] - starts[i];
      for (Tensor &tensor : part.tensors)
        if (i > 0 && tensor.kind == TensorKind::parameter) {
          graph.parameters.push_back(
              whole.parameters[static_cast<std::size_t>(tensor.parameter)]);
          tensor.parameter = static_cast<int>(graph.parameters.size()) - 1;
        }
      graph.segments.push_back(std::move(part));
    }
  }
  return graph;
}

bool hasStrategy(const Op &op, const std::string &word) {
  for (const Strategy &strategy :
       strategiesOf(op, meshOf(1, kRanks),
                    {AxisRule{{Split::batch}, false}, AxisRule{kSplits, true}}))
    if (word == wordOf(op, strategy, kTensorAxis))
      return true;
  return false;
}

// Returns whether the pin names this label in the segment's layers. Aborts if
// it names only some of them, because the segment should have been split there.
bool names(const PinText &pin, const std::string &label,
           const SegmentGraph &segment) {
  int named = 0;
  for (int i = 0; i < segment.repeat; ++i) {
    std::string name = label;
    if (std::size_t star = name.find('*'); star != name.npos)
      name.replace(star, 1, std::to_string(segment.first + i));
    named += matchesPattern(pin.pattern, name) ? 1 : 0;
  }
  if (named != 0 && named != segment.repeat)
    std::abort();
  return named > 0;
}

void expectHonoured(const PinText &pin, const ModelGraph &graph,
                    const Pins &resolved) {
  bool any = false;
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    const SegmentGraph &segment = graph.segments[s];
    for (std::size_t o = 0; !pin.word.empty() && o < segment.ops.size(); ++o)
      if (names(pin, segment.ops[o].name, segment)) {
        any = true;
        if (resolved.ops[s][o] != pin.word ||
            !hasStrategy(segment.ops[o], pin.word))
          std::abort();
      }
    for (const Tensor &tensor : segment.tensors)
      if (pin.word.empty() && tensor.kind == TensorKind::parameter &&
          names(pin, tensor.name, segment)) {
        any = true;
        if (resolved.parameters[static_cast<std::size_t>(tensor.parameter)] !=
            pin.entries)
          std::abort();
      }
  }
  if (!any)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; i < size && texts.size() < 20; ++i)
    if (data[i] == '\n')
      texts.emplace_back();
    else
      texts.back() += static_cast<char>(data[i]);

  std::vector<std::string> errors;
  std::vector<PinText> pins = parsePins(texts, errors);
  if (pins.size() + errors.size() != texts.size())
    std::abort();
  static const ModelGraph kReplicated = smallGraph();
  ModelGraph graph = cutAt(kReplicated, pinCuts(kReplicated, pins));
  errors.clear();
  Pins resolved = resolvePins(graph, pins, {kSplits, kRanks}, errors);
  if (errors.empty())
    for (const PinText &pin : pins)
      expectHonoured(pin, graph, resolved);
  return 0;
}

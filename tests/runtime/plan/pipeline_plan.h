//===- pipeline_plan.h - Valid plans of any size ----------------*- C++ -*-===//
//
// A plan is a chain of layers over the stages of a pipeline, with tensor and
// data parallelism. Micro-batches in flight have adjacent slots. Programs reuse
// the workspace. The first stage and the last share a tied weight. If `zero` is
// set, the data-parallel ranks shard the optimizer state.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_RUNTIME_PLAN_PIPELINE_PLAN_H
#define MTPLAN_TESTS_RUNTIME_PLAN_PIPELINE_PLAN_H

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "runtime/plan/kernel_settings.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::runtime {

struct PipelineSize {
  int pp = 1, dp = 1, tp = 1;
  int layers = 1; ///< layers per stage
  int microBatches = 1;
  int chain = 1;                                       ///< products per layer
  std::int64_t samples = 1, positions = 2, hidden = 4; ///< samples: per rank
  bool zero = false;                                   ///< ZeRO, needs dp > 1
  bool forwardsFirst = false;                          ///< GPipe, not 1F1B
  ElementType type = ElementType::f32;
};

/// Builds a plan, stage by stage.
class PipelinePlan {
public:
  explicit PipelinePlan(PipelineSize asked) : size(asked) {}

  Plan make() {
    plan.model = "pipeline";
    plan.mesh = {{"pp", size.pp}, {"dp", size.dp}, {"tp", size.tp}};
    plan.ranks = size.pp * size.dp * size.tp;
    plan.streams = {"compute", "tensor", "data", "pipeline"};
    plan.microBatches = size.microBatches;
    plan.globalBatch = size.samples * size.microBatches * size.dp;
    plan.sequence = size.positions;
    plan.layers = std::int64_t{size.layers} * size.pp;
    makeGroups();
    for (s = 0; s < size.pp; ++s)
      makeStage();
    return plan;
  }

private:
  enum Stream { compute, tensor, data, pipeline };
  enum GroupNumber { tpGroup, dpGroup, tiedGroup };
  enum Axis { ppAxis, dpAxis, tpAxis };

  int rankAt(int p, int d, int t) const {
    return (p * size.dp + d) * size.tp + t;
  }

  void makeGroups() {
    Group tp{"tp", {}}, dp{"dp", {}}, tied{"pp of the tied", {}};
    for (int p = 0; p < size.pp; ++p) {
      for (int d = 0; d < size.dp; ++d) {
        tp.communicators.emplace_back();
        for (int t = 0; t < size.tp; ++t)
          tp.communicators.back().push_back(rankAt(p, d, t));
      }
      for (int t = 0; t < size.tp; ++t) {
        dp.communicators.emplace_back();
        for (int d = 0; d < size.dp; ++d)
          dp.communicators.back().push_back(rankAt(p, d, t));
      }
    }
    for (int place = 0; place < size.dp * size.tp && size.pp > 1; ++place)
      tied.communicators.push_back(
          {place, (size.pp - 1) * size.dp * size.tp + place});
    plan.groups = {tp, dp};
    if (size.pp > 1)
      plan.groups.push_back(tied);
  }

  int arenaOf(MemoryClass memoryClass) const {
    return static_cast<int>(memoryClass);
  }

  // Adds a buffer at the end of its arena, and returns its index.
  int buffer(std::string name, MemoryClass memoryClass, std::int64_t bytes,
             int entries = 1, int slots = 1) {
    Arena &arena = stage.arenas[static_cast<std::size_t>(memoryClass)];
    const std::int64_t stride =
        (bytes + kAlignment - 1) / kAlignment * kAlignment;
    Buffer made;
    made.name = std::move(name);
    made.arena = arenaOf(memoryClass);
    made.offset = arena.size;
    made.size = bytes;
    made.entries = entries;
    made.entryStride = entries > 1 ? stride : 0;
    made.slots = slots;
    made.slotStride = slots > 1 ? stride * entries : 0;
    arena.size += stride * entries * slots;
    stage.buffers.push_back(made);
    return static_cast<int>(stage.buffers.size()) - 1;
  }

  // Adds a workspace buffer of the current program. Other programs reuse its
  // bytes.
  int workspace(std::string name, std::int64_t bytes) {
    Arena &arena =
        stage.arenas[static_cast<std::size_t>(MemoryClass::workspace)];
    const std::int64_t end = arena.size;
    arena.size = std::max(shared, used);
    int made = buffer(std::move(name), MemoryClass::workspace, bytes);
    used = arena.size;
    arena.size = std::max(end, used);
    return made;
  }

  Tensor activation(int in, int entry = 0, int step = 0) const {
    return {.buffer = in,
            .entry = entry,
            .entryStep = step,
            .type = size.type,
            .shape = {size.samples, size.positions, size.hidden},
            .split = {{dpAxis}, {}, {}}};
  }
  std::int64_t activationBytes() const {
    return size.samples * size.positions * size.hidden * bytesOf(size.type);
  }
  Tensor weight(int in, ElementType type, bool split, int step) const {
    Tensor made = tensorAt(in, {size.hidden, size.hidden / size.tp}, type,
                           {{}, {tpAxis}});
    made.entryStep = step;
    if (split) {
      made.shape[0] /= size.dp;
      made.split[0] = {dpAxis};
    }
    return made;
  }

  struct Weight {
    Tensor value, sum; ///< sum: the gradient before its reduction
    std::size_t number;
  };

  Weight makeWeight(const std::string &label, int copies, int firstCopy,
                    bool elsewhere) {
    const int step = copies > 1 ? 1 : 0;
    const bool separate = size.zero || size.type != ElementType::f32;
    std::int64_t elements = size.hidden * size.hidden / size.tp;
    auto make = [&](const char *what, MemoryClass memoryClass, bool split,
                    ElementType type) {
      return weight(buffer(label + what, memoryClass,
                           elements / (split ? size.dp : 1) * bytesOf(type),
                           copies),
                    type, split, step);
    };
    Parameter made;
    made.label = label;
    made.init = "normal";
    made.firstCopy = firstCopy;
    made.copies = copies;
    made.value = make("", MemoryClass::parameters, false, size.type);
    Tensor sum = make(".sum", MemoryClass::gradients, false, ElementType::f32);
    sums.push_back(sum.buffer);
    made.gradient = size.zero ? make(".gradient", MemoryClass::gradients, true,
                                     ElementType::f32)
                              : sum;
    auto state = [&](const char *what) {
      return make(what, MemoryClass::optimizer, size.zero, ElementType::f32);
    };
    if (separate)
      made.master = state(".master");
    made.firstMoment = state(".first");
    made.secondMoment = state(".second");
    made.countedElsewhere = elsewhere;
    if (!size.zero)
      made.alike = {dpAxis};
    stage.parameters.push_back(made);
    return {made.value, sum, stage.parameters.size() - 1};
  }

  Program &program(std::string name) {
    stage.programs.push_back({std::move(name), {}});
    used = 0;
    return stage.programs.back();
  }

  // Adds an instruction that runs after the previous instruction.
  static void add(Program &to, Instruction made, int stream) {
    made.stream = stream;
    if (!to.instructions.empty() && to.instructions.back().stream != stream)
      made.waits = {static_cast<int>(to.instructions.size()) - 1};
    to.instructions.push_back(std::move(made));
  }
  static void call(Program &to, std::string label, std::string kernel,
                   std::vector<Tensor> inputs, std::vector<Tensor> outputs,
                   std::vector<Setting> settings = {}) {
    add(to,
        kernelCall(std::move(label), std::move(kernel), std::move(settings),
                   std::move(inputs), std::move(outputs)),
        compute);
  }
  static void join(Program &to, std::string label, Collective what,
                   const Tensor &in, const Tensor &out, int stream) {
    add(to,
        {.label = std::move(label),
         .what = what,
         .inputs = {in},
         .outputs = {out},
         .stream = 0,
         .waits = {}},
        stream);
  }
  void transfer(Program &to, std::string label, bool sends, int other,
                const Tensor &what) const {
    Instruction made{.label = std::move(label),
                     .what = Transfer{sends, other, sends == (other > s)},
                     .inputs = {},
                     .outputs = {},
                     .stream = 0,
                     .waits = {}};
    (sends ? made.inputs : made.outputs) = {what};
    add(to, std::move(made), pipeline);
  }

  // Adds one direction of a layer: a chain of products, an all-reduce of the
  // last product over tp, and the sum with the input `in`.
  void layer(Program &to, const std::string &label, const Tensor &in,
             const Tensor &w, const Tensor &out) {
    Tensor last = in;
    for (int k = 0; k < size.chain; ++k) {
      Tensor next =
          activation(workspace(label + std::to_string(k), activationBytes()));
      call(to, label, "einsum", {last, w}, {next});
      last = next;
    }
    join(to, label, {CollectiveKind::allReduce, tpGroup}, last, last, tensor);
    call(to, label, "add", {in, last}, {out});
  }

  void makeStage() {
    stage = {};
    sums = {};
    for (int d = 0; d < size.dp; ++d)
      for (int t = 0; t < size.tp; ++t)
        stage.ranks.push_back(rankAt(s, d, t));
    for (int k = 0; k < 6; ++k)
      stage.arenas.push_back({static_cast<MemoryClass>(k), 0});
    const bool isFirst = s == 0, isLast = s == size.pp - 1;
    const int flight = size.forwardsFirst
                           ? size.microBatches
                           : std::min(size.microBatches, size.pp - s);

    const Weight h =
        makeWeight("h.*.weight", size.layers, s * size.layers, false);
    if (size.layers == 1)
      stage.parameters.back().copies = 1;
    Weight tied{};
    if (isFirst || isLast)
      tied = makeWeight("wte.weight", 1, 0, !isFirst);
    int carry = buffer("carry", MemoryClass::activations, activationBytes(),
                       size.layers + 1, flight);
    int ids = buffer("ids", MemoryClass::activations,
                     size.samples * size.positions * 4, 1, flight);
    // Two entries suffice, because each layer reads one and writes the other.
    int back =
        buffer("carry.grad", MemoryClass::workspace, activationBytes(), 2);
    int loss = 0;
    if (isLast)
      loss = buffer("loss", MemoryClass::gradients, 4);
    shared =
        stage.arenas[static_cast<std::size_t>(MemoryClass::workspace)].size;
    const Tensor begin = activation(carry),
                 end = activation(carry, size.layers),
                 lossSum = tensorAt(loss, {});
    const Tensor tokens = tensorAt(ids, {size.samples, size.positions},
                                   ElementType::i32, {{dpAxis}, {}});

    Program &in = program("in.forward");
    if (isFirst) {
      add(in,
          {.label = "ids",
           .what = Input{"ids", {"batch", "sequence"}, 11},
           .inputs = {},
           .outputs = {tokens},
           .stream = 0,
           .waits = {}},
          compute);
      call(in, "wte", "embedding", {tokens, tied.value}, {begin});
    } else {
      transfer(in, "carried", false, s - 1, begin);
    }
    layer(program("h.forward"), "h.*", activation(carry, 0, 1), h.value,
          activation(carry, 1, 1));
    Program &out = program("out.forward");
    if (isLast) {
      Tensor term = tensorAt(workspace("loss.term", 4), {});
      call(out, "loss", "token_loss", {end, tied.value}, {term});
      call(out, "loss", "accumulate", {term}, {lossSum}, firstOfAll);
    } else {
      transfer(out, "carried", true, s + 1, end);
    }

    const Tensor dEnd = activation(back, size.layers),
                 dBegin = activation(back);
    Program &outBack = program("out.backward");
    if (isLast) {
      call(outBack, "loss", "cross_entropy_grad", {end, tied.value}, {dEnd});
      addGradient(outBack, "lm_head.dw", {end, dEnd}, tied, firstOfAll);
    } else {
      transfer(outBack, "carried.grad", false, s + 1, dEnd);
    }
    Program &hBack = program("h.backward");
    layer(hBack, "h.*.dx", activation(back, 1, 1), h.value,
          activation(back, 0, 1));
    addGradient(hBack, "h.*.dw",
                {activation(carry, 0, 1), activation(back, 1, 1)}, h,
                firstOfAll);
    Program &inBack = program("in.backward");
    if (isFirst)
      addGradient(inBack, "wte.dw", {tokens, dBegin}, tied,
                  isLast ? std::vector<Setting>() : firstOfAll);
    else
      transfer(inBack, "carried.grad", true, s - 1, dBegin);

    order();
    makeUpdate(isFirst, isLast, lossSum);
    plan.stages.push_back(std::move(stage));
  }

  void addGradient(Program &to, const std::string &label,
                   std::vector<Tensor> inputs, const Weight &of,
                   const std::vector<Setting> &first) {
    Tensor term = of.sum;
    term.buffer = workspace(label, elementsIn(term) * 4);
    term.entry = term.entryStep = 0;
    call(to, label, "einsum", std::move(inputs), {term});
    call(to, label, "accumulate", {term}, {of.sum}, first);
  }
  static std::int64_t elementsIn(const Tensor &tensor) {
    std::int64_t product = 1;
    for (std::int64_t length : tensor.shape)
      product *= length;
    return product;
  }

  void forward(int m) {
    stage.schedule.push_back({0, m, 0, 1, 1});
    stage.schedule.push_back({1, m, 0, 1, size.layers});
    stage.schedule.push_back({2, m, 0, 1, 1});
  }
  void backward(int m) {
    stage.schedule.push_back({3, m, 0, 1, 1});
    stage.schedule.push_back({4, m, size.layers - 1, -1, size.layers});
    stage.schedule.push_back({5, m, 0, 1, 1});
  }
  void order() {
    int ahead = size.forwardsFirst ? size.microBatches
                                   : std::min(size.microBatches, size.pp - s);
    for (int m = 0; m < ahead; ++m)
      forward(m);
    for (int m = 0; m < size.microBatches; ++m) {
      backward(m);
      if (m + ahead < size.microBatches)
        forward(m + ahead);
    }
  }

  // Adds programs that reduce the gradient and update the value of a parameter,
  // once for each of its copies (layers). The last stage also reports the loss.
  void makeUpdate(bool isFirst, bool isLast, const Tensor &loss) {
    for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
      const Parameter parameter = stage.parameters[i];
      Tensor sum =
          weight(sums[i], ElementType::f32, false, parameter.value.entryStep);
      Program &reduce = program("reduce " + parameter.label);
      if (i == 1 && isFirst != isLast)
        join(reduce, parameter.label, {CollectiveKind::allReduce, tiedGroup},
             sum, sum, data);
      join(reduce, parameter.label,
           {size.zero ? CollectiveKind::reduceScatter
                      : CollectiveKind::allReduce,
            dpGroup},
           sum, parameter.gradient, data);
      stage.reduce.push_back({static_cast<int>(stage.programs.size()) - 1, 0, 0,
                              1, parameter.copies});
      Program &apply = program("apply " + parameter.label);
      Tensor fresh = parameter.value;
      if (size.zero) {
        fresh = weight(0, size.type, true, 0);
        fresh.buffer =
            workspace("fresh", elementsIn(fresh) * bytesOf(size.type));
      }
      call(apply, parameter.label, "adamw", {parameter.gradient},
           {fresh, parameter.master.value_or(fresh), parameter.firstMoment,
            parameter.secondMoment});
      if (size.zero)
        join(apply, parameter.label, {CollectiveKind::allGather, dpGroup},
             fresh, parameter.value, data);
      stage.apply.push_back({static_cast<int>(stage.programs.size()) - 1, 0, 0,
                             1, parameter.copies});
    }
    if (!isLast)
      return;
    Program &report = program("report");
    add(report,
        {.label = "loss",
         .what = Report{"loss"},
         .inputs = {loss},
         .outputs = {},
         .stream = 0,
         .waits = {}},
        compute);
    stage.apply.push_back(
        {static_cast<int>(stage.programs.size()) - 1, 0, 0, 1, 1});
  }

  PipelineSize size;
  Plan plan;
  Stage stage;
  std::vector<int> sums; ///< [parameter]: index of its gradient buffer
  const std::vector<Setting> firstOfAll = {{kFirstTerm, std::int64_t{0}}};
  int s = 0;
  /// Hold, in bytes, the end of the workspace buffers that all programs share,
  /// and the end of the buffers that the current program has added after them.
  std::int64_t shared = 0, used = 0;
};

/// Returns a small plan with random features.
inline Plan randomPlan(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto among = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  PipelineSize size;
  size.pp = among({1, 2, 3, 4});
  size.dp = among({1, 2, 4});
  size.tp = among({1, 2, 4});
  size.layers = among({1, 2, 3});
  size.microBatches = among({1, 2, 3, 5});
  size.chain = among({1, 2, 4});
  size.samples = among({1, 2});
  size.positions = among({2, 70});
  size.hidden = among({4, 8, 16});
  size.zero = size.dp > 1 && among({0, 1}) == 1;
  size.forwardsFirst = among({0, 1}) == 1;
  size.type = among({0, 1}) == 1 ? ElementType::bf16 : ElementType::f32;
  return PipelinePlan(size).make();
}

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_PLAN_PIPELINE_PLAN_H

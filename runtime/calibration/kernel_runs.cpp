//===- kernel_runs.cpp - Kernels that are measured ------------------------===//

#include "runtime/calibration/kernel_runs.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/index.h"
#include "runtime/backend/memory.h"
#include "runtime/backend/signature.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime {

using base::sized;

//===----------------------------------------------------------------------===//
// Kernels and sizes
//===----------------------------------------------------------------------===//

namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t bytesIn(const TensorView &view) {
  return view.elements() * bytesOf(view.type);
}

class Runs {
public:
  Runs(const CalibrationShapes &s, ElementType t) : shapes(s), type(t) {}

  std::vector<KernelRun> all() {
    const std::int64_t h = shapes.hidden;
    const std::int64_t b = shapes.samples, s = shapes.sequence;
    layer("a layer up", b, s, h, 4 * h);
    layer("a layer down", b, s, 4 * h, h);
    layer("a square layer", b, s, h, h);
    layer("a narrow layer", b, s, h / 2, h / 2);
    layer("a layer of some rows", b, s / 16, h, 4 * h);
    layer("a layer of few rows", 1, 16, h, 4 * h);
    layer("the vocabulary", b, s, h, shapes.words);
    layer("large", 1, shapes.square, shapes.square, shapes.square);
    // Rows of 4 h + 8 elements are not multiples of 128 bytes in any type. Rows
    // of 4 h + 1 elements are not multiples of 16 bytes either.
    product("unaligned", "bsi,io->bso", 1, b * s, h, 4 * h + 8);
    product("odd", "bsi,io->bso", 1, b * s, h, 4 * h + 1);
    batched();
    followers();
    for (const bool causal : {true, false})
      for (const std::int64_t length : {s, 4 * s})
        for (const bool drops : {false, true})
          attention(b * s / length, length, causal, drops);
    passes();
    return std::move(runs);
  }

private:
  TensorView of(Shape shape) const { return {type, std::move(shape), {}}; }
  static TensorView f32(Shape shape) {
    return {ElementType::f32, std::move(shape), {}};
  }

  // Adds the three products of a weight [in, out]: the forward product and the
  // gradients of the input and of the weight.
  void layer(const std::string &name, std::int64_t b, std::int64_t s,
             std::int64_t in, std::int64_t out) {
    product(name, "bsi,io->bso", b, s, in, out);
    product(name + ", its input's gradient", "bso,io->bsi", b, s, in, out);
    product(name + ", its weight's gradient", "bsi,bso->io", b, s, in, out);
  }

  void product(const std::string &name, const std::string &equation,
               std::int64_t b, std::int64_t s, std::int64_t in,
               std::int64_t out) {
    const TensorView x = of({b, s, in}), y = of({b, s, out}), w = of({in, out});
    const bool forward = equation.ends_with("bso"),
               ofWeight = equation.ends_with("->io");
    KernelRun made;
    made.spec = {"einsum",
                 name,
                 {{"equation", equation}},
                 {forward || ofWeight ? x : y, ofWeight ? y : w},
                 {forward    ? y
                  : ofWeight ? w
                             : x}};
    MeasuredRun &run = made.run;
    run.as = MeasuredAs::product;
    run.m = ofWeight ? in : b * s;
    run.n = forward || ofWeight ? out : in;
    run.k = ofWeight ? b * s : forward ? in : out;
    add(std::move(made), name);
  }

  void batched() {
    const std::int64_t e = 8, c = shapes.sequence, m = shapes.hidden,
                       f = shapes.hidden;
    KernelRun made;
    made.spec = {"einsum",
                 "batched",
                 {{"equation", std::string("ecm,emf->ecf")}},
                 {of({e, c, m}), of({e, m, f})},
                 {of({e, c, f})}};
    made.run.as = MeasuredAs::product;
    made.run.m = c, made.run.n = f, made.run.k = m, made.run.batch = e;
    add(std::move(made), "batched");
  }

  // Adds the first product of an MLP several times: with a fused `add`, with
  // each fused activation function, and with the gradient of each.
  void followers() {
    fusedConsumer("add", "");
    for (const char *function : kActivations)
      for (const char *kernel : {"activation", "activation_grad"})
        fusedConsumer(kernel, function);
  }

  void fusedConsumer(const std::string &kernel, const std::string &function) {
    const std::int64_t h = shapes.hidden;
    product("a layer up", "bsi,io->bso", shapes.samples, shapes.sequence, h,
            4 * h);
    follow(runs.back(), kernel);
    if (!function.empty())
      runs.back().spec.settings.push_back({"kind", function});
    runs.back().run.variant = function;
  }

  // Fuses a consumer into a product or a memory-bound kernel. Consumers other
  // than `activation` read a second tensor.
  static void follow(KernelRun &made, const std::string &kernel) {
    const TensorView y = made.spec.outputs[0];
    made.spec.settings.push_back({kThen, kernel});
    if (kernel != "activation")
      made.spec.inputs.push_back(y);
    made.spec.outputs.push_back(y);
    MeasuredRun &run = made.run;
    run.after = run.as == MeasuredAs::product ? "" : run.kernel;
    run.as = MeasuredAs::followed;
    run.bytesAfter = run.bytes;
    run.kernel = kernel;
    run.bytes = bytesIn(y);
  }

  // Adds the last kernel again, with a fused `add`.
  void andAdd() {
    KernelRun both = runs.back();
    follow(both, "add");
    runs.push_back(std::move(both));
  }

  void attention(std::int64_t samples, std::int64_t length, bool causal,
                 bool drops) {
    const std::int64_t width = 64, heads = shapes.hidden / width;
    const TensorView x = of({samples, length, shapes.hidden}),
                     lse = f32({samples, length, heads});
    KernelRun made;
    made.spec = {"attention",
                 "attention",
                 {{"head_dim", width},
                  {"causal", std::int64_t{causal}},
                  {"scale", 0.125},
                  {"rate", drops ? kRate : 0.0},
                  {"mask", std::string("attention")}},
                 {x, x, x},
                 {x, lse}};
    MeasuredRun &run = made.run;
    run.as = MeasuredAs::attention;
    run.batch = samples * heads;
    run.m = run.n = length;
    run.k = width;
    run.causal = causal;
    run.variant = drops ? "dropout" : "";
    const std::string what = causal ? "causal" : "all pairs";
    KernelRun gradient = made;
    add(std::move(made), what);
    gradient.spec.kernel = "attention_grad";
    gradient.spec.inputs.insert(gradient.spec.inputs.end(), {x, lse, x});
    gradient.spec.outputs = {x, x, x};
    add(std::move(gradient), what);
  }

  void passes() {
    const std::int64_t b = shapes.samples, s = shapes.sequence,
                       h = shapes.hidden, v = shapes.words;
    const TensorView x = of({b, s, h}), inner = of({b, s, 4 * h}),
                     row = of({h}), logits = of({b, s, v}),
                     tokens = f32({b, s}), scalar = f32({}), table = of({v, h}),
                     position = of({s, h}), sum = f32({v, h}),
                     ids{ElementType::i32, {b, s}, {}};
    const std::vector<Setting> rope{{"head_dim", std::int64_t{64}},
                                    {"rotary_dim", std::int64_t{64}},
                                    {"theta", 10000.0}},
        drop{{"rate", kRate}, {"mask", std::string("drop")}},
        classes{{"classes", v}};
    pass("copy", {}, {inner}, {inner});
    pass("add", {}, {x, x}, {x});
    pass("mul", {}, {x, x}, {x});
    pass("scale", {{"factor", 0.5}}, {x}, {x});
    pass("layer_norm", {}, {x, row, row}, {x});
    pass("layer_norm_grad", {}, {x, row, x}, {x, row, row});
    andAdd();
    pass("rms_norm", {}, {x, row}, {x});
    pass("rms_norm_grad", {}, {x, row, x}, {x, row});
    andAdd();
    for (const char *function : kActivations) {
      const std::vector<Setting> kind{{"kind", std::string(function)}};
      pass("activation", kind, {inner}, {inner});
      runs.back().run.variant = function;
      pass("activation_grad", kind, {inner, inner}, {inner});
      runs.back().run.variant = function;
    }
    pass("swiglu", {}, {inner, inner}, {inner});
    pass("swiglu_grad", {}, {inner, inner, inner}, {inner, inner});
    pass("dropout", drop, {x}, {x});
    andAdd();
    pass("rope", rope, {x}, {x});
    pass("sum", {}, {x}, {row});
    pass("embedding", {}, {ids, table}, {x}, 1);
    pass("embedding_grad", {}, {ids, x}, {table});
    pass("position_embedding", {}, {x, position}, {x}, 1);
    pass("position_embedding_grad", {}, {x}, {position});
    pass("vocab_max", classes, {logits}, {tokens});
    pass("vocab_sum_exp", classes, {logits, tokens}, {tokens});
    pass("vocab_pick", {}, {logits, ids}, {tokens}, 0);
    pass("cross_entropy_grad", classes, {logits, tokens, tokens, ids, scalar},
         {logits});
    update("accumulate", {}, {table}, {sum});
    update("square_sum", {{"counts", std::int64_t{1}}}, {sum},
           {{ElementType::f64, {2}, {}}});
    update("adamw", {{"decay", std::int64_t{1}}}, {sum},
           type == ElementType::f32 ? std::vector{sum, sum, sum, sum}
                                    : std::vector{table, sum, sum, sum});
  }

  static constexpr int kNothing = -1;
  static constexpr double kRate = 0.1; ///< dropout rate

  /// \param lookedUp  index of the lookup table in `inputs`, or kNothing
  void pass(const std::string &kernel, std::vector<Setting> settings,
            std::vector<TensorView> inputs, std::vector<TensorView> outputs,
            int lookedUp = kNothing) {
    KernelRun made;
    made.run.as = MeasuredAs::pass;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      made.run.bytes +=
          static_cast<int>(i) == lookedUp
              ? std::min(bytesIn(inputs[i]), bytesIn(outputs.front()))
              : bytesIn(inputs[i]);
    for (const TensorView &output : outputs)
      made.run.bytes += bytesIn(output);
    made.spec = {kernel, kernel, std::move(settings), std::move(inputs),
                 std::move(outputs)};
    add(std::move(made), "");
  }

  // Adds a kernel that updates its outputs in place.
  void update(const std::string &kernel, std::vector<Setting> settings,
              std::vector<TensorView> inputs, std::vector<TensorView> outputs) {
    pass(kernel, std::move(settings), std::move(inputs), std::move(outputs));
    KernelRun &made = runs.back();
    // pass() has counted each output once; an output that is also read counts
    // again. AdamW's first output, a 16-bit weight, is only written. In f32,
    // the parameter is its own master, and the second output already counts its
    // bytes. Therefore the bytes of the first output are subtracted.
    for (std::size_t i = 0; i < made.spec.outputs.size(); ++i) {
      const std::int64_t bytes = bytesIn(made.spec.outputs[i]);
      if (kernel != "adamw" || i > 0)
        made.run.bytes += bytes;
      else if (type == ElementType::f32)
        made.run.bytes -= bytes;
    }
  }

  void add(KernelRun made, const std::string &what) {
    made.run.kernel = made.spec.kernel;
    made.run.type = type;
    made.run.what = what;
    runs.push_back(std::move(made));
  }

  const CalibrationShapes shapes;
  const ElementType type;
  std::vector<KernelRun> runs;
};

} // namespace

std::vector<KernelRun> kernelRunsOf(const CalibrationShapes &shapes,
                                    ElementType type) {
  return Runs(shapes, type).all();
}

KernelRun smallestRun() {
  const TensorView one{ElementType::f32, {16}, {}};
  KernelRun made;
  made.spec = {"add", "launch", {}, {one, one}, {one}};
  made.run.as = MeasuredAs::launches;
  made.run.kernel = "add";
  made.run.what = "16 numbers";
  made.run.count = 1;
  return made;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {

constexpr std::int64_t kMostOperandCopies = 64;

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t bytesOfCopy(const KernelSpec &spec) {
  std::int64_t bytes = 0;
  for (const std::vector<TensorView> *side : {&spec.inputs, &spec.outputs})
    for (const TensorView &view : *side)
      bytes += rounded(bytesIn(view));
  return bytes;
}

std::int64_t copiesOf(const KernelSpec &spec, std::int64_t spread) {
  const std::int64_t one = std::max<std::int64_t>(1, bytesOfCopy(spec));
  return std::clamp<std::int64_t>((spread + one - 1) / one, 1,
                                  kMostOperandCopies);
}

// Returns one pattern per type, with the length of the type's longest input.
std::map<ElementType, Pattern> patternsOf(Memory &memory,
                                          const KernelSpec &spec) {
  std::map<ElementType, std::int64_t> longest;
  for (const TensorView &view : spec.inputs)
    longest[view.type] = std::max(longest[view.type], bytesIn(view));
  std::map<ElementType, Pattern> patterns;
  for (const auto &[type, bytes] : longest)
    patterns.try_emplace(type, memory, type, bytes);
  return patterns;
}

} // namespace

Operands::Operands(Memory &memory, const KernelSpec &spec, std::int64_t spread)
    : space(memory, sized(bytesOfCopy(spec) * copiesOf(spec, spread))),
      step(memory, sizeof(StepNumbers)) {
  const std::int64_t number = copiesOf(spec, spread);
  std::map<ElementType, Pattern> patterns = patternsOf(memory, spec);
  std::byte *at = space.get();
  for (std::int64_t c = 0; c < number; ++c) {
    Copy &copy = copies.emplace_back();
    for (const TensorView &view : spec.inputs) {
      patterns.at(view.type).fill(at, bytesIn(view));
      copy.inputs.push_back(at);
      at += rounded(bytesIn(view));
    }
    // Allocated memory is zero already, but writing host memory here maps its
    // pages before the measurement.
    for (const TensorView &view : spec.outputs) {
      if (memory.isHosts())
        std::memset(at, 0, sized(bytesIn(view)));
      copy.outputs.push_back(at);
      at += rounded(bytesIn(view));
    }
    // Without a separate master, AdamW's first two outputs share memory.
    if (spec.kernel == "adamw" && spec.outputs[0].type == spec.outputs[1].type)
      copy.outputs[1] = copy.outputs[0];
  }
  StepNumbers numbers;
  numbers.update.learningRate = 1e-4;
  numbers.update.weightDecay = 0.1;
  memory.upload(step.get(), &numbers, sizeof numbers);
}

void Operands::run(Kernel &kernel, std::int64_t number) {
  const Copy &copy = copies[sized(number) % copies.size()];
  kernel.run({copy.inputs.data(), copy.outputs.data(),
              reinterpret_cast<const StepNumbers *>(step.get())});
}

} // namespace mtplan::runtime

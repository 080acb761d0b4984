//===- kernel_bench.cpp - Speed of the CPU kernels ------------------------===//
//
// Measures kernels of a training step of GPT-2 124M with four samples of 256
// tokens. Rates of products and attention are in FLOP/s; oneDNN's matmul is
// measured for comparison. Rates of other kernels are in bytes/s of the
// operands that the kernels read and the results that they write. Kernels use
// one thread, or OMP_NUM_THREADS threads if set; the time is processor time.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>
#include <omp.h>

#include "runtime/backend/element.h"
#include "runtime/backend/kernel.h"

using namespace mtplan::runtime;

namespace {

constexpr std::int64_t kBatch = 4, kSequence = 256, kHidden = 768,
                       kWords = 50257;
constexpr ElementType kF32 = ElementType::f32, kBf16 = ElementType::bf16;

using Shape = std::vector<std::int64_t>;

int threads() {
  return std::getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : 1;
}
const int kThreads = threads();

std::vector<std::byte> filled(const TensorView &view) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(view.elements() * bytesOf(view.type)));
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(1021);
  for (double &number : numbers)
    number = view.type == ElementType::i32
                 ? static_cast<double>(random() % static_cast<unsigned>(kWords))
                 : normal(random);
  for (std::int64_t i = 0; i < view.elements(); ++i)
    writeElement(view.type, bytes.data(), i,
                 numbers[static_cast<std::size_t>(i) % numbers.size()]);
  return bytes;
}

/// \param readsResults  whether the kernel also reads its results
void runKernel(benchmark::State &state, const KernelSpec &spec,
               bool readsResults = false) {
  const std::unique_ptr<Backend> backend = makeCpuBackend(kThreads);
  const std::unique_ptr<Kernel> kernel = backend->prepare(spec);
  std::vector<std::vector<std::byte>> storage;
  std::vector<const void *> in;
  std::vector<void *> out;
  std::int64_t bytes = 0;
  storage.reserve(16);
  for (const TensorView &view : spec.inputs) {
    in.push_back(storage.emplace_back(filled(view)).data());
    bytes += view.elements() * bytesOf(view.type);
  }
  for (const TensorView &view : spec.outputs) {
    out.push_back(storage.emplace_back(filled(view)).data());
    bytes += view.elements() * bytesOf(view.type) * (readsResults ? 2 : 1);
  }
  StepNumbers step;
  step.update = {.learningRate = 1e-4, .weightDecay = 0.1};
  const Invocation call{in.data(), out.data(), &step};
  kernel->run(call);
  for (auto _ : state)
    kernel->run(call);
  const auto runs = static_cast<double>(state.iterations());
  if (kernel->flops() > 0)
    state.counters["FLOP/s"] =
        benchmark::Counter(kernel->flops() * runs, benchmark::Counter::kIsRate);
  else
    state.counters["B/s"] = benchmark::Counter(
        static_cast<double>(bytes) * runs, benchmark::Counter::kIsRate);
}

TensorView of(ElementType type, const Shape &shape) {
  return {type, shape, {}};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

struct Sizes {
  std::int64_t in, out;
};

TensorView rows(ElementType type, std::int64_t width) {
  return of(type, {kBatch, kSequence, width});
}

void product(benchmark::State &state, const char *label, const char *equation,
             std::vector<TensorView> inputs, TensorView result) {
  runKernel(state, {.kernel = "einsum",
                    .label = label,
                    .settings = {{"equation", std::string(equation)}},
                    .inputs = std::move(inputs),
                    .outputs = {std::move(result)}});
}

void forward(benchmark::State &state, ElementType type, Sizes sizes) {
  product(state, "fc", "bsi,io->bso",
          {rows(type, sizes.in), of(type, {sizes.in, sizes.out}),
           of(type, {sizes.out})},
          rows(type, sizes.out));
}

void inputGradient(benchmark::State &state, ElementType type, Sizes sizes) {
  product(state, "fc.dx", "bso,io->bsi",
          {rows(type, sizes.out), of(type, {sizes.in, sizes.out})},
          rows(type, sizes.in));
}

void weightGradient(benchmark::State &state, ElementType type, Sizes sizes) {
  product(state, "fc.dw", "bsi,bso->io",
          {rows(type, sizes.in), rows(type, sizes.out)},
          of(kF32, {sizes.in, sizes.out}));
}

void head(benchmark::State &state, ElementType type) {
  product(state, "lm_head", "bsh,vh->bsv",
          {rows(type, kHidden), of(type, {kWords, kHidden})},
          rows(type, kWords));
}

void headGradient(benchmark::State &state, ElementType type) {
  product(state, "lm_head.dx", "bsv,vh->bsh",
          {rows(type, kWords), of(type, {kWords, kHidden})},
          rows(type, kHidden));
}

void tableGradient(benchmark::State &state, ElementType type) {
  product(state, "lm_head.dw", "bsv,bsh->vh",
          {rows(type, kWords), rows(type, kHidden)},
          of(kF32, {kWords, kHidden}));
}

/// Runs oneDNN alone on all rows at once, with weights in its preferred order.
void bare(benchmark::State &state, dnnl::memory::data_type type, Sizes sizes) {
  omp_set_num_threads(kThreads);
  using Memory = dnnl::memory;
  constexpr std::int64_t kRows = kBatch * kSequence;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::matmul::primitive_desc chosen(
      dnnl::matmul::desc({{kRows, sizes.in}, type, Memory::format_tag::ab},
                         {{sizes.in, sizes.out}, type, Memory::format_tag::any},
                         {{kRows, sizes.out}, type, Memory::format_tag::ab}),
      engine);
  const dnnl::matmul product(chosen);
  Memory a(chosen.src_desc(), engine), b(chosen.weights_desc(), engine),
      c(chosen.dst_desc(), engine);
  for (auto _ : state) {
    product.execute(
        stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
  state.counters["FLOP/s"] = benchmark::Counter(
      2.0 * static_cast<double>(kRows * sizes.in * sizes.out) *
          static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

constexpr Sizes kUp{kHidden, 4 * kHidden}, kDown{4 * kHidden, kHidden},
    kSquare{kHidden, kHidden};

BENCHMARK_CAPTURE(bare, f32_768x768, dnnl::memory::data_type::f32, kSquare);
BENCHMARK_CAPTURE(bare, f32_768x3072, dnnl::memory::data_type::f32, kUp);
BENCHMARK_CAPTURE(bare, f32_3072x768, dnnl::memory::data_type::f32, kDown);
BENCHMARK_CAPTURE(forward, f32_768x3072, kF32, kUp);
BENCHMARK_CAPTURE(forward, f32_768x768, kF32, kSquare);
BENCHMARK_CAPTURE(inputGradient, f32_768x3072, kF32, kUp);
BENCHMARK_CAPTURE(weightGradient, f32_768x3072, kF32, kUp);
BENCHMARK_CAPTURE(head, f32, kF32);
BENCHMARK_CAPTURE(headGradient, f32, kF32);
BENCHMARK_CAPTURE(tableGradient, f32, kF32);
BENCHMARK_CAPTURE(bare, bf16_768x768, dnnl::memory::data_type::bf16, kSquare);
BENCHMARK_CAPTURE(bare, bf16_768x3072, dnnl::memory::data_type::bf16, kUp);
BENCHMARK_CAPTURE(bare, bf16_3072x768, dnnl::memory::data_type::bf16, kDown);
BENCHMARK_CAPTURE(forward, bf16_768x3072, kBf16, kUp);
BENCHMARK_CAPTURE(forward, bf16_768x768, kBf16, kSquare);
BENCHMARK_CAPTURE(inputGradient, bf16_768x3072, kBf16, kUp);
BENCHMARK_CAPTURE(weightGradient, bf16_768x3072, kBf16, kUp);
BENCHMARK_CAPTURE(head, bf16, kBf16);
BENCHMARK_CAPTURE(headGradient, bf16, kBf16);
BENCHMARK_CAPTURE(tableGradient, bf16, kBf16);

//===----------------------------------------------------------------------===//
// Other kernels
//===----------------------------------------------------------------------===//

KernelSpec attentionSpec(ElementType type, bool backward, double rate) {
  const TensorView x = rows(type, kHidden), lse = rows(kF32, kHidden / 64);
  KernelSpec spec{.kernel = backward ? "attention_grad" : "attention",
                  .label = "attn.core",
                  .settings = {{"head_dim", std::int64_t{64}},
                               {"causal", std::int64_t{1}},
                               {"scale", 0.125},
                               {"rate", rate},
                               {"mask", std::string("attn.drop")}},
                  .inputs = {x, x, x},
                  .outputs = {x, lse}};
  if (backward) {
    spec.inputs.insert(spec.inputs.end(), {x, lse, x});
    spec.outputs = {x, x, x};
  }
  return spec;
}

void attention(benchmark::State &state, ElementType type, double rate) {
  runKernel(state, attentionSpec(type, false, rate));
}
void attentionGrad(benchmark::State &state, ElementType type, double rate) {
  runKernel(state, attentionSpec(type, true, rate));
}

BENCHMARK_CAPTURE(attention, f32, kF32, 0.0);
BENCHMARK_CAPTURE(attention, f32_dropout, kF32, 0.1);
BENCHMARK_CAPTURE(attention, bf16, kBf16, 0.0);
BENCHMARK_CAPTURE(attentionGrad, f32, kF32, 0.0);
BENCHMARK_CAPTURE(attentionGrad, f32_dropout, kF32, 0.1);
BENCHMARK_CAPTURE(attentionGrad, bf16, kBf16, 0.0);

void layerNorm(benchmark::State &state, ElementType type) {
  const TensorView x = rows(type, kHidden), gamma = of(type, {kHidden});
  runKernel(state, {"layer_norm", "ln", {}, {x, gamma, gamma}, {x}});
}
void layerNormGrad(benchmark::State &state, ElementType type) {
  const TensorView x = rows(type, kHidden), gamma = of(type, {kHidden}),
                   sum = of(kF32, {kHidden});
  runKernel(state, {"layer_norm_grad", "ln", {}, {x, gamma, x}, {x, sum, sum}});
}
void gelu(benchmark::State &state, ElementType type) {
  const TensorView x = rows(type, 4 * kHidden);
  runKernel(
      state,
      {"activation", "act", {{"kind", std::string("gelu_tanh")}}, {x}, {x}});
}
void geluGrad(benchmark::State &state, ElementType type) {
  const TensorView x = rows(type, 4 * kHidden);
  runKernel(state, {"activation_grad",
                    "act",
                    {{"kind", std::string("gelu_tanh")}},
                    {x, x},
                    {x}});
}
void dropout(benchmark::State &state, ElementType type) {
  const TensorView x = rows(type, kHidden);
  runKernel(state, {"dropout",
                    "drop",
                    {{"rate", 0.1}, {"mask", std::string("drop")}},
                    {x},
                    {x}});
}
void sumExp(benchmark::State &state, ElementType type) {
  const TensorView logits = rows(type, kWords),
                   tokens = of(kF32, {kBatch, kSequence});
  runKernel(state, {"vocab_sum_exp",
                    "loss.sum_exp",
                    {{"classes", kWords}},
                    {logits, tokens},
                    {tokens}});
}
void lossGrad(benchmark::State &state, ElementType type) {
  const TensorView logits = rows(type, kWords),
                   tokens = of(kF32, {kBatch, kSequence});
  runKernel(state, {"cross_entropy_grad",
                    "loss",
                    {{"classes", kWords}},
                    {logits, tokens, tokens, of(ElementType::i32, tokens.shape),
                     of(kF32, {})},
                    {logits}});
}
void embeddingGrad(benchmark::State &state, ElementType type) {
  runKernel(state,
            {"embedding_grad",
             "wte",
             {},
             {of(ElementType::i32, {kBatch, kSequence}), rows(type, kHidden)},
             {of(kF32, {kWords, kHidden})}});
}
void adamw(benchmark::State &state, ElementType type) {
  const TensorView state32 = of(kF32, {kWords, kHidden});
  runKernel(state,
            {"adamw",
             "wte",
             {{"decay", std::int64_t{1}}},
             {state32},
             {of(type, state32.shape), state32, state32, state32}},
            /*readsResults=*/true);
}
void accumulate(benchmark::State &state) {
  const TensorView x = of(kF32, {kWords, kHidden});
  runKernel(state, {"accumulate", "wte", {}, {x}, {x}}, /*readsResults=*/true);
}

#define MTPLAN_BOTH(name)                                                      \
  BENCHMARK_CAPTURE(name, f32, kF32);                                          \
  BENCHMARK_CAPTURE(name, bf16, kBf16);
MTPLAN_BOTH(layerNorm)
MTPLAN_BOTH(layerNormGrad)
MTPLAN_BOTH(gelu)
MTPLAN_BOTH(geluGrad)
MTPLAN_BOTH(dropout)
MTPLAN_BOTH(sumExp)
MTPLAN_BOTH(lossGrad)
MTPLAN_BOTH(embeddingGrad)
MTPLAN_BOTH(adamw)
BENCHMARK(accumulate);
#undef MTPLAN_BOTH

} // namespace

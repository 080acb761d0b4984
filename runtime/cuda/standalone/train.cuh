//===- train.cuh - The training loop of a stand-alone program ---*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_TRAIN_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_TRAIN_CUH

#include <cstdio>
#include <initializer_list>
#include <memory>

#include "runtime/backend/long_sum.h"
#include "runtime/cuda/device/adamw.cuh"
#include "runtime/cuda/standalone/collectives.cuh"
#include "runtime/cuda/standalone/products.cuh"
#include "runtime/cuda/standalone/samples.cuh"
#include "runtime/cuda/standalone/start.cuh"
#include "runtime/training/initial_values.h"
#include "runtime/training/learning_rate.h"
#include "runtime/training/update_rule.h"

namespace mtplan::runtime::cuda {

struct StepFacts {
  int microBatches = 1;
  std::int64_t tokens = 1; ///< per step
  std::int64_t layers = 1;
  std::int64_t targets = 0,
               limit = 0; ///< targets per micro-batch, and their upper bound
  std::vector<std::string> reports;
  std::vector<int> firstRanks; ///< the first rank of each stage
  bool computesInF16 = false;
};

/// Lists the functions of one pipeline stage, in the order of a step.
struct StageProgram {
  void (*open)(Rank &); ///< allocates the memory of the rank
  void (*initialise)(Rank &, const Initialisation &);
  void (*forwardAndBackward)(Rank &); ///< includes gradient reduction
  void (*squares)(Rank &);            ///< adds to the sum in Rank::stepSums
  void (*update)(Rank &);
};

/// Holds the command-line options, with the meaning and the defaults of mtrun.
struct Options {
  std::int64_t steps = 100, every = 1;
  std::string data = "synthetic";
  std::uint64_t seed = 1234;
  double rate = 1e-3, floorShare = 0.1, weightDecay = 0.1, clip = 1.0;
  std::int64_t warmup = -1; ///< in steps; below 0: a tenth of all steps
  std::string decay = "cosine";
};

inline Options optionsOf(int count, char **words) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string flag = words[i];
    if (i + 1 == count)
      throw std::runtime_error(flag + ": needs a value");
    const char *value = words[i + 1];
    if (flag == "--steps")
      options.steps = std::atoll(value);
    else if (flag == "--every")
      options.every = std::max(1LL, std::atoll(value));
    else if (flag == "--data")
      options.data = value;
    else if (flag == "--seed")
      options.seed = std::strtoull(value, nullptr, 10);
    else if (flag == "--lr")
      options.rate = std::atof(value);
    else if (flag == "--lr-decay")
      options.decay = value;
    else if (flag == "--lr-floor")
      options.floorShare = std::atof(value);
    else if (flag == "--warmup")
      options.warmup = std::atoll(value);
    else if (flag == "--weight-decay")
      options.weightDecay = std::atof(value);
    else if (flag == "--clip")
      options.clip = std::atof(value);
    else
      throw std::runtime_error(
          flag + ": is none of --steps --every --data --seed --lr --lr-decay "
                 "--lr-floor --warmup --weight-decay --clip");
  }
  return options;
}

inline LearningRate learningRateOf(const Options &options) {
  const std::optional<Decay> decay = decayNamed(options.decay);
  if (!decay)
    throw std::runtime_error("--lr-decay " + options.decay +
                             ": must be constant, linear, cosine, "
                             "inverse-square-root or wsd");
  LearningRate rate;
  rate.decay = *decay;
  rate.peak = options.rate;
  rate.floor = options.rate * options.floorShare;
  rate.warmup = options.warmup < 0 ? options.steps / 10 : options.warmup;
  rate.end = std::max(options.steps, rate.warmup + 1);
  rate.annealing = std::max<std::int64_t>(1, (rate.end - rate.warmup) / 5);
  if (const std::string fault = faultOf(rate); !fault.empty())
    throw std::runtime_error(fault);
  return rate;
}

/// Initializes a tensor, some rows at a time, because all rows in double
/// precision might not fit into host memory.
inline void initialiseTensor(const Run &now, const Initialisation &how,
                             const char *label, std::int64_t copy,
                             const char *init, const Tensor &to,
                             const TensorView &piece) {
  constexpr std::int64_t kMany = 1 << 18;
  const std::int64_t rows = piece.shape.empty() ? 1 : piece.shape[0];
  const std::int64_t row = piece.elements() / rows;
  const std::int64_t step = std::max<std::int64_t>(1, kMany / row);
  for (std::int64_t first = 0; first < rows; first += step) {
    TensorView some = piece;
    const std::int64_t count = std::min(step, rows - first);
    if (!some.shape.empty()) {
      some.shape[0] = count;
      some.pieces[0].offset += first;
    }
    std::vector<double> values(static_cast<std::size_t>(count * row));
    fillInitial(how, label, copy, init, some, values.data());
    std::vector<std::byte> bytes(bytesOf(to, count * row));
    for (std::int64_t i = 0; i < count * row; ++i)
      writeElement(to.type, bytes.data(), i,
                   values[static_cast<std::size_t>(i)]);
    MTPLAN_CUDA(cudaMemcpyAsync(plus(to.data, first * row, to.type),
                                bytes.data(), bytes.size(),
                                cudaMemcpyHostToDevice, now.stream()));
    MTPLAN_CUDA(cudaStreamSynchronize(now.stream()));
  }
}

/// Initializes this rank's shard of a parameter in all tensors of `all`: the
/// value, the master, or both if they hold the same elements.
inline void initial(const Run &now, const Initialisation &how,
                    const char *label, std::int64_t copy, const char *init,
                    std::initializer_list<Tensor> all, TensorView piece) {
  for (const Tensor &one : all) {
    piece.type = one.type;
    initialiseTensor(now, how, label, copy, init, one, piece);
  }
}

/// Allocates `count` elements of T by `how`: cudaMalloc or cudaMallocHost.
template <typename T>
void allocate(cudaError_t (*how)(void **, std::size_t), T *&data,
              std::size_t count) {
  MTPLAN_CUDA(how(reinterpret_cast<void **>(&data), count * sizeof(T)));
}

/// Allocates Rank::stepSums, hostSums, numbers and written.
inline void openNumbers(Rank &rank, const StepFacts &facts) {
  const std::size_t each = kSquareSum + facts.reports.size(),
                    all = each * static_cast<std::size_t>(rank.ranks);
  allocate(cudaMalloc, rank.stepSums, each + all);
  allocate(cudaMallocHost, rank.hostSums, all);
  allocate(cudaMalloc, rank.numbers, 1);
  allocate(cudaMallocHost, rank.written, 1);
}

/// Queues the copy of the step's numbers to the device, and clears this rank's
/// sum of squares and reports.
inline void begin(const Rank &rank, const StepFacts &facts) {
  MTPLAN_CUDA(cudaMemcpyAsync(rank.numbers, rank.written, sizeof(StepNumbers),
                              cudaMemcpyHostToDevice, rank.stream()));
  MTPLAN_CUDA(cudaMemsetAsync(
      rank.stepSums, 0, (kSquareSum + facts.reports.size()) * sizeof(double),
      rank.stream()));
}

/// Queues the all-gather of all ranks' sums of squares and reports. The device
/// then computes the gradient factor (clipping, loss scale), and whether the
/// step is skipped.
inline void agree(const Rank &rank, const StepFacts &facts) {
  const std::size_t reports = facts.reports.size(),
                    ranks = static_cast<std::size_t>(rank.ranks);
  double *const sums = rank.stepSums + kSquareSum + reports;
  MTPLAN_NCCL(ncclAllGather(rank.stepSums, sums, kSquareSum, ncclFloat64,
                            rank.world, rank.stream()));
  gradientFactor(rank.stream(), reinterpret_cast<DeviceLongSum *>(sums),
                 rank.ranks, rank.numbers,
                 &rank.numbers->update.gradientFactor);
  if (reports > 0)
    MTPLAN_NCCL(ncclAllGather(rank.stepSums + kSquareSum,
                              sums + kSquareSum * ranks, reports, ncclFloat64,
                              rank.world, rank.stream()));
  MTPLAN_CUDA(cudaMemcpyAsync(rank.hostSums, sums,
                              (kSquareSum + reports) * ranks * sizeof(double),
                              cudaMemcpyDeviceToHost, rank.stream()));
}

/// Returns the results of a completed step: the sum of squares of all
/// gradients, and the sums of the reports over the stages' first ranks.
/// Double-double precision makes the sums independent of the order.
inline std::vector<double> resultsOf(const Rank &rank, const StepFacts &facts) {
  const std::size_t reports = facts.reports.size(),
                    ranks = static_cast<std::size_t>(rank.ranks);
  std::vector<LongSum> sums(1 + reports);
  for (std::size_t r = 0; r < ranks; ++r)
    sums[0].add(LongSum{rank.hostSums[2 * r], rank.hostSums[2 * r + 1]});
  for (const int first : facts.firstRanks)
    for (std::size_t i = 0; i < reports; ++i)
      sums[1 + i].add(
          rank.hostSums[2 * ranks + static_cast<std::size_t>(first) * reports +
                        i]);
  std::vector<double> values;
  for (const LongSum &sum : sums)
    values.push_back(sum.value());
  return values;
}

/// Captures the step as a CUDA graph, which every step launches. The capture
/// allocates the scratch memory and tables of kernels, but runs no kernels.
inline cudaGraphExec_t captured(Rank &rank, const StageProgram &program,
                                const StepFacts &facts) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t step = nullptr;
  // The relaxed mode permits allocations during the capture.
  MTPLAN_CUDA(
      cudaStreamBeginCapture(rank.stream(), cudaStreamCaptureModeRelaxed));
  begin(rank, facts);
  program.forwardAndBackward(rank);
  program.squares(rank);
  agree(rank, facts);
  program.update(rank);
  joinLines(rank);
  MTPLAN_CUDA(cudaStreamEndCapture(rank.stream(), &graph));
  MTPLAN_CUDA(cudaGraphInstantiate(&step, graph, 0));
  MTPLAN_CUDA(cudaGraphDestroy(graph));
  MTPLAN_CUDA(cudaGraphUpload(step, rank.stream()));
  MTPLAN_CUDA(cudaStreamSynchronize(rank.stream()));
  return step;
}

/// Trains for options.steps steps; rank 0 prints a line per reported step.
inline void trainSteps(Rank &rank, const StageProgram &program,
                       const StepFacts &facts, const Options &options) {
  const LearningRate rate = learningRateOf(options);
  UpdateRuleSettings settings;
  settings.clip = options.clip;
  if (facts.computesInF16)
    settings.scaler = lossScalerNamed("torch");
  UpdateRule rule(settings);
  std::unique_ptr<Samples> samples;
  if (options.data == "synthetic")
    samples = std::make_unique<DrawnSamples>(options.seed, facts.microBatches,
                                             facts.targets, facts.limit);
  else
    samples = std::make_unique<StoredSamples>(options.data);
  openNumbers(rank, facts);
  connectLines(rank);
  Initialisation how;
  how.seed = options.seed;
  how.layers = facts.layers;
  program.initialise(rank, how);
  const cudaGraphExec_t graph = captured(rank, program, facts);
  meet(rank);

  StepNumbers numbers;
  numbers.seed = options.seed;
  std::int64_t updates = 0;
  samples->begin(1);
  Inputs inputs = inputsOf(rank, *samples);
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    const double lossScale = rule.lossScale();
    numbers.step = step;
    numbers.update = {.learningRate = learningRateAt(rate, updates + 1),
                      .beta1 = 0.9,
                      .beta2 = 0.95,
                      .epsilon = 1e-8,
                      .weightDecay = options.weightDecay,
                      .step = updates + 1};
    numbers.norm = {true, lossScale, rule.clip()};
    *rank.written = numbers;
    writeInputs(rank, inputs, lossScale);
    MTPLAN_CUDA(cudaGraphLaunch(graph, rank.stream()));
    if (step < options.steps) { // while the device computes
      samples->begin(step + 1);
      inputs = inputsOf(rank, *samples);
    }
    // The host waits for the device only here. The host then decides, like the
    // device, whether the step is skipped.
    MTPLAN_CUDA(cudaStreamSynchronize(rank.stream()));
    const std::vector<double> all = resultsOf(rank, facts);
    const UpdateDecision decision = rule.decide(step, all[0]);
    if (!decision.stop.empty())
      throw std::runtime_error(decision.stop);
    if (decision.update)
      ++updates;
    const std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    if (rank.rank > 0 || (step % options.every != 0 && step != options.steps))
      continue;
    std::printf("step %lld", static_cast<long long>(step));
    for (std::size_t i = 0; i < facts.reports.size(); ++i)
      std::printf("  %s %.9g", facts.reports[i].c_str(),
                  all[1 + i] / lossScale);
    std::printf("  norm %.6g  lr %.3g  %.1f ms  %.0f tokens/s%s\n",
                decision.norm, numbers.update.learningRate, taken.count() * 1e3,
                static_cast<double>(facts.tokens) / taken.count(),
                decision.update ? "" : "  skipped");
    std::fflush(stdout);
  }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_TRAIN_CUH

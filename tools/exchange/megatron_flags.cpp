//===- megatron_flags.cpp - Options of Megatron-LM ------------------------===//
//
// The tables follow megatron/training/arguments.py and the configuration
// classes of megatron/core, as of 2026. An option that no table lists is an
// error, because the option might change the run.
//
//===----------------------------------------------------------------------===//

#include "tools/exchange/megatron_flags.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_word.h"

namespace mtplan::tools {

namespace {

enum class Role : std::uint8_t {
  switched,   // affects the plan; takes no value
  single,     // affects the plan; takes one value
  many,       // affects the plan; takes any number of values
  irrelevant, // has no effect on the plan
  refused,    // has an effect that mtplan cannot plan
  unknown,
};

struct Option {
  Role role = Role::unknown;
  std::string_view why;
};

struct Group {
  Role role;
  std::vector<std::string_view> names;
  bool arePrefixes = false;
};

const std::vector<Group> &groups() {
  static const std::vector<Group> all = {
      {Role::switched,
       {"group-query-attention", "swiglu",
        "untie-embeddings-and-output-weights", "disable-bias-linear",
        "add-qkv-bias", "sequence-parallel",
        "account-for-embedding-in-pipeline-split",
        "account-for-loss-in-pipeline-split"}},
      {Role::switched,
       {"use-distributed-optimizer", "overlap-grad-reduce",
        "overlap-param-gather", "use-megatron-fsdp", "recompute-activations",
        "fp16", "bf16", "accumulate-allreduce-grads-in-fp32",
        "no-overlap-p2p-communication", "optimizer-cpu-offload",
        "use-tp-pp-dp-mapping", "grad-reduce-in-bf16",
        "use-rotary-position-embeddings"}},
      {Role::single,
       {"num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads",
        "kv-channels", "num-query-groups", "seq-length",
        "max-position-embeddings", "normalization", "norm-epsilon",
        "position-embedding-type", "rotary-base", "rotary-percent",
        "make-vocab-size-divisible-by", "vocab-size"}},
      {Role::single,
       {"tensor-model-parallel-size", "pipeline-model-parallel-size",
        "num-layers-per-virtual-pipeline-stage",
        "num-virtual-stages-per-pipeline-rank",
        "pipeline-model-parallel-layout", "decoder-first-pipeline-num-layers",
        "decoder-last-pipeline-num-layers", "context-parallel-size",
        "expert-model-parallel-size", "expert-tensor-parallel-size",
        "num-experts", "moe-router-topk", "moe-expert-capacity-factor",
        "moe-aux-loss-coeff"}},
      {Role::single,
       {"data-parallel-sharding-strategy",
        "num-distributed-optimizer-instances", "recompute-granularity",
        "recompute-method", "recompute-num-layers", "micro-batch-size",
        "global-batch-size", "attention-dropout", "hidden-dropout", "optimizer",
        "optimizer-offload-fraction", "ddp-bucket-size"}},
      {Role::many, {"recompute-modules", "rampup-batch-size"}},
      {Role::irrelevant,
       {"lr", "min-lr", "weight-decay", "clip-grad", "sgd-momentum",
        "train-iters", "train-samples", "seed", "data-path", "split",
        "vocab-file", "merge-file", "data-cache-path", "data-args-path",
        "per-split-data-args-path", "num-workers", "deterministic-mode"}},
      {Role::irrelevant,
       {"save", "load", "async-save", "no-load-optim", "no-load-rng",
        "no-save-optim", "no-save-rng", "finetune",
        "override-opt_param-scheduler", "override-opt-param-scheduler",
        "use-dist-ckpt", "auto-detect-ckpt-format"}},
      {Role::irrelevant,
       {"check-for-nan-in-loss-and-grad", "no-check-for-nan-in-loss-and-grad",
        "distributed-backend", "nccl-communicator-config-path", "loss-scale",
        "initial-loss-scale", "min-loss-scale", "loss-scale-window",
        "hysteresis"}},
      {Role::irrelevant,
       {"use-flash-attn", "attention-backend", "use-mcore-models",
        "transformer-impl", "spec", "no-masked-softmax-fusion",
        "no-bias-gelu-fusion", "no-bias-swiglu-fusion",
        "no-bias-dropout-fusion", "no-rope-fusion", "no-persist-layer-norm",
        "no-gradient-accumulation-fusion", "cross-entropy-loss-fusion",
        "cross-entropy-fusion-impl", "attention-softmax-in-fp32",
        "no-query-key-layer-scaling", "apply-query-key-layer-scaling",
        "apply-layernorm-1p", "qk-layernorm"}},
      {Role::irrelevant,
       {"no-position-embedding", "reset-position-ids", "reset-attention-mask",
        "eod-mask-loss", "no-create-attention-mask-in-dataloader",
        "no-mmap-bin-files", "use-cpu-initialization",
        "empty-unused-memory-level", "local-rank"}},
      {Role::irrelevant,
       {"tp-comm-overlap", "cp-comm-type", "use-precision-aware-optimizer",
        "align-grad-reduce", "no-align-grad-reduce", "no-align-param-gather",
        "no-delay-grad-reduce", "delay-grad-reduce",
        "overlap-param-gather-with-optimizer-step", "ddp-average-in-collective",
        "ddp-num-buckets", "no-scatter-gather-tensors-in-pipeline",
        "barrier-with-L1-time", "no-barrier-with-level-1-timing",
        "gradient-accumulation-fusion"}},
      {Role::irrelevant,
       {"moe-grouped-gemm", "moe-permute-fusion", "moe-router-dtype",
        "moe-pad-expert-input-to-capacity", "moe-router-pre-softmax",
        "moe-per-layer-logging", "moe-input-jitter-eps", "moe-enable-deepep",
        "profile", "use-pytorch-profiler", "disable-straggler-on-startup"}},
      {Role::irrelevant,
       {"enable-one-logger", "no-one-logger", "no-initialization",
        "perform-initialization", "skip-train", "consumed-train-samples",
        "consumed-valid-samples", "no-ckpt-fully-parallel-save",
        "enable-cuda-graph", "external-cuda-graph", "use-sharp",
        "sharp-enabled-group", "high-priority-stream-groups",
        "disable-tp-comm-overlap-ag", "disable-tp-comm-overlap-rs"}},
      {Role::irrelevant,
       {"lr-", "log-", "no-log-", "tensorboard-", "wandb-", "tokenizer-",
        "eval-", "save-", "load-", "dist-ckpt-", "exit-", "rerun-", "profile-",
        "one-logger-", "adam-", "init-method-", "weight-decay-", "inference-",
        "dataloader-"},
       true},
      {Role::irrelevant,
       {"distributed-timeout-", "ckpt-", "use-checkpoint-", "timing-",
        "straggler-", "error-injection-", "mock-", "train-data-", "valid-data-",
        "test-data-", "tp-comm-", "cuda-graph-", "rotary-", "moe-router-load-",
        "moe-aux-", "moe-z-", "moe-token-dispatcher-", "logging-", "manual-gc"},
       true},
  };
  return all;
}

struct Refusal {
  std::string_view name, why;
};

constexpr std::string_view kEightBit =
    "mtplan plans bf16, fp16 and fp32; the nearest is --bf16";

constexpr Refusal kRefused[] = {
    {"fp8-format", kEightBit},
    {"fp8-recipe", kEightBit},
    {"fp8-param-gather", kEightBit},
    {"fp4-format", kEightBit},
    {"fp4-recipe", kEightBit},
    {"use-torch-fsdp2",
     "use --use-megatron-fsdp with --data-parallel-sharding-strategy, which "
     "says what is sharded"},
    {"use-custom-fsdp", "it is now --use-megatron-fsdp"},
    {"checkpoint-activations", "it is now --recompute-activations"},
    {"batch-size", "it is now --micro-batch-size"},
    {"model-parallel-size", "it is now --tensor-model-parallel-size"},
    {"mtp-num-layers", "mtplan has no layers that predict further tokens"},
    {"multi-latent-attention", "mtplan plans multi-head and grouped attention"},
    {"encoder-num-layers", "mtplan plans models of one stack"},
    {"decoder-num-layers",
     "mtplan plans models of one stack; the nearest is --num-layers"},
    {"pipeline-model-parallel-split-rank", "mtplan plans models of one stack"},
    {"hierarchical-context-parallel-sizes",
     "mtplan has one context axis; the nearest is --context-parallel-size"},
    {"moe-layer-freq", "in mtplan all layers are alike"},
    {"moe-shared-expert-intermediate-size",
     "give a Hugging Face configuration with shared experts (qwen2_moe) "
     "instead"},
    {"distribute-saved-activations",
     "mtplan splits saved activations by --sequence-parallel"},
    {"window-size", "mtplan plans full attention"},
    {"squared-relu", "mtplan plans gelu and, with --swiglu, silu"},
    {"apply-residual-connection-post-layernorm",
     "give the model as a Hugging Face configuration instead"},
    {"use-legacy-models", "Megatron-LM's core models are planned"},
    {"cpu-offloading-num-layers", "mtplan offloads the optimizer only; the "
                                  "nearest is --optimizer-cpu-offload"},
    {"yaml-cfg", "give the options themselves"},
};

Option optionNamed(std::string_view name) {
  const auto *refusal = std::ranges::find(kRefused, name, &Refusal::name);
  if (refusal != std::end(kRefused))
    return {Role::refused, refusal->why};
  for (const Group &group : groups())
    if (std::ranges::any_of(group.names, [&](std::string_view known) {
          return group.arePrefixes ? name.starts_with(known) : name == known;
        }))
      return {group.role, {}};
  return {};
}

const std::vector<std::string> &optionNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Group &group : groups())
      if (!group.arePrefixes)
        all.insert(all.end(), group.names.begin(), group.names.end());
    return all;
  }();
  return names;
}

constexpr std::size_t kMostComplaints = 50;
constexpr std::size_t kLongestShown = 60; // characters of a quoted word

std::string shown(const std::string &word) {
  return word.size() <= kLongestShown ? word
                                      : word.substr(0, kLongestShown) + "...";
}

bool isOption(const std::string &word) {
  return word.size() > 2 && word.starts_with("--");
}

// Returns the index of the word after the first script name. Returns 0 if there
// is no script name, or if an option that affects the plan comes earlier.
std::size_t scriptEnd(const std::vector<ShellWord> &words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i].text;
    if (word.ends_with(".py"))
      return i + 1;
    Role role = isOption(word)
                    ? optionNamed(std::string_view(word).substr(2)).role
                    : Role::unknown;
    if (role == Role::switched || role == Role::single || role == Role::many)
      return 0;
  }
  return 0;
}

// Returns nothing unless the whole text is a number.
template <typename Number> std::optional<Number> parsed(std::string_view text) {
  Number number{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

} // namespace

MegatronFlags::MegatronFlags(const std::vector<ShellWord> &words,
                             std::vector<std::string> &warnings,
                             std::vector<std::string> &notes)
    : errors(notes) {
  std::size_t i = scriptEnd(words);
  for (; i < words.size(); ++i) {
    const ShellWord &word = words[i];
    if (!isOption(word.text)) {
      complain(fmt::format("line {}: \"{}\" belongs to no option", word.line,
                           shown(word.text)));
      continue;
    }
    Use use{word.text.substr(2), {}, word.line};
    std::size_t equals = use.name.find('=');
    if (equals != std::string::npos) {
      use.values.push_back(use.name.substr(equals + 1));
      use.name.resize(equals);
    }
    while (i + 1 < words.size() && !isOption(words[i + 1].text))
      use.values.push_back(words[++i].text);
    accept(std::move(use), warnings);
  }
  if (complaints > kMostComplaints)
    errors.push_back(fmt::format("{} more complaints about options",
                                 complaints - kMostComplaints));
}

void MegatronFlags::complain(std::string message) {
  if (++complaints <= kMostComplaints)
    errors.push_back(std::move(message));
}

void MegatronFlags::accept(Use use, std::vector<std::string> &warnings) {
  Option option = optionNamed(use.name);
  std::size_t wanted = option.role == Role::switched ? 0 : 1;
  switch (option.role) {
  case Role::irrelevant: {
    std::string line = fmt::format("--{}: has no effect on the plan", use.name);
    if (std::ranges::find(warnings, line) == warnings.end() &&
        warnings.size() < 2 * kMostComplaints)
      warnings.push_back(std::move(line));
    return;
  }
  case Role::refused:
    complain(fmt::format("--{}: not planned; {}", use.name, option.why));
    return;
  case Role::unknown:
    complain(
        complaints < kMostComplaints
            ? fmt::format("--{}: unknown option; the nearest known one is --{}",
                          shown(use.name),
                          base::nearestTo(use.name, optionNames()))
            : std::string());
    return;
  case Role::switched:
  case Role::single:
    if (use.values.size() != wanted) {
      complain(fmt::format("--{}: takes {}, got {}", use.name,
                           wanted == 0 ? "no value" : "one value",
                           use.values.empty() ? std::string("none")
                           : use.values.size() == 1
                               ? fmt::format("\"{}\"", shown(use.values[0]))
                               : fmt::format("{} values", use.values.size())));
      return;
    }
    break;
  case Role::many:
    break;
  }
  const Use *before = find(use.name);
  if (!before)
    uses.push_back(std::move(use));
  else if (before->values != use.values)
    complain(fmt::format(
        "--{}: given twice, as {} in line {} and as {} in line {}", use.name,
        shown(fmt::format("{}", fmt::join(before->values, " "))), before->line,
        shown(fmt::format("{}", fmt::join(use.values, " "))), use.line));
}

const MegatronFlags::Use *MegatronFlags::find(std::string_view name) const {
  auto use = std::ranges::find(uses, name, &Use::name);
  return use == uses.end() ? nullptr : &*use;
}

bool MegatronFlags::given(std::string_view name) const {
  return find(name) != nullptr;
}

std::int64_t MegatronFlags::integer(std::string_view name, std::int64_t least,
                                    std::int64_t most,
                                    std::int64_t fallback) const {
  const Use *use = find(name);
  if (!use)
    return fallback;
  auto value = parsed<std::int64_t>(use->values[0]);
  if (value && *value >= least && *value <= most)
    return *value;
  errors.push_back(
      fmt::format("--{}: must be a whole number from {} to {}, got \"{}\"",
                  name, least, most, shown(use->values[0])));
  return fallback;
}

double MegatronFlags::number(std::string_view name, double least, double most,
                             double fallback) const {
  const Use *use = find(name);
  if (!use)
    return fallback;
  auto value = parsed<double>(use->values[0]);
  if (value && *value >= least && *value <= most)
    return *value;
  errors.push_back(
      fmt::format("--{}: must be a number from {} to {}, got \"{}\"", name,
                  least, most, shown(use->values[0])));
  return fallback;
}

std::string MegatronFlags::word(std::string_view name,
                                const std::vector<std::string> &allowed,
                                const std::string &fallback) const {
  const Use *use = find(name);
  if (!use)
    return fallback;
  if (std::ranges::find(allowed, use->values[0]) != allowed.end())
    return use->values[0];
  errors.push_back(fmt::format("--{}: must be one of {}, got \"{}\"", name,
                               fmt::join(allowed, ", "),
                               shown(use->values[0])));
  return fallback;
}

std::vector<std::string> MegatronFlags::list(std::string_view name) const {
  const Use *use = find(name);
  return use ? use->values : std::vector<std::string>();
}

} // namespace mtplan::tools

//===- megatron_table.cpp - Options that Megatron-LM knows ----------------===//
//
// The tables follow megatron/training/arguments.py and the configuration
// classes of megatron/core, as of 2026. An option in no table is an error,
// because it might change the run.
//
//===----------------------------------------------------------------------===//

#include "tools/exchange/megatron_table.h"

#include <algorithm>
#include <iterator>

namespace mtplan::tools {

namespace {

constexpr std::string_view kSwitched[] = {
    "group-query-attention",
    "swiglu",
    "untie-embeddings-and-output-weights",
    "disable-bias-linear",
    "sequence-parallel",
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
    "use-distributed-optimizer",
    "overlap-grad-reduce",
    "overlap-param-gather",
    "use-megatron-fsdp",
    "recompute-activations",
    "fp16",
    "bf16",
    "accumulate-allreduce-grads-in-fp32",
    "no-overlap-p2p-communication",
    "optimizer-cpu-offload",
    "use-tp-pp-dp-mapping",
    "grad-reduce-in-bf16",
    "use-rotary-position-embeddings"};

constexpr std::string_view kSingle[] = {"num-layers",
                                        "hidden-size",
                                        "ffn-hidden-size",
                                        "num-attention-heads",
                                        "kv-channels",
                                        "num-query-groups",
                                        "seq-length",
                                        "max-position-embeddings",
                                        "normalization",
                                        "position-embedding-type",
                                        "make-vocab-size-divisible-by",
                                        "vocab-size",
                                        "tensor-model-parallel-size",
                                        "pipeline-model-parallel-size",
                                        "num-layers-per-virtual-pipeline-stage",
                                        "num-virtual-stages-per-pipeline-rank",
                                        "pipeline-model-parallel-layout",
                                        "decoder-first-pipeline-num-layers",
                                        "decoder-last-pipeline-num-layers",
                                        "context-parallel-size",
                                        "expert-model-parallel-size",
                                        "expert-tensor-parallel-size",
                                        "num-experts",
                                        "moe-router-topk",
                                        "data-parallel-sharding-strategy",
                                        "num-distributed-optimizer-instances",
                                        "recompute-granularity",
                                        "recompute-method",
                                        "recompute-num-layers",
                                        "micro-batch-size",
                                        "global-batch-size",
                                        "attention-dropout",
                                        "hidden-dropout",
                                        "optimizer",
                                        "optimizer-offload-fraction",
                                        "ddp-bucket-size"};

constexpr std::string_view kMany[] = {"recompute-modules", "rampup-batch-size"};

// Prefixes of families without an effect on the plan.
constexpr std::string_view kIrrelevantFamilies[] = {"lr-",
                                                    "log-",
                                                    "no-log-",
                                                    "tensorboard-",
                                                    "wandb-",
                                                    "tokenizer-",
                                                    "eval-",
                                                    "save-",
                                                    "load-",
                                                    "dist-ckpt-",
                                                    "exit-",
                                                    "rerun-",
                                                    "profile-",
                                                    "one-logger-",
                                                    "adam-",
                                                    "init-method-",
                                                    "weight-decay-",
                                                    "inference-",
                                                    "dataloader-",
                                                    "distributed-timeout-",
                                                    "ckpt-",
                                                    "use-checkpoint-",
                                                    "timing-",
                                                    "straggler-",
                                                    "error-injection-",
                                                    "mock-",
                                                    "train-data-",
                                                    "valid-data-",
                                                    "test-data-",
                                                    "tp-comm-",
                                                    "cuda-graph-",
                                                    "rotary-",
                                                    "moe-router-load-",
                                                    "moe-aux-",
                                                    "moe-z-",
                                                    "moe-token-dispatcher-",
                                                    "logging-",
                                                    "manual-gc"};

constexpr std::string_view kIrrelevant[] = {
    "lr",
    "min-lr",
    "weight-decay",
    "clip-grad",
    "sgd-momentum",
    "train-iters",
    "train-samples",
    "seed",
    "data-path",
    "split",
    "vocab-file",
    "merge-file",
    "data-cache-path",
    "data-args-path",
    "per-split-data-args-path",
    "num-workers",
    "deterministic-mode",
    "save",
    "load",
    "async-save",
    "no-load-optim",
    "no-load-rng",
    "no-save-optim",
    "no-save-rng",
    "finetune",
    "override-opt_param-scheduler",
    "override-opt-param-scheduler",
    "use-dist-ckpt",
    "auto-detect-ckpt-format",
    "check-for-nan-in-loss-and-grad",
    "no-check-for-nan-in-loss-and-grad",
    "distributed-backend",
    "nccl-communicator-config-path",
    "loss-scale",
    "initial-loss-scale",
    "min-loss-scale",
    "loss-scale-window",
    "hysteresis",
    "norm-epsilon",
    "use-flash-attn",
    "attention-backend",
    "use-mcore-models",
    "transformer-impl",
    "spec",
    "no-masked-softmax-fusion",
    "no-bias-gelu-fusion",
    "no-bias-swiglu-fusion",
    "no-bias-dropout-fusion",
    "no-rope-fusion",
    "no-persist-layer-norm",
    "no-gradient-accumulation-fusion",
    "cross-entropy-loss-fusion",
    "cross-entropy-fusion-impl",
    "attention-softmax-in-fp32",
    "no-query-key-layer-scaling",
    "apply-query-key-layer-scaling",
    "apply-layernorm-1p",
    "qk-layernorm",
    "no-position-embedding",
    "reset-position-ids",
    "reset-attention-mask",
    "eod-mask-loss",
    "no-create-attention-mask-in-dataloader",
    "no-mmap-bin-files",
    "use-cpu-initialization",
    "empty-unused-memory-level",
    "local-rank",
    "tp-comm-overlap",
    "cp-comm-type",
    "use-precision-aware-optimizer",
    "align-grad-reduce",
    "no-align-grad-reduce",
    "no-align-param-gather",
    "no-delay-grad-reduce",
    "delay-grad-reduce",
    "overlap-param-gather-with-optimizer-step",
    "ddp-average-in-collective",
    "ddp-num-buckets",
    "no-scatter-gather-tensors-in-pipeline",
    "barrier-with-L1-time",
    "no-barrier-with-level-1-timing",
    "gradient-accumulation-fusion",
    "moe-grouped-gemm",
    "moe-permute-fusion",
    "moe-router-dtype",
    "moe-router-pre-softmax",
    "moe-per-layer-logging",
    "moe-input-jitter-eps",
    "moe-enable-deepep",
    "profile",
    "use-pytorch-profiler",
    "disable-straggler-on-startup",
    "enable-one-logger",
    "no-one-logger",
    "no-initialization",
    "perform-initialization",
    "skip-train",
    "consumed-train-samples",
    "consumed-valid-samples",
    "no-ckpt-fully-parallel-save",
    "enable-cuda-graph",
    "external-cuda-graph",
    "use-sharp",
    "sharp-enabled-group",
    "high-priority-stream-groups",
    "disable-tp-comm-overlap-ag",
    "disable-tp-comm-overlap-rs"};

struct Refusal {
  std::string_view name, why;
};

constexpr std::string_view kEightBit =
    "mtplan plans bf16, fp16 and fp32; the nearest is --bf16";

constexpr Refusal kRefused[] = {
    Refusal{"fp8-format", kEightBit},
    Refusal{"fp8-recipe", kEightBit},
    Refusal{"fp8-param-gather", kEightBit},
    Refusal{"fp4-format", kEightBit},
    Refusal{"fp4-recipe", kEightBit},
    Refusal{"use-torch-fsdp2", "use --use-megatron-fsdp with "
                               "--data-parallel-sharding-strategy, which "
                               "says what is sharded"},
    Refusal{"use-custom-fsdp", "it is now --use-megatron-fsdp"},
    Refusal{"checkpoint-activations", "it is now --recompute-activations"},
    Refusal{"batch-size", "it is now --micro-batch-size"},
    Refusal{"model-parallel-size", "it is now --tensor-model-parallel-size"},
    Refusal{"mtp-num-layers", "mtplan has no layers that predict further "
                              "tokens"},
    Refusal{"multi-latent-attention", "mtplan plans multi-head and grouped "
                                      "attention"},
    Refusal{"encoder-num-layers", "mtplan plans models of one stack"},
    Refusal{"decoder-num-layers", "mtplan plans models of one stack; the "
                                  "nearest is --num-layers"},
    Refusal{"pipeline-model-parallel-split-rank",
            "mtplan plans models of one stack"},
    Refusal{"hierarchical-context-parallel-sizes",
            "mtplan has one context axis; the nearest is "
            "--context-parallel-size"},
    Refusal{"moe-layer-freq", "in mtplan all layers are alike"},
    Refusal{"moe-shared-expert-intermediate-size",
            "mtplan has no shared experts"},
    Refusal{"distribute-saved-activations",
            "mtplan splits saved activations by --sequence-parallel"},
    Refusal{"window-size", "mtplan plans full attention"},
    Refusal{"squared-relu", "mtplan plans gelu and, with --swiglu, silu"},
    Refusal{"apply-residual-connection-post-layernorm",
            "give the model as a Hugging Face configuration instead"},
    Refusal{"use-legacy-models", "Megatron-LM's core models are planned"},
    Refusal{"cpu-offloading-num-layers",
            "mtplan offloads the optimizer only; the nearest is "
            "--optimizer-cpu-offload"},
    Refusal{"yaml-cfg", "give the options themselves"},
};

template <typename Names>
bool holds(const Names &names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

} // namespace

MegatronOption megatronOption(std::string_view name) {
  if (holds(kSwitched, name))
    return {MegatronRole::switched, {}};
  if (holds(kSingle, name))
    return {MegatronRole::single, {}};
  if (holds(kMany, name))
    return {MegatronRole::many, {}};
  const auto *refusal = std::ranges::find(kRefused, name, &Refusal::name);
  if (refusal != std::end(kRefused))
    return {MegatronRole::refused, refusal->why};
  if (holds(kIrrelevant, name) ||
      std::ranges::any_of(kIrrelevantFamilies, [&](std::string_view family) {
        return name.starts_with(family);
      }))
    return {MegatronRole::irrelevant, {}};
  return {};
}

const std::vector<std::string> &megatronNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    all.insert(all.end(), std::begin(kSwitched), std::end(kSwitched));
    all.insert(all.end(), std::begin(kSingle), std::end(kSingle));
    all.insert(all.end(), std::begin(kMany), std::end(kMany));
    all.insert(all.end(), std::begin(kIrrelevant), std::end(kIrrelevant));
    return all;
  }();
  return names;
}

} // namespace mtplan::tools

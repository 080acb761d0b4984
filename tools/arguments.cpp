//===- arguments.cpp - The command line of `mtplan` -----------------------===//
//
// Every flag is taken as text, so that request.cpp can judge all of them.
//
//===----------------------------------------------------------------------===//

#include <ostream>

#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "tools/parse_error.h"

namespace mtplan::tools {

namespace {

constexpr const char *kExamples = R"(
Examples:
  # The fastest way to train GPT-2 8.3B on one DGX-2H with 8 GPUs
  mtplan examples/gpt2-8.3b.json --gpus 8 --hardware dgx-2h

  # The same facts for a script, and the program that each rank runs
  mtplan examples/llama-3-8b.json --json
  mtplan examples/llama-3-8b.json --emit mlir --stage partitioned

  # The same training step as a CUDA and NCCL program to read, build and change
  mtplan examples/tiny-gpt2.json --gpus 8 --emit cuda -o prog

  # Decide something yourself, leave the rest open, and prove the result
  mtplan examples/gpt2-1.2b.json --tp 4 --pin 'h.*.mlp.fc1=column' \
    --pin 'wte.weight=[tp,-]' --verify

  # A machine file from what was measured on yours
  mtplan fit-hardware measurements.json -o machine.json

Exit status: 0 a plan was found; 1 nothing fits, or a proof failed; 2 bad input.
)";

void addFlags(CLI::App &app, Flags &flags) {
  app.add_option("MODEL", flags.model,
                 "Hugging Face config.json, mtplan's own JSON, or textual IR");
  auto text = [&](const char *name, Flags::Text &to, const char *what,
                  const char *type) {
    app.add_option(name, to, what)->type_name(type);
  };
  text("--hardware", flags.hardware,
       "preset or machine file (default dgx-h100)", "NAME|FILE");
  text("--scale-network", flags.scaleNetwork,
       "multiply the rates of the network between nodes", "FACTOR");
  text("--software", flags.software,
       "whose kernels and overlaps: preset or file (default mtplan)",
       "NAME|FILE");
  text("--gpus", flags.gpus, "GPUs in all (default: one node)", "N");
  text("--tp", flags.tp, "fix the tensor-parallel ranks", "N");
  text("--dp", flags.dp, "fix the data-parallel replicas", "N");
  text("--pp", flags.pp, "pipeline stages (default 1)", "N|LIST|any");
  text("--cp", flags.cp, "context ranks, which split the sequence (default 1)",
       "N|any");
  text("--ep", flags.ep, "replicas that share one set of experts (default 1)",
       "N|any");
  text("--schedule", flags.schedule,
       "of the pipeline: 1f1b (default), interleaved, zero-bubble or gpipe",
       "WORD|any");
  text("--vp", flags.virtualStages, "virtual stages of an interleaved stage",
       "N|any");
  text("--stage-layers", flags.stageLayers,
       "layers of each part of the pipeline, instead of dealt out evenly; any: "
       "as is best",
       "LIST|any");
  text("--zero", flags.zero, "ZeRO stage, 0 (default) to 3", "N|any");
  text("--zero-ranks", flags.zeroRanks,
       "replicas that share what ZeRO splits (default: all; any: also those of "
       "a node)",
       "N|any");
  text("--recompute", flags.recompute,
       "none (default), selective: the core of attention, or full: layers keep "
       "only what they are handed",
       "WORD|any");
  text("--recompute-layers", flags.recomputeLayers,
       "how many layers of each part recompute in full (default: all)",
       "N|any");
  text(
      "--offload", flags.offload,
      "optimizer: its state is in the host's memory and updated there, or none "
      "(default)",
      "WORD|any");
  text(
      "--overlap", flags.overlap,
      "what runs beside compute: on, off, or some of gather, reduce, sends and "
      "host (default: as --software has it, else off)",
      "LIST");
  text("--tiles", flags.tiles,
       "under ZeRO 3: gather and use the largest weight in so many tiles, one "
       "after another, and others in tiles no larger (default 1)",
       "N|LIST|any");
  text("--micro-batch", flags.microBatch,
       "fix the samples a replica takes at once", "N");
  text("--global-batch", flags.globalBatch,
       "samples per step (default: the model file's, or 512)", "N");
  text("--seq", flags.sequence, "positions per sample, instead of the model's",
       "N");
  text("--layers", flags.layers, "repeated blocks, instead of the model's",
       "N");
  text("--precision", flags.precision,
       "bf16, fp16, fp32, or fp8: products of layers in fp8, the rest in bf16 "
       "(default: the machine's)",
       "WORD");
  text("--splits", flags.splits,
       "what tp may split: column, row, head, vocab, sequence, batch, expert, "
       "hidden (default: all but hidden)",
       "LIST");
  text("--sequence-parallel", flags.sequenceParallel,
       "on or off: adds or removes sequence from the splits", "WORD");
  app.add_option("--pin", flags.pins,
                 "PATTERN=VALUE: decide one operator or parameter; repeatable")
      ->type_name("PIN")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  text("--memory-gib", flags.memoryGib,
       "memory of a GPU, instead of the machine's", "GIB");
  text("--objective", flags.objective,
       "what is to be least: step-time (default), memory of a GPU, or gpus, at "
       "most --gpus of them",
       "WORD");
  text("--max-step-time", flags.maxStepTime, "no plan that is slower",
       "SECONDS");
  text("--budget-seconds", flags.budgetSeconds,
       "stop searching then, and say how far the plan may be from the best",
       "SECONDS");
  text("--top", flags.top, "plans to list (default 5)", "K");
  app.add_flag("--json", flags.json, "print JSON (docs/json-output.md)");
  app.add_flag("--verify", flags.verify,
               "prove the plan: run it, shrunk, on all ranks and on one");
  text("--constraints", flags.constraints,
       "any of the flags above, as JSON (docs/plan-files.md)", "FILE");
  text("--save", flags.save, "also write the plan, to load it again", "FILE");
  text("-o,--output", flags.output,
       "also compile the plan, for mtrun to train it", "FOLDER");
  text("--load", flags.load,
       "print the plan that was saved; with --hardware or --scale-network, "
       "price it there",
       "FILE");
  text("--import", flags.importFile,
       "price a Megatron-LM command line, DeepSpeed JSON or torchtitan TOML as "
       "it stands",
       "FILE");
  text(
      "--export", flags.exportKind,
      "print the plan for others: megatron, deepspeed, torchtitan, accelerate, "
      "hf-tp-plan, jax, shardy, dtensor, mesh-tensorflow; or as constraints",
      "WORD");
  text(
      "--emit", flags.emit,
      "mlir: print the IR instead of the report; cuda: with -o, also write the "
      "plan as a CUDA and NCCL program that stands alone",
      "WORD");
  text(
      "--stage", flags.stage,
      "of --emit mlir: model, differentiated, planned (default) or partitioned",
      "NAME");
  app.add_flag("--explain", flags.explain,
               "say of every mesh which cost or limit decided, a line each");
  app.add_option("--compare", flags.compare,
                 "say what two saved plans differ in, and which is faster why")
      ->type_name("FILE FILE")
      ->expected(2);
  text("--trace", flags.trace,
       "also write the simulated step for Perfetto or chrome://tracing",
       "FILE");
  text("--report", flags.report, "also write the plan as a web page", "FILE");
  text("--dot", flags.dot, "also draw the graph for Graphviz", "FILE");
  app.add_flag("--timings", flags.timings,
               "say how long the search took; such output differs each time");
}

} // namespace

std::optional<Flags> parseArguments(const std::vector<std::string> &arguments,
                                    std::ostream &out, std::ostream &err,
                                    int &exitCode) {
  Flags flags;
  CLI::App app{"Finds the fastest way to train a transformer on given "
               "hardware, and proves it."};
  app.name("mtplan");
  app.footer(kExamples);
  app.set_version_flag("--version", "mtplan " MTPLAN_VERSION);
  addFlags(app, flags);
  app.final_callback([&] {
    if (app.count("MODEL") == 0 && !flags.load && flags.compare.empty())
      throw CLI::RequiredError("MODEL");
  });
  if (!parseOrSay(app, arguments, "One model is planned", out, err, exitCode))
    return std::nullopt;
  return flags;
}

} // namespace mtplan::tools

//===- ckpt_verbs.cpp - `mtrun ckpt ...` ----------------------------------===//

#include "tools/run/ckpt_verbs.h"

#include <array>

#include <CLI/CLI.hpp>

#include "runtime/plan/nearest_word.h"
#include "tools/run/ckpt_convert.h"
#include "tools/run/ckpt_text.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

CLI::App *describeCkpt(CLI::App &app, CkptFlags &flags) {
  CLI::App *ckpt = app.add_subcommand(
      "ckpt", "looks at checkpoints and weights, and converts them");
  ckpt->require_subcommand(1);
  auto verb = [&](const char *name, const char *what) {
    CLI::App *one = ckpt->add_subcommand(name, what);
    one->add_option("PATH", flags.from,
                    "checkpoint, folder of checkpoints, safetensors of Hugging "
                    "Face, or model of llm.c")
        ->required()
        ->type_name("");
    return one;
  };
  verb("info", "what it is and holds")
      ->add_flag("--tensors", flags.tensors, "lists them");
  verb("verify", "reads everything and holds it against its checksums");
  verb("diff", "tensors that are not the same in another")
      ->add_option("OTHER", flags.to)
      ->required()
      ->type_name("");
  CLI::App *convert =
      verb("convert", "weights of one kind to another: into a checkpoint, or "
                      "out of one");
  convert->add_option("TO", flags.to, "folder, or file for llm.c")
      ->required()
      ->type_name("");
  convert
      ->add_option("--to", flags.toFormat,
                   "mtplan, huggingface or llm.c (out of a checkpoint "
                   "huggingface, else mtplan)")
      ->type_name("WORD");
  convert
      ->add_option("--type", flags.type,
                   "fp32, bf16, fp16 or fp64 (as they are)")
      ->type_name("WORD");
  convert
      ->add_option("--like", flags.like,
                   "takes names, order, types and what is no parameter from "
                   "these files")
      ->type_name("PATH");
  convert
      ->add_option("--family", flags.family,
                   "names its tensors as this one's (what fits)")
      ->type_name("WORD");
  convert
      ->add_option("--heads", flags.heads,
                   "of attention: llm.c's file says it, weights do not")
      ->type_name("N");
  convert
      ->add_option("--shard-bytes", flags.shardBytes,
                   "largest file, unless one tensor is larger (5000000000)")
      ->type_name("N");
  return ckpt;
}

CkptAnswer runCkpt(const CLI::App &ckpt, CkptFlags flags) {
  for (std::string *path : {&flags.from, &flags.to, &flags.like}) {
    // "kept/" would make "kept//step-00000000".
    while (path->size() > 1 && path->back() == '/')
      path->pop_back();
  }
  const std::string verb = ckpt.get_subcommands().front()->get_name();
  const bool takesTwo = verb == "diff" || verb == "convert";
  if (flags.from.empty() || (takesTwo && flags.to.empty()))
    throw BadInput("an empty path names nothing");
  if (verb == "info")
    return {ckptInfo(flags.from, flags.tensors), true};
  if (verb == "verify")
    return ckptVerify(flags.from);
  if (verb == "diff")
    return ckptDiff(flags.from, flags.to);
  return {ckptConvert(flags), true};
}

} // namespace mtplan::tools

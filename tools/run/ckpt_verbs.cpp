//===- ckpt_verbs.cpp - `mtrun ckpt ...` ----------------------------------===//

#include "tools/run/ckpt_verbs.h"

#include <array>

#include <CLI/CLI.hpp>

#include "base/nearest_word.h"
#include "tools/run/ckpt_convert.h"
#include "tools/run/ckpt_text.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

CLI::App *describeCkpt(CLI::App &app, CkptFlags &flags) {
  CLI::App *ckpt =
      app.add_subcommand("ckpt", "inspect and convert checkpoints and weights");
  ckpt->require_subcommand(1);
  auto verb = [&](const char *name, const char *what) {
    CLI::App *one = ckpt->add_subcommand(name, what);
    one->add_option("PATH", flags.from,
                    "checkpoint, folder of checkpoints, Hugging Face "
                    "safetensors, or llm.c model")
        ->required()
        ->type_name("");
    return one;
  };
  verb("info", "print kind, step and contents")
      ->add_flag("--tensors", flags.tensors, "list the tensors");
  verb("verify", "check all files against their checksums");
  verb("diff", "print the tensors that differ between two")
      ->add_option("OTHER", flags.to)
      ->required()
      ->type_name("");
  CLI::App *convert =
      verb("convert", "convert weights into a checkpoint, or out of one");
  convert->add_option("TO", flags.to, "folder, or file for llm.c")
      ->required()
      ->type_name("");
  convert
      ->add_option("--to", flags.toFormat,
                   "target format: mtplan, huggingface or llm.c (default: "
                   "huggingface from a checkpoint, else mtplan)")
      ->type_name("WORD");
  convert
      ->add_option(
          "--type", flags.type,
          "element type: fp32, bf16, fp16 or fp64 (default: unchanged)")
      ->type_name("WORD");
  convert
      ->add_option("--like", flags.like,
                   "take names, order, types and other tensors from these "
                   "files")
      ->type_name("PATH");
  convert
      ->add_option("--family", flags.family,
                   "model family that names the tensors (default: detected)")
      ->type_name("WORD");
  convert
      ->add_option(
          "--heads", flags.heads,
          "attention heads, which llm.c's file holds and weights do not")
      ->type_name("N");
  convert
      ->add_option("--shard-bytes", flags.shardBytes,
                   "largest file, unless one tensor is larger (default: "
                   "5000000000)")
      ->type_name("N");
  return ckpt;
}

CkptAnswer runCkpt(const CLI::App &ckpt, CkptFlags flags) {
  for (std::string *path : {&flags.from, &flags.to, &flags.like}) {
    // A trailing slash would give paths such as "kept//step-00000000".
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

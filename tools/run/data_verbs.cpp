//===- data_verbs.cpp - `mtrun data ...` ----------------------------------===//

#include "tools/run/data_verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/data/data_command.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

using namespace runtime;

CLI::App *describeData(CLI::App &app, DataFlags &flags) {
  CLI::App *data =
      app.add_subcommand("data", "inspect and convert token files");
  data->require_subcommand(1);
  auto verb = [&](const char *name, const char *what) {
    CLI::App *one = data->add_subcommand(name, what);
    one->add_option("FILE", flags.file)->required()->type_name("");
    one->add_option("--format", flags.format, tokenFormatNames())
        ->type_name("WORD");
    return one;
  };
  verb("info", "print format, sizes and checksums")
      ->add_option("--sequence", flags.sequence,
                   "tokens per sample: also print the number of samples")
      ->type_name("N");
  verb("check", "read every token")
      ->add_option("--vocabulary", flags.vocabulary,
                   "vocabulary size that every token must be below")
      ->type_name("N");
  verb("convert", "write Megatron-LM's .bin and .idx")
      ->add_option("TO", flags.to)
      ->required()
      ->type_name("");
  CLI::App *steps = verb("steps", "write the samples of a plan, step by step, "
                                  "for a stand-alone program");
  steps->add_option("PLAN", flags.steps.plan)->required()->type_name("");
  steps->add_option("TO", flags.to)->required()->type_name("");
  steps
      ->add_option("--steps", flags.steps.steps,
                   fmt::format("number of training steps (default: {})",
                               flags.steps.steps))
      ->type_name("N");
  steps
      ->add_option("--seed", flags.steps.seed,
                   fmt::format("seed of the sample order (default: {})",
                               flags.steps.seed))
      ->type_name("N");
  return data;
}

std::string runData(const CLI::App &data, const DataFlags &flags) {
  std::optional<TokenFormat> format;
  if (!flags.format.empty() && !(format = tokenFormatNamed(flags.format)))
    throw BadInput("--format " + flags.format + ": must be one of " +
                   tokenFormatNames());
  const std::string verb = data.get_subcommands().front()->get_name();
  if (verb == "info")
    return dataInfo(flags.file, format, flags.sequence);
  if (verb == "check")
    return dataCheck(flags.file, format, flags.vocabulary);
  if (verb == "steps")
    return writeSteps(flags.file, format, flags.to, flags.steps);
  return dataConvert(flags.file, format, flags.to, {});
}

} // namespace mtplan::tools

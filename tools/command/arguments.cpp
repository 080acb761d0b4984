//===- arguments.cpp - The command line of `mtplan` -----------------------===//
//
// CLI11 takes every flag as text. The readers of the flags' rows check the
// texts, so that all faults are reported together, and so that a constraints
// file goes through the same checks.
//
//===----------------------------------------------------------------------===//

#include <ostream>

#include <CLI/CLI.hpp>

#include "tools/command/command.h"
#include "tools/text/parse_error.h"

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

void addFlag(CLI::App &app, const FlagRow &row, Flags &flags) {
  const std::string key = row.shortName();
  CLI::Option *option = nullptr;
  switch (row.value.kind) {
  case FlagKind::onOrAbsent:
    option = app.add_flag(row.name, flags.switches[key], row.help);
    break;
  case FlagKind::list:
    option = app.add_option(row.name, flags.lists[key], row.help)
                 ->expected(1)
                 ->allow_extra_args(false)
                 ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    break;
  case FlagKind::pair:
    option = app.add_option(row.name, flags.lists[key], row.help)->expected(2);
    break;
  default:
    option = app.add_option(row.name, flags.texts[key], row.help);
  }
  option->group(row.group);
  if (row.value.kind != FlagKind::onOrAbsent)
    option->type_name(row.type);
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
  // Both flags are added last: groups are printed in the order they are added.
  app.set_help_flag();
  for (const FlagRow &row : flagRows())
    addFlag(app, row, flags);
  app.set_help_flag("-h,--help", "print this help")->group("Output");
  app.set_version_flag("--version", "mtplan " MTPLAN_VERSION,
                       "print the version")
      ->group("Output");
  app.final_callback([&] {
    if (!flags.find("MODEL") && !flags.find("--load") &&
        flags.list("--compare").empty())
      throw CLI::RequiredError("MODEL");
  });
  if (!parseOrSay(app, arguments, "mtplan takes one model", out, err, exitCode))
    return std::nullopt;
  return flags;
}

} // namespace mtplan::tools

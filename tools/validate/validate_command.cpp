//===- validate_command.cpp - The command `mtplan-validate` ---------------===//

#include "tools/validate/validate_command.h"

#include <ostream>

#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "tools/text_file.h"
#include "tools/validate/accuracy_text.h"
#include "tools/validate/beat.h"

namespace mtplan::tools {

namespace {

struct ValidateFlags {
  std::string csv, report, svg;
  std::vector<std::string> only;
  bool json = false, beat = false;
};

void addFlags(CLI::App &app, ValidateFlags &flags) {
  app.add_option("CSV", flags.csv,
                 "published runs, columns as docs/accuracy/throughput.csv")
      ->required();
  app.add_flag("--json", flags.json, "print JSON");
  app.add_option("--report", flags.report, "also write a page of Markdown")
      ->type_name("FILE");
  app.add_option("--svg", flags.svg, "also draw predicted against measured")
      ->type_name("FILE");
  app.add_flag("--beat", flags.beat,
               "instead, plan each model on its cluster with everything open, "
               "and compare with the published runs, all by our prices");
  app.add_option("--only", flags.only,
                 "rows whose id starts with this; repeatable")
      ->type_name("TEXT")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string baseName(const std::string &path) {
  return path.substr(path.find_last_of('/') + 1);
}

bool isAskedFor(const RunRow &row, const std::vector<std::string> &only) {
  for (const std::string &start : only)
    if (row.id.starts_with(start))
      return true;
  return only.empty();
}

} // namespace

int runValidate(const std::vector<std::string> &arguments, std::ostream &out,
                std::ostream &err) {
  ValidateFlags flags;
  CLI::App app{"Prices published training runs as they stand, and says how far "
               "off the prices are."};
  app.name("mtplan-validate");
  addFlags(app, flags);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success &success) {
    app.exit(success, out, err);
    return kDone;
  } catch (const CLI::ParseError &error) {
    err << "error: " << error.what()
        << "\nmtplan-validate --help lists the flags\n";
    return kBadInput;
  }

  std::vector<std::string> errors, faults;
  std::vector<PricedRow> rows;
  std::vector<RunRow> asked;
  if (std::optional<std::string> text = readTextFile(flags.csv, errors)) {
    RowPricer pricer;
    for (const RunRow &row : readRows(*text, faults))
      if (isAskedFor(row, flags.only))
        asked.push_back(row);
    if (!flags.beat)
      for (const RunRow &row : asked)
        rows.push_back(pricer.price(row));
  }
  if (flags.beat && (flags.json || !flags.report.empty() || !flags.svg.empty()))
    errors.emplace_back("--beat prints a table: give it without --json, "
                        "--report and --svg");
  if (errors.empty() && !flags.report.empty())
    writeTextFile(
        flags.report,
        accuracyMarkdown(rows, baseName(flags.csv), baseName(flags.svg)),
        errors);
  if (errors.empty() && !flags.svg.empty())
    writeTextFile(flags.svg, accuracySvg(rows), errors);
  // Rows that cannot be read are told, and the others priced.
  for (const std::string &fault : faults)
    err << "error: " << flags.csv << ": " << fault << '\n';
  for (const std::string &error : errors)
    err << "error: " << error << '\n';
  if (!errors.empty())
    return kBadInput;
  if (flags.beat)
    out << beatText(beat(asked));
  else
    out << (flags.json ? accuracyJson(rows) : accuracyText(rows));
  return faults.empty() ? kDone : kBadInput;
}

} // namespace mtplan::tools

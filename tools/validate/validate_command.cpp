//===- validate_command.cpp - The command `mtplan-validate` ---------------===//

#include "tools/validate/validate_command.h"

#include <algorithm>
#include <charconv>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/data/files.h"
#include "tools/text/command_line.h"
#include "tools/text/text_file.h"
#include "tools/validate/accuracy_text.h"
#include "tools/validate/beat.h"
#include "tools/validate/few_shot.h"
#include "tools/validate/intervals.h"
#include "tools/validate/memory_text.h"

namespace mtplan::tools {

namespace {

struct ValidateFlags {
  std::vector<std::string> csvs;
  std::string report, svg;
  std::string group;
  std::vector<std::string> only;
  bool json = false, beat = false, memory = false, intervals = false;
  std::optional<std::size_t> fewShot;
  std::string software;
};

void addFlags(CLI::App &app, ValidateFlags &flags) {
  app.add_option("CSV", flags.csvs,
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
  app.add_flag("--memory", flags.memory,
               "compare the peak memory of a GPU (column peak_memory_GiB), not "
               "the time of a step");
  app.add_flag("--intervals", flags.intervals,
               "instead, print how far measured steps are from predictions, by "
               "software and device, and how often such intervals hold");
  app.add_option("--few-shot", flags.fewShot,
                 "instead, fit the software of each source to this many of its "
                 "runs on small clusters, and predict the others")
      ->type_name("K");
  app.add_option("--software", flags.software,
                 "the preset or file that prices all runs, or from which "
                 "--few-shot starts (default: each source's own)")
      ->type_name("NAME|FILE");
  app.add_option("--group", flags.group,
                 "with --beat, only part N of M of the models and clusters")
      ->type_name("N/M");
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

std::optional<BeatPart> partOf(const std::string &text) {
  BeatPart part;
  if (text.empty())
    return part;
  auto [slash, error] =
      std::from_chars(text.data(), text.data() + text.size(), part.part);
  const char *end = text.data() + text.size();
  if (error != std::errc() || slash == end || *slash != '/')
    return std::nullopt;
  auto [last, other] = std::from_chars(slash + 1, end, part.parts);
  if (other != std::errc() || last != end || part.part < 1 ||
      part.part > part.parts)
    return std::nullopt;
  return part;
}

// Prints each result as soon as its search ends, because searches take long.
std::vector<PlanComparison> printBeaten(const std::vector<RunRow> &rows,
                                        BeatPart part, std::ostream &out) {
  std::vector<PlanComparison> all =
      beat(rows, part,
           [&](const PlanComparison &one, std::size_t i, std::size_t count) {
             out << '[' << i + 1 << '/' << count << "] " << beatLine(one)
                 << std::endl;
           });
  out << '\n' << beatTotals(all);
  return all;
}

} // namespace

int runValidate(const std::vector<std::string> &arguments, std::ostream &out,
                std::ostream &err) {
  ValidateFlags flags;
  CLI::App app{"Prices published training runs as they stand, and says how far "
               "off the prices are."};
  app.name("mtplan-validate");
  addFlags(app, flags);
  int exitCode = kDone;
  if (!parseOrReport(app, arguments, "files of runs are taken", out, err,
                     exitCode))
    return exitCode;

  std::vector<std::string> errors, faults;
  std::optional<BeatPart> part = partOf(flags.group);
  if (!part)
    errors.push_back("--group: must be N/M with N from 1 to M, but is \"" +
                     flags.group + '"');
  else if (!flags.beat && !flags.group.empty())
    errors.emplace_back("--group goes with --beat");
  if (flags.beat && (flags.json || !flags.svg.empty()))
    errors.emplace_back("--beat prints lines and writes a page: give it "
                        "without --json and --svg");
  if (flags.fewShot &&
      (flags.json || flags.beat || !flags.report.empty() || !flags.svg.empty()))
    errors.emplace_back("--few-shot prints tables: give it without --json, "
                        "--report, --svg and --beat");
  if (flags.intervals &&
      (flags.json || flags.beat || flags.memory || flags.fewShot ||
       !flags.report.empty() || !flags.svg.empty()))
    errors.emplace_back("--intervals prints tables: give it without --json, "
                        "--report, --svg, --beat, --memory and --few-shot");
  if (flags.memory &&
      (flags.json || flags.beat || !flags.report.empty() || !flags.svg.empty()))
    errors.emplace_back("--memory prints tables: give it without --json, "
                        "--report, --svg and --beat");
  if (flags.beat && !flags.software.empty())
    errors.emplace_back("--beat prices each run with its own software: give it "
                        "without --software");
  if (!flags.software.empty()) {
    try {
      planner::loadSoftware(flags.software);
    } catch (const planner::SoftwareError &error) {
      addLines(error.what(), flags.software, errors);
    }
  }
  runtime::NamedFiles files;
  for (const std::string &csv : flags.csvs)
    if (csv != "-") // standard input
      files.read("CSV", csv);
  for (const auto &[flag, file] :
       {std::pair("--report", flags.report), std::pair("--svg", flags.svg)})
    if (const std::string why = files.write(flag, file); !why.empty())
      errors.push_back(fmt::format("{}: {} {}", flag, file, why));
  if (flags.csvs.size() > 1 && !(flags.report.empty() && flags.svg.empty()))
    errors.emplace_back("--report and --svg describe one file of runs");
  std::vector<RunRow> asked;
  for (const std::string &csv : flags.csvs) {
    std::vector<std::string> found;
    if (std::optional<std::string> text;
        errors.empty() && (text = readTextFile(csv, errors)))
      for (const RunRow &row : readRows(*text, found))
        if (isAskedFor(row, flags.only))
          asked.push_back(row);
    for (const std::string &fault : found)
      faults.push_back(csv + ": " + fault);
  }

  const Quantity quantity =
      flags.memory ? Quantity::peakMemory : Quantity::stepTime;
  bool isBeaten = true;
  std::string page;
  std::vector<PricedRow> rows;
  if (errors.empty() && flags.beat) {
    std::vector<PlanComparison> all = printBeaten(asked, *part, out);
    isBeaten = std::ranges::all_of(all, [](const PlanComparison &one) {
      return one.verdict() != PlanComparison::Verdict::slower &&
             (one.found || !one.fitting);
    });
    page = beatMarkdown(all, baseName(flags.csvs.front()));
  } else if (errors.empty() && flags.fewShot) {
    out << fewShotText(
        fewShot(asked, *flags.fewShot, flags.software, quantity));
  } else if (errors.empty()) {
    RowPricer pricer(flags.software);
    rows = pricesOf(asked, pricer, quantity);
    if (!flags.report.empty())
      page = accuracyMarkdown(rows, baseName(flags.csvs.front()),
                              baseName(flags.svg));
  }
  if (errors.empty() && !flags.report.empty())
    writeTextFile(flags.report, page, errors);
  if (errors.empty() && !flags.svg.empty())
    writeTextFile(flags.svg, accuracySvg(rows), errors);
  for (const std::string &fault : faults)
    err << "error: " << fault << '\n';
  if (!errors.empty())
    return printErrors(errors, err);
  if (!flags.beat && !flags.fewShot)
    out << (flags.json        ? accuracyJson(rows)
            : flags.intervals ? intervalsText(rows)
            : flags.memory    ? memoryText(rows)
                              : accuracyText(rows));
  if (!faults.empty())
    return kBadInput;
  return isBeaten ? kDone : kNothingFits;
}

} // namespace mtplan::tools

//===- fit_software.cpp - `mtplan fit-software` ---------------------------===//

#include <filesystem>
#include <optional>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "planner/machine/machine_json.h"
#include "runtime/data/files.h"
#include "tools/command/command.h"
#include "tools/runs/layouts.h"
#include "tools/runs/software_fit.h"
#include "tools/text/command_line.h"
#include "tools/text/table.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

namespace {

constexpr const char *kFooter = R"(
Examples:
  # The columns of the file, and what the figures mean: docs/fitting-software.md
  mtplan fit-software runs.csv --hardware dgx-h100 -o ours.json
  mtplan examples/llama-3-8b.json --gpus 64 --software ours.json
  # Five more layouts to measure
  mtplan fit-software runs.csv --hardware dgx-h100 -o ours.json --suggest 5

Exit status: 0 a software file was fitted; 2 bad input.
)";

struct FitFlags {
  std::string runs, base, hardware, output;
  std::size_t suggest = 0;
};

void addFlags(CLI::App &app, FitFlags &flags) {
  app.add_option("RUNS", flags.runs,
                 "measured runs, columns as docs/accuracy/throughput.csv")
      ->required();
  app.add_option("--base", flags.base,
                 "the preset or file from which the fit starts (default: the "
                 "preset that explains the runs best)")
      ->type_name("NAME|FILE");
  app.add_option("--hardware", flags.hardware,
                 "the machine of all runs (default: by each run's hardware)")
      ->type_name("NAME|FILE");
  app.add_option("-o,--output", flags.output,
                 "write the software file there, not to standard output")
      ->type_name("FILE");
  app.add_option("--suggest", flags.suggest,
                 "also print this many layouts whose times would improve the "
                 "fit most")
      ->type_name("N");
}

/// Holds the runs that can be priced.
struct MeasuredRuns {
  std::vector<PricedRow> rows;
  std::vector<FixedRun> runs;
};

MeasuredRuns pricedRuns(const std::vector<RunRow> &rows, RowPricer &pricer,
                        std::vector<std::string> &errors) {
  MeasuredRuns measured;
  for (const RunRow &row : rows) {
    PricedRow priced;
    const Quantity quantity =
        row.stepSeconds > 0 ? Quantity::stepTime : Quantity::peakMemory;
    std::optional<FixedRun> run = pricer.fix(row, priced, quantity);
    if (!run) {
      errors.push_back(fmt::format("{}: {}", row.id,
                                   priced.excluded.empty() ? priced.error
                                                           : priced.excluded));
      continue;
    }
    measured.rows.push_back(std::move(priced));
    measured.runs.push_back(std::move(*run));
  }
  return measured;
}

/// Holds the runs whose `quantity` was measured.
struct FittedRuns {
  Quantity quantity;
  std::vector<const RunRow *> rows;
  std::vector<const FixedRun *> runs;
  std::vector<double> measured;
  SoftwareFit fit;
};

FittedRuns runsWith(Quantity quantity, const MeasuredRuns &all) {
  FittedRuns found{quantity, {}, {}, {}, {}};
  for (std::size_t r = 0; r < all.rows.size(); ++r)
    if (const double value = measuredOf(all.rows[r].row, quantity); value > 0) {
      found.rows.push_back(&all.rows[r].row);
      found.runs.push_back(&all.runs[r]);
      found.measured.push_back(value);
    }
  return found;
}

std::string reportOf(const std::string &base, const FittedRuns &fitted) {
  const SoftwareFit &fit = fitted.fit;
  const bool isTime = fitted.quantity == Quantity::stepTime;
  std::string unknown;
  for (std::size_t f = 0; f < fit.figures.size(); ++f)
    if (!fit.figures[f].isDetermined)
      (unknown += unknown.empty() ? "" : ", ") +=
          softwareFigures(fit.quantity)[f].name;
  std::string text = fmt::format("{} of {} runs, starting from {}\n{}",
                                 isTime ? "Step times" : "Memory",
                                 fitted.rows.size(), base, figuresText(fit));
  if (!unknown.empty())
    text += fmt::format("No run depends on {}.\n", unknown);
  text += "Measured, predicted before and after the fit\n";
  Table runs;
  for (std::size_t r = 0; r < fitted.rows.size(); ++r)
    runs.add(
        {fitted.rows[r]->id, layoutText(*fitted.rows[r]),
         fmt::format("{:.4g} {}", fitted.measured[r], isTime ? "s" : "GiB"),
         fmt::format("{:+.1f} %", 100 * fit.before[r]),
         fmt::format("{:+.1f} %", 100 * fit.after[r])});
  return text + runs.print("  ");
}

std::string suggestionText(const FitFlags &flags,
                           const std::vector<RunRow> &rows,
                           MeasuredRuns &measured,
                           const planner::Software &software,
                           RowPricer &pricer) {
  const std::size_t known = measured.runs.size();
  std::vector<std::size_t> indices, offered;
  for (std::size_t i = 0; i < known; ++i)
    if (measured.rows[i].row.stepSeconds > 0)
      indices.push_back(i);
  std::vector<RunRow> layouts;
  for (const RunRow &row : otherLayouts(rows, kMostGpusToMeasure)) {
    PricedRow priced;
    std::optional<FixedRun> run = pricer.fix(row, priced);
    if (!run || !priced.fits())
      continue;
    offered.push_back(measured.runs.size());
    measured.runs.push_back(std::move(*run));
    layouts.push_back(row);
  }
  std::string text = "Measure next, the most useful first\n";
  if (layouts.empty())
    return text + fmt::format("  no other layout fits on at most {} GPUs\n",
                              kMostGpusToMeasure);
  for (std::size_t i : suggestRuns(software, pointersTo(measured.runs), indices,
                                   offered, flags.suggest)) {
    const RunRow &row = layouts[i - known];
    text += fmt::format("  {}, batch {} of {}: {}\n", row.model,
                        row.globalBatch, row.sequence, layoutText(row));
  }
  return text;
}

int fitRuns(FitFlags flags, const std::vector<RunRow> &rows, std::ostream &out,
            std::ostream &err) {
  const std::string usual = "pytorch-eager";
  std::vector<std::string> errors;
  if (flags.base.empty()) {
    flags.base = usual;
    RowPricer pricer(usual, flags.hardware);
    const MeasuredRuns measured = pricedRuns(rows, pricer, errors);
    const FittedRuns timed = runsWith(Quantity::stepTime, measured);
    if (errors.empty() && !timed.runs.empty())
      flags.base = nearestSoftware(timed.runs, timed.measured);
    errors.clear(); // they are found again
  }
  // The layouts of the runs depend on the software.
  RowPricer pricer(flags.base, flags.hardware);
  MeasuredRuns measured = pricedRuns(rows, pricer, errors);
  if (measured.runs.empty() && errors.empty())
    errors.push_back(flags.runs + ": has no runs");
  if (!errors.empty())
    return printErrors(errors, err);
  FittedRuns fits[] = {runsWith(Quantity::stepTime, measured),
                       runsWith(Quantity::peakMemory, measured)};
  namespace fs = std::filesystem;
  const std::string name =
      flags.output.empty() ? "fitted" : fs::path(flags.output).stem().string();
  std::string software = planner::softwareText(flags.base), text;
  for (FittedRuns &one : fits) {
    if (one.runs.empty())
      continue;
    one.fit = fitSoftware(planner::parseSoftware(software), one.runs,
                          one.measured, one.quantity);
    software = fittedSoftwareText(
        software, one.fit, name,
        fmt::format("fit to {} runs of {}", one.runs.size(),
                    fs::path(flags.runs).filename().string()));
    text += reportOf(flags.base, one);
  }
  if (!flags.output.empty() && !writeTextFile(flags.output, software, errors))
    return printErrors(errors, err);
  std::ostream &report = flags.output.empty() ? err : out;
  if (flags.output.empty())
    out << software;
  report << text;
  if (flags.suggest > 0)
    report << suggestionText(flags, rows, measured,
                             planner::parseSoftware(software), pricer);
  return kDone;
}

} // namespace

int runFitSoftware(const std::vector<std::string> &arguments, std::ostream &out,
                   std::ostream &err) {
  CLI::App app{"Fits a software file to measured runs."};
  app.name(std::string("mtplan ") + kFitSoftware);
  app.footer(kFooter);
  FitFlags flags;
  addFlags(app, flags);
  int exitCode = kDone;
  if (!parseOrReport(app, arguments, "one file of runs is taken", out, err,
                     exitCode))
    return exitCode;
  std::vector<std::string> errors, faults;
  runtime::NamedFiles files;
  if (flags.runs != "-") // standard input
    files.read("RUNS", flags.runs);
  for (const auto &[flag, name] : {std::pair("--base", flags.base),
                                   std::pair("--hardware", flags.hardware)})
    if (std::filesystem::exists(name))
      files.read(flag, name);
  if (const std::string why = files.write("-o", flags.output); !why.empty())
    errors.push_back(fmt::format("-o: {} {}", flags.output, why));
  std::optional<std::string> text = readTextFile(flags.runs, errors);
  std::vector<RunRow> rows;
  if (text && errors.empty())
    rows = readRows(*text, faults);
  for (const std::string &fault : faults)
    errors.push_back(fmt::format("{}: {}", flags.runs, fault));
  if (!errors.empty())
    return printErrors(errors, err);
  try {
    return fitRuns(flags, rows, out, err);
  } catch (const planner::SoftwareError &error) {
    addLines(error.what(), flags.base, errors);
  } catch (const planner::MachineError &error) {
    addLines(error.what(), flags.hardware, errors);
  }
  return printErrors(errors, err);
}

} // namespace mtplan::tools

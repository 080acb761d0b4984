//===- fit_hardware.cpp - `mtplan fit-hardware` ---------------------------===//

#include <optional>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "planner/fit/fit_machine.h"
#include "planner/fit/measurements_json.h"
#include "runtime/data/files.h"
#include "tools/command/command.h"
#include "tools/text/command_line.h"
#include "tools/text/table.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

namespace {

using planner::FitResidual;
using planner::FittedFigure;
using planner::MachineFit;

constexpr const char *kFooter = R"(
Examples:
  # What to measure and how to write it down: docs/measurements-format.md
  mtplan fit-hardware examples/measurements/a100-published.json -o ours.json
  mtplan examples/llama-3-8b.json --hardware ours.json

Exit status: 0 a machine was fitted; 2 bad input, or a figure is undetermined.
)";

std::string deviationOf(const FittedFigure &found) {
  if (found.atBound)
    return "at its bound";
  if (found.deviation == 0.0)
    return "";
  // Two digits of the standard deviation show how precise the value is.
  std::string text = fmt::format("+- {:.2g}", found.deviation);
  return found.deviation > 0.5 * found.value ? text + ", poorly determined"
                                             : text;
}

std::string reportOf(const planner::Measurements &measured,
                     const MachineFit &fit) {
  std::string text =
      fmt::format("{}: {} figures from {} measurements\n", fit.machine.name,
                  fit.figures.size(), measured.rows.size());
  Table figures;
  for (const FittedFigure &found : fit.figures)
    figures.add({found.figure.pointer.substr(std::string("/machine").size()),
                 fmt::format("{:.4g}", found.value),
                 planner::unitOf(found.figure.kind), deviationOf(found)});
  text += figures.print("  ");
  text += "Predicted against measured\n";
  Table residuals;
  for (const FitResidual &residual : fit.residuals)
    residuals.add({planner::nameOf(residual.kind),
                   fmt::format("{} rows", residual.rows),
                   fmt::format("rms {:.1f} %", 100 * residual.rms),
                   fmt::format("worst {:+.1f} %", 100 * residual.worst),
                   residual.worstPointer + " " + residual.worstRow});
  return text + residuals.print("  ");
}

int fitFile(const std::string &path, const std::string &output,
            std::ostream &out, std::ostream &err) {
  std::vector<std::string> errors;
  runtime::NamedFiles files;
  if (path != "-") // standard input
    files.read("MEASUREMENTS", path);
  if (const std::string why = files.write("-o", output); !why.empty())
    errors.push_back(fmt::format("-o: {} {}", output, why));
  std::optional<std::string> text = readTextFile(path, errors);
  if (!errors.empty())
    return printErrors(errors, err);
  planner::Measurements measured;
  try {
    measured = planner::parseMeasurements(*text);
  } catch (const planner::MeasurementsError &error) {
    addLines(error.what(), path, errors);
    return printErrors(errors, err);
  }
  std::vector<std::string> undetermined;
  std::optional<MachineFit> fit = planner::fitMachine(measured, undetermined);
  if (!fit) {
    for (const std::string &line : undetermined)
      errors.push_back(fmt::format("{}: {}", path, line));
    return printErrors(errors, err);
  }
  std::string machine = planner::fittedMachineText(*text, *fit);
  if (!output.empty() && !writeTextFile(output, machine, errors))
    return printErrors(errors, err);
  if (output.empty())
    out << machine;
  (output.empty() ? err : out) << reportOf(measured, *fit);
  return kDone;
}

} // namespace

int runFitHardware(const std::vector<std::string> &arguments, std::ostream &out,
                   std::ostream &err) {
  CLI::App app{"Fits a machine file to what was measured."};
  app.name(std::string("mtplan ") + kFitHardware);
  app.footer(kFooter);
  std::string file, output;
  app.add_option("MEASUREMENTS", file, "docs/measurements-format.md")
      ->required();
  app.add_option("-o,--output", output,
                 "write the machine file there, not to standard output")
      ->type_name("FILE");
  int exitCode = kDone;
  if (!parseOrReport(app, arguments, "one file of measurements is taken", out,
                     err, exitCode))
    return exitCode;
  return fitFile(file, output, out, err);
}

} // namespace mtplan::tools

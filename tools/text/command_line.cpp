//===- command_line.cpp - Command lines and exit statuses -----------------===//

#include "tools/text/command_line.h"

#include <csignal>
#include <exception>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/nearest_word.h"

namespace mtplan::tools {

std::string nearestOption(const CLI::App &command, const std::string &typed) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options()) {
    for (const std::string &letter : option->get_snames())
      if (CLI::detail::to_lower(typed) == "-" + CLI::detail::to_lower(letter))
        return "-" + letter;
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  }
  const bool isShort = typed.starts_with('-') && !typed.starts_with("--");
  return std::string(base::nearestTo(isShort ? '-' + typed : typed, names));
}

namespace {

int reportUnknown(const CLI::App &app, const std::string &takes,
                  const std::string &why, std::ostream &err) {
  for (const std::string &typed : app.remaining())
    err << "error: " << typed
        << (typed.starts_with("-")
                ? ": no such flag; nearest is " + nearestOption(app, typed)
                : ": is not expected; " + takes +
                      ", and a flag takes one value")
        << '\n';
  if (!why.empty())
    err << "error: " << why << '\n';
  err << app.get_name() << " --help lists the flags\n";
  return kBadInput;
}

} // namespace

// Success and ExtrasError derive from ParseError, so they are caught first.
bool parseOrReport(CLI::App &app, const std::vector<std::string> &arguments,
                   const std::string &takes, std::ostream &out,
                   std::ostream &err, int &exitCode) {
  try {
    // CLI11 expects the arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return true;
  } catch (const CLI::Success &success) {
    app.exit(success, out, err);
    exitCode = kDone;
  } catch (const CLI::ExtrasError &) {
    exitCode = reportUnknown(app, takes, "", err);
  } catch (const CLI::ParseError &error) {
    exitCode = reportUnknown(app, takes, error.what(), err);
  }
  return false;
}

int printErrors(const std::vector<std::string> &errors, std::ostream &err) {
  for (const std::string &error : errors)
    err << "error: " << error << '\n';
  return kBadInput;
}

int runMain(const std::function<int()> &body) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int status = body();
    std::cout.flush();
    if (std::cout)
      return status;
    return printErrors({"standard output cannot be written"}, std::cerr);
  } catch (const std::exception &error) {
    return printErrors({error.what()}, std::cerr);
  }
}

} // namespace mtplan::tools

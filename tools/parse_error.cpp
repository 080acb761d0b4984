//===- parse_error.cpp - What is wrong with a command line ----------------===//

#include "tools/parse_error.h"

#include <ostream>

#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "tools/nearest_option.h"

namespace mtplan::tools {

bool parseOrSay(CLI::App &app, const std::vector<std::string> &arguments,
                const std::string &takes, std::ostream &out, std::ostream &err,
                int &exitCode) {
  try {
    // CLI11 takes them last first.
    app.parse({arguments.rbegin(), arguments.rend()});
    return true;
  } catch (const CLI::Success &success) {
    app.exit(success, out, err);
    exitCode = kDone;
    return false;
  } catch (const CLI::ParseError &error) {
    for (const std::string &typed : app.remaining())
      err << "error: " << typed
          << (typed.starts_with("-")
                  ? ": no such flag; nearest is " + nearestOption(app, typed)
                  : ": what is this for? " + takes +
                        ", and a flag takes one value")
          << '\n';
    if (dynamic_cast<const CLI::ExtrasError *>(&error) == nullptr)
      err << "error: " << error.what() << '\n';
    err << app.get_name() << " --help lists the flags\n";
    exitCode = kBadInput;
    return false;
  }
}

} // namespace mtplan::tools

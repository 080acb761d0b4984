//===- mtplan.cpp - Plans how to train a transformer ----------------------===//

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>

#include <unistd.h>

#include "tools/command/command.h"

int main(int argc, char **argv) {
  // Ignores SIGXFSZ, so that a write beyond the file-size limit fails like a
  // full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  mtplan::tools::Terminal terminal;
  const char *term = std::getenv("TERM");
  bool plain = std::getenv("NO_COLOR") || !term || term[0] == '\0' ||
               std::string_view(term) == "dumb";
  terminal.colour = isatty(STDOUT_FILENO) && !plain;
  terminal.progress = isatty(STDERR_FILENO) && !plain;
  try {
    int code = mtplan::tools::runCommand({argv + 1, argv + argc}, std::cout,
                                         std::cerr, terminal);
    std::cout.flush();
    if (std::cout)
      return code;
    std::cerr << "error: standard output cannot be written\n";
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << '\n';
  }
  return mtplan::tools::kBadInput;
}

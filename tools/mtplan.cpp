//===- mtplan.cpp - Plans how to train a transformer ----------------------===//

#include <cstdlib>
#include <iostream>
#include <string_view>

#include <unistd.h>

#include "tools/command/command.h"

int main(int argc, char **argv) {
  mtplan::tools::Terminal terminal;
  const char *term = std::getenv("TERM");
  bool plain = std::getenv("NO_COLOR") || !term || term[0] == '\0' ||
               std::string_view(term) == "dumb";
  terminal.colour = isatty(STDOUT_FILENO) && !plain;
  terminal.progress = isatty(STDERR_FILENO) && !plain;
  return mtplan::tools::runMain([&] {
    return mtplan::tools::runCommand({argv + 1, argv + argc}, std::cout,
                                     std::cerr, terminal);
  });
}

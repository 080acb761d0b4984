//===- mtrun.cpp - Trains a plan that mtplan compiled ---------------------===//

#include <csignal>
#include <iostream>

#include "tools/run/run_command.h"

int main(int argc, char **argv) {
  // Ignores SIGXFSZ, so that a write beyond the file-size limit fails like a
  // full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return mtplan::tools::runTraining({argv + 1, argv + argc}, std::cout,
                                    std::cerr);
}

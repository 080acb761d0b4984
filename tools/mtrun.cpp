//===- mtrun.cpp - Trains what mtplan compiled ----------------------------===//

#include <csignal>
#include <iostream>

#include "tools/run_command.h"

int main(int argc, char **argv) {
  // A file that may not grow (ulimit -f) is said as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  return mtplan::tools::runTraining({argv + 1, argv + argc}, std::cout,
                                    std::cerr);
}

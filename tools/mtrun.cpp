//===- mtrun.cpp - Trains what mtplan compiled ----------------------------===//

#include <iostream>

#include "tools/run_command.h"

int main(int argc, char **argv) {
  return mtplan::tools::runTraining({argv + 1, argv + argc}, std::cout,
                                    std::cerr);
}

//===- mtplan.cpp - Plans how to train a transformer ----------------------===//

#include <iostream>

#include "tools/command/command.h"

int main(int argc, char **argv) {
  return mtplan::tools::runMain([&] {
    return mtplan::tools::runCommand({argv + 1, argv + argc}, std::cout,
                                     std::cerr, mtplan::tools::terminalOf());
  });
}

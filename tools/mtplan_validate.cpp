//===- mtplan_validate.cpp - Compares predictions with published runs -----===//

#include <iostream>

#include "tools/text/command_line.h"
#include "tools/validate/validate_command.h"

int main(int argc, char **argv) {
  return mtplan::tools::runMain([&] {
    return mtplan::tools::runValidate({argv + 1, argv + argc}, std::cout,
                                      std::cerr);
  });
}

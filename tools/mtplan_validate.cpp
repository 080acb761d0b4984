//===- mtplan_validate.cpp - Compares predictions with published runs -----===//

#include <exception>
#include <iostream>

#include "tools/text/command_line.h"
#include "tools/validate/validate_command.h"

int main(int argc, char **argv) {
  try {
    int code = mtplan::tools::runValidate({argv + 1, argv + argc}, std::cout,
                                          std::cerr);
    std::cout.flush();
    if (std::cout)
      return code;
    std::cerr << "error: standard output cannot be written\n";
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << '\n';
  }
  return mtplan::tools::kBadInput;
}

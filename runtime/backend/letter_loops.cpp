//===- letter_loops.cpp - An einsum as loops over its letters -------------===//

#include "runtime/backend/letter_loops.h"

#include "runtime/backend/signature.h"

namespace mtplan::runtime {
namespace {

LetterLoops loopsOver(const std::string &which, const KernelSpec &spec,
                      const Equation &equation) {
  // Elements to the next of a letter; 0 where a tensor lacks it.
  auto stepIn = [&](std::size_t side, const std::string &letters, char letter) {
    const std::size_t position = letters.find(letter);
    std::int64_t step = position == std::string::npos ? 0 : 1;
    for (std::size_t d = position; step != 0 && ++d < letters.size();)
      step *= spec.inputs[side].shape[d];
    return step;
  };
  LetterLoops all;
  for (const char letter : which) {
    const std::size_t inLeft = equation.lhs.find(letter);
    all.sizes.push_back(inLeft != std::string::npos
                            ? spec.inputs[0].shape[inLeft]
                            : spec.inputs[1].shape[equation.rhs.find(letter)]);
    all.left.push_back(stepIn(0, equation.lhs, letter));
    all.right.push_back(stepIn(1, equation.rhs, letter));
  }
  return all;
}

} // namespace

LetterSums::LetterSums(const KernelSpec &spec) {
  const Equation equation(spec);
  std::string contracted;
  for (const char letter : equation.lhs)
    if (equation.result.find(letter) == std::string::npos)
      contracted += letter;
  kept = loopsOver(equation.result, spec, equation);
  summed = loopsOver(contracted, spec, equation);
}

} // namespace mtplan::runtime

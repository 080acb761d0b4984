//===- parameter_lines.cpp - Parameters one by one, as lines --------------===//

#include "codegen/source/parameter_lines.h"

#include <utility>
#include <vector>

#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

template <typename Body>
void forCopies(const StageNames &names, int copies, Text &to, Body body) {
  if (copies > 1)
    to.open("for (int layer = 0; layer < " + names.layers(copies) +
            "; ++layer) {");
  else
    to.open("{");
  to.line(std::string("const Run now{rank, ") + (copies > 1 ? "layer" : "0") +
          ", 0};");
  body();
  to.close();
}

/// Calls `write` for each parameter. Consecutive parameters with the same
/// number of layers share a loop.
template <typename Write>
void forParameters(const StageNames &names,
                   const std::vector<const Parameter *> &all, Text &to,
                   Write write) {
  for (std::size_t p = 0; p < all.size();) {
    const int copies = all[p]->copies;
    forCopies(names, copies, to, [&] {
      for (; p < all.size() && all[p]->copies == copies; ++p)
        write(*all[p]);
    });
  }
}

/// Writes the line that lists a gradient. If several ranks hold a replica of
/// the gradient, only the first of these ranks lists the gradient.
void writeSquared(const Plan &plan, const Parameter &parameter,
                  const StageNames &names, Text &to) {
  std::string counts;
  for (const int axis : parameter.alike)
    if (plan.mesh[indexed(axis)].size > 1)
      counts += (counts.empty() ? "" : " && ") +
                ("now.at(" + names.axis(axis)) + ") == 0";
  if (!counts.empty())
    to.open("if (" + counts + ")");
  to.call("all.push_back",
          {"{" + names.tensor(parameter.gradient),
           names.elements(parameter.gradient)},
          "});");
  if (!counts.empty())
    to.leave();
}

} // namespace

void writeInitialise(const Stage &stage, const StageNames &names, Text &to) {
  to.comment("Sets the weights, and their masters, before the first step.");
  to.open("inline void initialise(Rank &rank, const Initialisation &how) {");
  std::vector<const Parameter *> all;
  for (const Parameter &parameter : stage.parameters)
    all.push_back(&parameter);
  forParameters(names, all, to, [&](const Parameter &parameter) {
    const std::string copy =
        names.layerOf(parameter.label, parameter.firstCopy);
    auto fill = [&](const std::string &tensors, const Tensor &tensor) {
      to.call("initial", {"now", "how", quoted(parameter.label), copy,
                          quoted(parameter.init), tensors, names.view(tensor)});
    };
    const Tensor &value = parameter.value;
    const std::string tensor = names.tensor(value);
    if (!parameter.master)
      return fill("{" + tensor + "}", value);
    const std::string master = names.tensor(*parameter.master);
    Tensor asValue = *parameter.master;
    asValue.type = value.type;
    if (names.view(asValue) == names.view(value))
      return fill("{" + tensor + ", " + master + "}", value);
    fill("{" + tensor + "}", value);
    fill("{" + master + "}", *parameter.master);
  });
  to.close();
}

void writeSquares(const Plan &plan, const Stage &stage, const StageNames &names,
                  Text &to) {
  std::vector<const Parameter *> narrow, wide;
  for (const Parameter &parameter : stage.parameters)
    if (!parameter.countedElsewhere)
      (parameter.gradient.type == ElementType::f64 ? wide : narrow)
          .push_back(&parameter);
  std::vector<std::pair<const char *, const char *>> sums; // list, type
  if (!narrow.empty())
    sums.emplace_back("gradients", "float");
  if (!wide.empty())
    sums.emplace_back("wideGradients", "double");
  for (const auto &[list, type] : sums) {
    to.line();
    to.comment("Lists the gradients that the norm counts on this rank. Each "
               "element is counted on one rank, and a tied weight is counted "
               "on its first stage.");
    to.open("inline void " + std::string(list) +
            "(Rank &rank, std::vector<Squared> &all) {");
    forParameters(names, list == std::string("gradients") ? narrow : wide, to,
                  [&](const Parameter &parameter) {
                    writeSquared(plan, parameter, names, to);
                  });
    to.close();
  }
  to.line();
  to.comment("Adds their squares to the rank's sum, for the gradient norm.");
  to.open("inline void squares([[maybe_unused]] Rank &rank) {");
  for (const auto &[list, type] : sums)
    to.call("addSquares<" + std::string(type) + ">",
            {"rank", quoted(list), list});
  to.close();
}

} // namespace mtplan::codegen

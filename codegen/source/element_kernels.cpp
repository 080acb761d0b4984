//===- element_kernels.cpp - Kernels by element, row or parameter ---------===//

#include "codegen/source/kernel_writer.h"
#include "runtime/backend/followed.h"
#include "runtime/backend/signature.h"
#include "runtime/backend/strided_source.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

constexpr double kEpsilon = 1e-5; // the default in ir/norm_ops.td

/// \param body  the functor that is applied to each element
void writeEach(const KernelWriter &to, const std::vector<std::string> &from,
               const std::string &body, const std::string &real) {
  const bool two = to.instruction.outputs.size() == 2;
  std::vector<std::string> arguments = {"now", body, to.elements(to.output(0)),
                                        to.out(0)};
  if (two)
    arguments.push_back(to.out(1));
  arguments.insert(arguments.end(), from.begin(), from.end());
  to.text.call((two ? "twoOfEach<" : "ofEach<") + real + ">", arguments);
}

std::vector<std::string> allInputs(const KernelWriter &to) {
  std::vector<std::string> from;
  for (std::size_t i = 0; i < to.instruction.inputs.size(); ++i)
    from.push_back(to.in(i));
  return from;
}

/// Returns a type that represents every element of the operand exactly. A float
/// cannot represent every f64 or i32.
std::string exactReal(const KernelWriter &to) {
  return to.spec.inputs[0].type == ElementType::i32 ? "double" : to.real;
}

auto pointwise(const char *body) {
  return [body](const KernelWriter &to) {
    writeEach(to, allInputs(to), body, to.real);
  };
}

void writeCopy(const KernelWriter &to) {
  writeEach(to, {to.in(0)}, "EachSame()", exactReal(to));
}

void writeActivation(const KernelWriter &to) {
  constexpr const char *kKinds[] = {"gelu", "geluTanh", "silu",
                                    "relu", "tanh",     "sigmoid"};
  static_assert(std::size(kKinds) == std::size(kActivations));
  const std::string body =
      to.spec.kernel == "activation" ? "Activated" : "ActivatedGrad";
  writeEach(to, allInputs(to),
            body + "{Activation::" +
                kKinds[static_cast<std::size_t>(activationOf(to.spec))] + "}",
            to.real);
}

void writeZeros(const KernelWriter &to) {
  to.text.call("MTPLAN_CUDA",
               {"cudaMemsetAsync(" + to.out(0) + ".data", "0",
                productText({to.elements(to.output(0)),
                             "bytesOf(" + typeText(to.output(0).type) + ")"}),
                "now.stream())"});
}

void writeMask(const KernelWriter &to) {
  to.text.open("if (now.at(" + to.axis + ") == 0)");
  writeCopy(to);
  to.text.leave();
  to.text.open("else");
  writeZeros(to);
  to.text.leave();
}

/// Returns the number of contiguous runs that are copied: a product of leading
/// dimensions of the result if one of these products has this value, else a
/// number literal.
std::string runsText(const KernelWriter &to, const StridedSource &source) {
  const Tensor &result = to.output(0);
  std::int64_t runs = elementsOf(result);
  for (std::size_t end = result.shape.size();; --end) {
    if (runs == source.runs())
      return to.elements(result, 0, end);
    if (end == 0)
      return to.count(source.runs());
    runs /= result.shape[end - 1];
  }
}

std::string productsText(const StageNames &names,
                         const std::vector<std::int64_t> &numbers,
                         const Tensor &tensor) {
  std::vector<std::string> all;
  all.reserve(numbers.size());
  for (const std::int64_t number : numbers)
    all.push_back(names.product(number, tensor));
  return listText(all);
}

void writeTake(const KernelWriter &to) {
  const StridedSource source(to.spec);
  const Tensor &from = to.instruction.inputs[0],
               &result = to.instruction.outputs[0];
  std::string start;
  for (std::size_t d = result.shape.size(); d-- > 0;) {
    const std::string step = to.elements(from, d + 1);
    std::string first;
    if (to.spec.kernel == "slice") {
      if (static_cast<std::int64_t>(d) == to.spec.integer("dim", 0))
        first = "now.at(" + to.axis + ") * " + grouped(to.extent(result, d));
    } else if (to.spec.kernel == "piece") {
      const std::string own = to.names.offset(result, d),
                        held = to.names.offset(from, d);
      if (own != held)
        first = held == "0" ? own
                            : std::string("(")
                                  .append(own)
                                  .append(" - ")
                                  .append(held)
                                  .append(")");
    }
    if (first.empty())
      continue;
    start += (start.empty() ? "" : " + ") + first +
             (step == "1" ? "" : " * " + grouped(step));
  }
  to.needs("move.cuh");
  const std::string length = to.names.product(source.length, result);
  if (start.empty())
    start = "0";
  to.callAs(
      "take<" + exactReal(to) + ">",
      {to.in(0), to.out(0), runsText(to, source),
       source.sizes.empty()
           ? "contiguous(" + start + ", " + length + ")"
           : "Strides{.dims = " +
                 to.count(static_cast<std::int64_t>(source.sizes.size())) +
                 ", .sizes = " + productsText(to.names, source.sizes, result) +
                 ", .steps = " + productsText(to.names, source.steps, from) +
                 ", .start = " + start + ", .length = " + length + "}"});
}

std::string addendText(const KernelWriter &to, std::size_t operand) {
  return "Addend{" + to.in(operand) + ", " + typeText(to.spec.outputs[0].type) +
         "}";
}

void writeDropout(const KernelWriter &to) {
  const bool adds = to.spec.find(kThen);
  if (adds && !isOfOnePrecision(to.spec))
    return writeInTurn(to);
  std::vector<std::string> arguments = {
      to.in(0), to.out(adds ? 1 : 0),
      "TensorView" + to.names.view(to.instruction.outputs[0]), "now.microBatch",
      to.masks()};
  if (adds)
    arguments.push_back(addendText(to, 1));
  to.needs("dropout.cuh");
  to.call("dropout", arguments);
}

/// Returns the number of rows that `elements` elements of a norm's input form.
/// A row is the last dimension or one head, and is as long as the gain.
std::string rowsText(const KernelWriter &to, const std::string &elements) {
  return elements + " / " + to.width(to.input(1));
}

void writeNorm(const KernelWriter &to) {
  const bool ofHeads = to.spec.find("head_dim");
  to.needs("norm.cuh");
  to.call(
      "norm",
      {to.in(0), to.in(1), to.in(2), to.out(0),
       ofHeads ? rowsText(to, to.elements(to.input(0))) : to.rows(to.input(0)),
       to.width(to.input(ofHeads ? 1 : 0)),
       to.names.real("epsilon", to.spec.number("epsilon", kEpsilon))});
}

void writeNormGrad(const KernelWriter &to) {
  const bool adds = to.spec.find(kThen);
  if (adds && !isOfOnePrecision(to.spec))
    return writeInTurn(to);
  const Tensor &input = to.input(0);
  const std::size_t samples = input.shape.size() > 1 ? 1 : 0;
  const std::string sizes =
      to.spec.find("head_dim")
          ? "ColumnSizes" + listText(std::vector<std::string>{
                                to.elements(input, 0, samples),
                                rowsText(to, to.elements(input, samples)),
                                to.width(to.input(1))})
          : sizesText(to, input, 1);
  const std::size_t last = to.instruction.outputs.size() - 1;
  const bool centred = to.spec.kernel == "layer_norm_grad";
  std::vector<std::string> arguments = {
      to.in(0),
      to.in(1),
      to.in(2),
      to.out(adds ? last : 0),
      to.out(1),
      centred ? to.out(2) : "kNowhere",
      sizes,
      to.names.real("epsilon", to.spec.number("epsilon", kEpsilon)),
      to.scratch(to.of("normGradScratch") + "(" + sizes + ", " +
                 (centred ? "true" : "false") + ")")};
  if (adds)
    arguments.push_back(addendText(to, 3));
  to.needs("norm_grad.cuh");
  to.call("normGrad", arguments);
}

void writeSoftmax(const KernelWriter &to) {
  std::vector<std::string> arguments = allInputs(to);
  for (const std::string &one :
       {to.out(0), to.rows(to.output(0)), to.width(to.output(0))})
    arguments.push_back(one);
  to.needs("softmax.cuh");
  to.call(to.spec.kernel == "softmax" ? "softmax" : "softmaxGrad", arguments);
}

void writeSum(const KernelWriter &to) {
  const bool accumulates = to.spec.find(kThen);
  if (accumulates && !isOfOnePrecision(to.spec))
    return writeInTurn(to);
  const std::string sizes = summedSizes(to, to.input(0), to.output(0));
  to.needs("sums.cuh");
  std::vector<std::string> arguments = {
      to.in(0), to.out(accumulates ? 1 : 0), sizes,
      to.scratch(to.of("columnScratch") + "(" + sizes + ", 1)")};
  if (accumulates)
    arguments.push_back(to.adds());
  to.call("sum", arguments);
}

void writeAccumulate(const KernelWriter &to) {
  to.text.call(
      to.of("accumulate"),
      {"now", to.adds(), to.elements(to.output(0)), to.out(0), to.in(0)});
}

void writeAdamw(const KernelWriter &to) {
  to.needs("adamw.cuh");
  to.callAs(usesDouble(to.spec) ? "adamw<double>" : "adamw<float>",
            {to.in(0), to.out(0), to.out(1), to.out(2), to.out(3),
             to.elements(to.input(0)), "now.rank.numbers",
             to.spec.integer("decay", 0) != 0 ? "true" : "false"});
}

} // namespace

void addElementKernels(KernelTable &table) {
  table["accumulate"] = writeAccumulate;
  table["activation"] = table["activation_grad"] = writeActivation;
  table["adamw"] = writeAdamw;
  table["add"] = pointwise("EachSum()");
  table["cast"] = table["copy"] = writeCopy;
  table["dropout"] = writeDropout;
  table["layer_norm"] = table["rms_norm"] = writeNorm;
  table["layer_norm_grad"] = table["rms_norm_grad"] = writeNormGrad;
  table["mask"] = writeMask;
  table["mul"] = pointwise("EachProduct()");
  table["scale"] = [](const KernelWriter &to) {
    writeEach(to, allInputs(to),
              "EachScaled{" + numberText(to.spec.number("factor", 1.0)) + "}",
              to.real);
  };
  table["logit_softcap"] = [](const KernelWriter &to) {
    writeEach(to, allInputs(to),
              "Softcapped{" + numberText(to.spec.number("cap", 0.0)) + "}",
              to.real);
  };
  table["logit_softcap_grad"] = [](const KernelWriter &to) {
    writeEach(to, allInputs(to),
              "SoftcappedGrad{" + numberText(to.spec.number("cap", 0.0)) + "}",
              to.real);
  };
  table["slice"] = table["piece"] = table["transpose"] = writeTake;
  table["softmax"] = table["softmax_grad"] = writeSoftmax;
  table["sum"] = writeSum;
  table["swiglu"] = pointwise("Swiglu()");
  table["swiglu_grad"] = pointwise("SwigluGrad()");
  table["zeros"] = writeZeros;
}

} // namespace mtplan::codegen

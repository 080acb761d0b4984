//===- signature.cpp - The shapes of kernels ------------------------------===//

#include "runtime/backend/signature.h"

#include <array>
#include <map>
#include <optional>
#include <stdexcept>

#include "runtime/backend/einsum.h"
#include "runtime/backend/element.h"
#include "runtime/backend/followed.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::runtime {
namespace {

/// Returns the signatures by kernel. A letter stands for one dimension, which
/// has the same size in all tensors with this letter. A leading `*` stands for
/// any number of dimensions, which are equal in all tensors with `*`. A tensor
/// after `#` holds integers. A tensor after `?`, and every later tensor on its
/// side of the arrow, may be absent. Kernels with an empty signature have
/// checks of their own.
const std::map<std::string, std::string> &signatures() {
  static const std::map<std::string, std::string> kTable = {
      {"accumulate", "*->*"},
      {"activation", "*->*"},
      {"activation_grad", "*,*->*"},
      {"adamw", "*->*,*,*,*"},
      {"add", "*,*->*"},
      {"attention", "bsq,bkc,bkc,?dn->bsq,bsn"},
      {"attention_grad", "bsq,bkc,bkc,bsq,bsn,bsq,?dn->bsq,bkc,bkc,?dn"},
      {"balance_loss", "bse,->"},
      {"balance_loss_grad", "bse,->bse"},
      {"cast", "*->*"},
      {"copy", "*->*"},
      {"cross_entropy_grad", "*v,*,*,#*,->*v"},
      {"dropout", "*->*"},
      {"einsum", ""},
      {"embedding", "#*,vh->*h"},
      {"embedding_grad", "#*,*h->vh"},
      {"gradient_factor", "rp->p"},
      {"layer_norm", "*h,h,h->*h"},
      {"layer_norm_grad", "*h,h,*h->*h,h,h"},
      {"logit_softcap", "*->*"},
      {"logit_softcap_grad", "*,*->*"},
      {"mask", "*->*"},
      {"moe_combine", "ebch,bse,#bse->bsh"},
      {"moe_combine_grad", "ebch,bse,#bse,bsh->ebch,bse"},
      {"moe_dispatch", "bsh,#bse->ebch"},
      {"moe_dispatch_grad", "#bse,ebch->bsh"},
      {"moe_gate", "bse->bse"},
      {"moe_gate_grad", "bse,bse->bse"},
      {"moe_slots", "bse->#bse"},
      {"mul", "*,*->*"},
      {"piece", ""},
      {"position_embedding", "bsh,ph->bsh"},
      {"position_embedding_grad", "bsh->ph"},
      {"put_first", "bsh,h->bsh"},
      {"put_first_grad", "bsh->bsh,h"},
      {"rms_norm", "*h,h->*h"},
      {"rms_norm_grad", "*h,h,*h->*h,h"},
      {"rope", "bsh->bsh"},
      {"scale", "*->*"},
      {"slice", ""},
      {"softmax", "*->*"},
      {"softmax_grad", "*,*->*"},
      {"square_sum", "*->p"},
      {"sum", ""},
      {"swiglu", "*,*->*"},
      {"swiglu_grad", "*,*,*->*,*"},
      {"take_first", "bsh->bh"},
      {"take_first_grad", "bh->bsh"},
      {"token_loss", "*,*,*,#*,->"},
      {"transpose", "abc->bac"},
      {"vocab_max", "*v->*"},
      {"vocab_pick", "*v,#*->*"},
      {"vocab_sum_exp", "*v,*->*"},
      {"zeros", "->*"},
  };
  return kTable;
}

bool isNormOfHeads(const KernelSpec &spec) {
  return spec.kernel.find("_norm") != std::string::npos &&
         spec.find("head_dim");
}

/// Returns the signature of a call. In a norm over heads, which normalizes
/// parts of the last dimension, that dimension may be longer than the gain.
std::string signatureOf(const KernelSpec &spec, std::string signature) {
  if (isNormOfHeads(spec))
    for (std::size_t at = 0;
         (at = signature.find("*h", at)) != std::string::npos;)
      signature.erase(at + 1, 1);
  return signature;
}

/// Matches tensors with the patterns of a signature. Each letter is bound to
/// the size of the first dimension that it matches.
class Binding {
public:
  explicit Binding(const KernelSpec &theSpec) : spec(theSpec) {}

  /// \param what  "input" or "output"
  void match(const std::string &side, const std::vector<TensorView> &views,
             const char *what) {
    const std::vector<std::string> patterns = patternsOf(side);
    std::size_t needed = 0;
    while (needed < patterns.size() && patterns[needed].front() != '?')
      ++needed;
    if (views.size() < needed || views.size() > patterns.size())
      refuse(spec, "has " + std::to_string(views.size()) + " " + what +
                       "s, takes " + std::to_string(needed) +
                       (needed < patterns.size()
                            ? " to " + std::to_string(patterns.size())
                            : std::string()));
    for (std::size_t i = 0; i < views.size(); ++i)
      matchOne(patterns[i], views[i], what + (" " + std::to_string(i)));
  }

private:
  /// Returns one pattern per tensor. The pattern of a scalar is a blank, so
  /// that no pattern is empty.
  static std::vector<std::string> patternsOf(const std::string &side) {
    std::vector<std::string> patterns;
    if (side.empty())
      return patterns;
    std::string pattern;
    for (char c : side + ',') {
      if (c != ',') {
        pattern += c;
        continue;
      }
      patterns.push_back(pattern.empty() ? " " : pattern);
      pattern.clear();
    }
    return patterns;
  }

  void matchOne(const std::string &pattern, const TensorView &view,
                const std::string &what) {
    std::size_t at = 0;
    bool integers = false;
    while (at < pattern.size() &&
           (pattern[at] == '?' || pattern[at] == ' ' || pattern[at] == '#'))
      integers |= pattern[at++] == '#';
    if (integers != (view.type == ElementType::i32) && !takesAll())
      refuse(spec, what + " is of " + nameOf(view.type) + ", not of " +
                       (integers ? "i32" : "floating-point numbers"));
    const bool open = at < pattern.size() && pattern[at] == '*';
    const std::string letters = pattern.substr(at + (open ? 1 : 0));
    const std::vector<std::int64_t> &shape = view.shape;
    if (open ? shape.size() < letters.size() : shape.size() != letters.size())
      refuse(spec, what + " is " + shapeWords(shape) + ", takes " +
                       (open ? "at least " : "") +
                       std::to_string(letters.size()) + " dimensions");
    const std::size_t lead = shape.size() - letters.size();
    if (open)
      matchLead({shape.begin(), shape.begin() + static_cast<long>(lead)}, view,
                what);
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const auto [found, isNew] =
          sizes.try_emplace(letters[i], shape[lead + i]);
      if (!isNew && found->second != shape[lead + i])
        refuse(spec, what + " is " + shapeWords(shape) + ", where dimension " +
                         std::to_string(lead + i) + " is " +
                         std::to_string(found->second) + " elsewhere");
    }
  }

  void matchLead(const std::vector<std::int64_t> &shape, const TensorView &view,
                 const std::string &what) {
    if (!leading)
      leading = shape;
    else if (*leading != shape)
      refuse(spec, what + " is " + shapeWords(view.shape) +
                       ", whose leading dimensions are " +
                       shapeWords(*leading) + " elsewhere");
  }

  bool takesAll() const {
    return spec.kernel == "copy" || spec.kernel == "cast" ||
           spec.kernel == "slice" || spec.kernel == "zeros" ||
           spec.kernel == "mask" || spec.kernel == "transpose";
  }

  const KernelSpec &spec;
  std::map<char, std::int64_t> sizes;
  std::optional<std::vector<std::int64_t>> leading;
};

void checkSum(const KernelSpec &spec) {
  if (spec.inputs.size() != 1 || spec.outputs.size() != 1)
    refuse(spec, "takes one input and one output");
  const auto &in = spec.inputs[0].shape, &out = spec.outputs[0].shape;
  if (out.size() > in.size() ||
      !std::equal(out.rbegin(), out.rend(), in.rbegin()))
    refuse(spec, "sums " + shapeWords(in) + " to " + shapeWords(out) +
                     ", which are not its trailing dimensions");
  for (const TensorView &view : {spec.inputs[0], spec.outputs[0]})
    if (view.type == ElementType::i32)
      refuse(spec, "takes floating-point numbers, not i32");
}

void checkSlice(const KernelSpec &spec) {
  if (spec.inputs.size() != 1 || spec.outputs.size() != 1)
    refuse(spec, "takes one input and one output");
  const std::int64_t dim = spec.integer("dim", -1);
  const std::int64_t place = spec.integer("place", -1);
  const std::int64_t ranks = spec.integer("ranks", 0);
  std::vector<std::int64_t> whole = spec.outputs[0].shape;
  if (dim < 0 || dim >= static_cast<std::int64_t>(whole.size()))
    refuse(spec, "has dim " + std::to_string(dim) + " of " + shapeWords(whole));
  if (place < 0 || place >= ranks)
    refuse(spec, "has place " + std::to_string(place) + " of " +
                     std::to_string(ranks));
  whole[static_cast<std::size_t>(dim)] *= ranks;
  if (whole != spec.inputs[0].shape ||
      spec.inputs[0].type != spec.outputs[0].type)
    refuse(spec, "cuts " + shapeWords(spec.inputs[0].shape) + " into " +
                     std::to_string(ranks) + " pieces of " +
                     shapeWords(spec.outputs[0].shape));
}

void checkPiece(const KernelSpec &spec) {
  if (spec.inputs.size() != 1 || spec.outputs.size() != 1)
    refuse(spec, "takes one input and one output");
  const TensorView &whole = spec.inputs[0], &piece = spec.outputs[0];
  if (whole.type != piece.type || whole.shape.size() != piece.shape.size())
    refuse(spec, "takes " + shapeWords(piece.shape) + " of " +
                     shapeWords(whole.shape) + ", or another type");
  for (std::size_t d = 0; d < piece.shape.size(); ++d) {
    const Span has = pieceOf(whole, d), wants = pieceOf(piece, d);
    if (wants.offset < has.offset ||
        wants.offset + piece.shape[d] > has.offset + whole.shape[d])
      refuse(spec, "takes " + std::to_string(piece.shape[d]) +
                       " elements of dimension " + std::to_string(d) +
                       " from element " + std::to_string(wants.offset) +
                       ", but the rank has " + std::to_string(whole.shape[d]) +
                       " from element " + std::to_string(has.offset));
  }
}

void checkEinsum(const KernelSpec &spec) {
  const Equation equation(spec);
  for (char letter : equation.lhs + equation.rhs + equation.result) {
    const auto in = [&](const std::string &side) {
      return side.find(letter) != std::string::npos ? 1 : 0;
    };
    if (in(equation.lhs) + in(equation.rhs) + in(equation.result) < 2)
      refuse(spec, std::string("has '") + letter + "' only once");
  }
  std::string bias;
  if (spec.inputs.size() == 3) {
    if (equation.result.empty())
      refuse(spec, "adds a bias to a scalar");
    bias = std::string(",") + equation.result.back();
  }
  Binding binding(spec);
  binding.match(equation.lhs + ',' + equation.rhs + bias, spec.inputs, "input");
  // The pattern of a scalar is a blank (patternsOf).
  binding.match(equation.result.empty() ? " " : equation.result, spec.outputs,
                "output");
}

void checkHeads(const KernelSpec &spec) {
  const std::int64_t width = spec.integer("head_dim", 0);
  const std::int64_t query = spec.inputs[0].shape[2];
  const std::int64_t key =
      spec.kernel == "rope" ? query : spec.inputs[1].shape[2];
  if (width < 1 || query % width || key % width || query % key)
    refuse(spec, "has head_dim " + std::to_string(width) + " of widths " +
                     std::to_string(query) + " and " + std::to_string(key));
  if (spec.kernel == "rope") {
    const std::int64_t rotary = spec.integer("rotary_dim", 0);
    if (rotary < 2 || rotary % 2 || rotary > width)
      refuse(spec, "rotates " + std::to_string(rotary) + " of " +
                       std::to_string(width) + " features");
    return;
  }
  const std::int64_t heads = query / width;
  const std::size_t lse = spec.kernel == "attention" ? 1 : 4;
  const auto &sums = spec.kernel == "attention" ? spec.outputs : spec.inputs;
  if (sums[lse].shape[2] != heads)
    refuse(spec, "has " + std::to_string(heads) + " heads and " +
                     std::to_string(sums[lse].shape[2]) + " sums");
  const bool biased = spec.inputs.size() == (lse == 1 ? 4 : 7);
  if (biased &&
      (spec.integer("max_distance", 0) < 2 || spec.inputs.back().shape[0] < 4))
    refuse(spec, "has a bias, but no max_distance of at least 2 or less than "
                 "four rows");
  if (const bool capped = spec.find("softcap");
      capped && (biased || !(spec.number("softcap", 0.0) > 0.0)))
    refuse(spec, biased ? "has a softcap and a bias, which exclude each other"
                        : "needs a softcap above 0");
  if (lse == 4 && biased != (spec.outputs.size() == 4))
    refuse(spec, "has a bias without its gradient, or a bias's gradient "
                 "without the bias");
}

void checkNormOfHeads(const KernelSpec &spec) {
  const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
  const std::int64_t width = spec.integer("head_dim", 0),
                     features = shape.empty() ? 1 : shape.back();
  if (width < 1 || features % width || spec.inputs[1].shape[0] != width)
    refuse(spec, "has head_dim " + std::to_string(width) + " of " +
                     std::to_string(features) + " features and a gain of " +
                     std::to_string(spec.inputs[1].shape[0]));
}

void checkSettings(const KernelSpec &spec) {
  const double rate = spec.number("rate", 0.0);
  if (!(rate >= 0.0 && rate < 1.0))
    refuse(spec, "drops out at rate " + std::to_string(rate));
  if (spec.find("top_k")) {
    const std::int64_t chosen = spec.integer("top_k", 0);
    const std::int64_t experts = spec.inputs[0].shape[2];
    if (chosen < 1 || chosen > experts)
      refuse(spec, "chooses " + std::to_string(chosen) + " of " +
                       std::to_string(experts) + " experts");
  }
  if (spec.kernel.starts_with("activation"))
    activationOf(spec);
  if (spec.kernel.starts_with("logit_softcap") &&
      !(spec.number("cap", 0.0) > 0.0))
    refuse(spec, "needs a cap above 0");
  if (spec.kernel.starts_with("attention") || spec.kernel == "rope")
    checkHeads(spec);
  if (isNormOfHeads(spec))
    checkNormOfHeads(spec);
}

} // namespace

void refuse(const KernelSpec &spec, const std::string &what) {
  throw std::runtime_error(spec.label + " (" + spec.kernel + "): " + what);
}

Span pieceOf(const TensorView &view, std::size_t dim) {
  return view.pieces.empty() ? Span{0, view.shape[dim]} : view.pieces[dim];
}

Activation activationOf(const KernelSpec &spec) {
  const std::string kind = spec.text("kind", "");
  std::string kinds;
  for (std::size_t i = 0; i < std::size(kActivations); ++i) {
    if (kind == kActivations[i])
      return static_cast<Activation>(i);
    kinds += (i > 0 ? ", " : "") + std::string(kActivations[i]);
  }
  refuse(spec, "kind '" + kind + "' is not one of " + kinds);
}

void checkSpec(const KernelSpec &spec) {
  const auto found = signatures().find(spec.kernel);
  if (found == signatures().end())
    refuse(spec, "there is no such kernel");
  for (const std::vector<TensorView> *side : {&spec.inputs, &spec.outputs})
    for (const TensorView &view : *side)
      if (!view.pieces.empty() && view.pieces.size() != view.shape.size())
        refuse(spec, "has a tensor " + shapeWords(view.shape) + " with " +
                         std::to_string(view.pieces.size()) + " pieces");
  if (isOfTwo(spec)) {
    const auto [first, second] = halvesOf(spec);
    checkSpec(first);
    return checkSpec(second);
  }
  if (spec.kernel == "einsum")
    return checkEinsum(spec);
  if (spec.kernel == "sum")
    return checkSum(spec);
  if (spec.kernel == "slice")
    return checkSlice(spec);
  if (spec.kernel == "piece")
    return checkPiece(spec);
  const std::string signature = signatureOf(spec, found->second);
  const std::size_t arrow = signature.find("->");
  std::string results = signature.substr(arrow + 2);
  Binding binding(spec);
  binding.match(signature.substr(0, arrow), spec.inputs, "input");
  binding.match(results.empty() ? " " : results, spec.outputs, "output");
  checkSettings(spec);
}

std::vector<std::string> kernelNames() {
  std::vector<std::string> names;
  for (const auto &[name, signature] : signatures())
    names.push_back(name);
  return names;
}

} // namespace mtplan::runtime

//===- moe.cpp - Reference kernels of mixtures of experts -----------------===//

#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

struct View {
  const std::vector<std::int64_t> &shape;
  const std::span<const double> data;
};

View operand(const Call &call, std::size_t i) {
  return {call.inShape(i), call.in[i]};
}
View result(const Call &call, std::size_t i) {
  return {call.outShape(i), call.out[i]};
}

std::size_t topKOf(const Call &call) {
  return static_cast<std::size_t>(call.attributes.integer("top_k", 1));
}
bool normalises(const Call &call) { return call.attributes.flag("normalise"); }

/// Returns the experts with the `topK` largest logits of a row, largest first.
/// Experts with equal logits are in ascending order.
std::vector<std::size_t> choose(const double *row, std::size_t experts,
                                std::size_t topK) {
  std::vector<std::size_t> chosen;
  std::vector<bool> taken(experts, false);
  while (chosen.size() < topK) {
    std::size_t best = experts;
    for (std::size_t e = 0; e < experts; ++e)
      if (!taken[e] && (best == experts || row[e] > row[best]))
        best = e;
    taken[best] = true;
    chosen.push_back(best);
  }
  return chosen;
}

/// Holds the router's probabilities (`share`) and choice for one token.
struct Token {
  Doubles share;
  std::vector<std::size_t> chosen;

  Token(const double *row, std::size_t experts, std::size_t topK)
      : share(row, row + experts), chosen(choose(row, experts, topK)) {
    const double largest = *std::max_element(share.begin(), share.end());
    double total = 0.0;
    for (double &value : share)
      total += value = std::exp(value - largest);
    for (double &value : share)
      value /= total;
  }

  /// Clears the probabilities of experts that are not chosen. If `normalise`,
  /// scales the probabilities of the chosen experts so that their sum is 1.
  void keepChosen(bool normalise) {
    double total = 0.0;
    for (std::size_t e : chosen)
      total += share[e];
    Doubles kept(share.size(), 0.0);
    for (std::size_t e : chosen)
      kept[e] = normalise ? share[e] / total : share[e];
    share = std::move(kept);
  }
};

/// Calls `visit(first, token)` for every token. `first` is the index of the
/// token's first logit.
template <typename Visit>
void forEachToken(const View &logits, std::size_t topK, Visit &&visit) {
  const auto experts = static_cast<std::size_t>(logits.shape.back());
  for (std::size_t first = 0; first < logits.data.size(); first += experts)
    visit(first, Token(&logits.data[first], experts, topK));
}

/// Writes the gradient of a softmax, d_i = p_i (g_i - sum_j p_j g_j). Here p
/// (`share`) are the probabilities and g (`gradientOf`) their gradients.
template <typename GradientOf>
void softmaxBackward(const Doubles &share, GradientOf &&gradientOf,
                     double *result) {
  double projection = 0.0;
  for (std::size_t e = 0; e < share.size(); ++e)
    projection += share[e] * gradientOf(e);
  for (std::size_t e = 0; e < share.size(); ++e)
    result[e] = share[e] * (gradientOf(e) - projection);
}

void moeGate(Call &call) {
  forEachToken(
      operand(call, 0), topKOf(call), [&](std::size_t first, Token token) {
        token.keepChosen(normalises(call));
        std::copy(token.share.begin(), token.share.end(),
                  call.out[0].begin() + static_cast<std::ptrdiff_t>(first));
      });
}

void moeGateGrad(Call &call) {
  forEachToken(operand(call, 0), topKOf(call),
               [&](std::size_t first, Token token) {
                 // Normalized gates are a softmax over the chosen experts.
                 // Without normalization, the gates are a softmax over all
                 // experts, and the gradients of experts that are not chosen
                 // are zero.
                 Doubles gradient(token.share.size(), 0.0);
                 for (std::size_t e : token.chosen)
                   gradient[e] = call.in[1][first + e];
                 if (normalises(call))
                   token.keepChosen(/*normalise=*/true);
                 softmaxBackward(
                     token.share, [&](std::size_t e) { return gradient[e]; },
                     &call.out[0][first]);
               });
}

void moeSlots(Call &call) {
  const View logits = operand(call, 0);
  const auto positions = static_cast<std::size_t>(logits.shape[1]);
  const auto experts = static_cast<std::size_t>(logits.shape[2]);
  Doubles &result = call.out[0];
  std::fill(result.begin(), result.end(), -1.0);
  const std::size_t sample = positions * experts;
  for (std::size_t first = 0; first < logits.data.size(); first += sample) {
    std::vector<std::vector<std::size_t>> chosen;
    for (std::size_t s = 0; s < positions; ++s)
      chosen.push_back(
          choose(&logits.data[first + s * experts], experts, topKOf(call)));
    Doubles queue(experts, 0.0);
    for (std::size_t choice = 0; choice < topKOf(call); ++choice)
      for (std::size_t s = 0; s < positions; ++s) {
        const std::size_t e = chosen[s][choice];
        result[first + s * experts + e] = queue[e]++;
      }
  }
}

/// Calls `visit(token, place, slot)` for every pair of a token and an expert
/// whose capacity includes the token. `token` is the index of the token's first
/// element. `place` is the index of the first element of the token's row in the
/// buffers [experts][samples][capacity][features]. `slot` is the index in the
/// slots [samples][positions][experts].
template <typename Visit>
void forEachPlace(const View &slots, const View &places, Visit &&visit) {
  const std::int64_t samples = places.shape[1], count = places.shape[2];
  const std::int64_t width = places.shape[3];
  forEachIndex(slots.shape, [&](std::size_t slot, const auto &index) {
    const double place = slots.data[slot];
    if (place < 0 || place >= static_cast<double>(count))
      return;
    const std::int64_t b = index[0], s = index[1], e = index[2];
    visit((b * slots.shape[1] + s) * width,
          ((e * samples + b) * count + static_cast<std::int64_t>(place)) *
              width,
          slot);
  });
}

void moeDispatch(Call &call) {
  const View places = result(call, 0);
  forEachPlace(operand(call, 1), places,
               [&](std::int64_t token, std::int64_t place, std::size_t) {
                 for (std::int64_t h = 0; h < places.shape[3]; ++h)
                   call.out[0][place + h] = call.in[0][token + h];
               });
}

void moeDispatchGrad(Call &call) {
  const View places = operand(call, 1);
  forEachPlace(operand(call, 0), places,
               [&](std::int64_t token, std::int64_t place, std::size_t) {
                 for (std::int64_t h = 0; h < places.shape[3]; ++h)
                   call.out[0][token + h] += places.data[place + h];
               });
}

void moeCombine(Call &call) {
  const View places = operand(call, 0);
  forEachPlace(operand(call, 2), places,
               [&](std::int64_t token, std::int64_t place, std::size_t slot) {
                 const double gate = call.in[1][slot];
                 for (std::int64_t h = 0; h < places.shape[3]; ++h)
                   call.out[0][token + h] += gate * places.data[place + h];
               });
}

void moeCombineGrad(Call &call) {
  const View places = operand(call, 0);
  const std::span<const double> gradient = call.in[3];
  forEachPlace(operand(call, 2), places,
               [&](std::int64_t token, std::int64_t place, std::size_t slot) {
                 const double gate = call.in[1][slot];
                 for (std::int64_t h = 0; h < places.shape[3]; ++h) {
                   call.out[0][place + h] = gate * gradient[token + h];
                   call.out[1][slot] +=
                       places.data[place + h] * gradient[token + h];
                 }
               });
}

/// Returns the gradient [samples][experts] of the balance loss with respect to
/// the sum of an expert's probabilities over a sample. This gradient is the
/// number of the sample's tokens that choose the expert, times coefficient *
/// experts / (count * positions). The operand `count` is in[1].
Doubles balanceSlopes(const Call &call) {
  const View logits = operand(call, 0);
  const auto positions = static_cast<std::size_t>(logits.shape[1]);
  const auto experts = static_cast<std::size_t>(logits.shape[2]);
  const double scale = call.attributes.number("coefficient", 0.0) *
                       static_cast<double>(experts) /
                       (call.in[1][0] * static_cast<double>(positions));
  Doubles slopes(logits.shape[0] * experts, 0.0);
  forEachToken(logits, topKOf(call),
               [&](std::size_t first, const Token &token) {
                 for (std::size_t e : token.chosen)
                   slopes[first / (positions * experts) * experts + e] += scale;
               });
  return slopes;
}

/// Calls `visit(first, token, slopes)` for every token. `slopes` has the
/// balanceSlopes() of the token's sample.
template <typename Visit>
void forEachBalanced(const Call &call, Visit &&visit) {
  const View logits = operand(call, 0);
  const Doubles slopes = balanceSlopes(call);
  const auto sample =
      static_cast<std::size_t>(logits.shape[1] * logits.shape[2]);
  const auto experts = static_cast<std::size_t>(logits.shape[2]);
  forEachToken(logits, topKOf(call),
               [&](std::size_t first, const Token &token) {
                 visit(first, token, &slopes[first / sample * experts]);
               });
}

void balanceLoss(Call &call) {
  const View logits = operand(call, 0);
  const auto sample =
      static_cast<std::size_t>(logits.shape[1] * logits.shape[2]);
  Doubles term(1, 0.0);
  forEachBalanced(
      call, [&](std::size_t first, const Token &token, const double *slopes) {
        for (std::size_t e = 0; e < token.share.size(); ++e)
          term[0] += slopes[e] * token.share[e];
        if ((first + token.share.size()) % sample == 0)
          call.addSample(0, term);
      });
}

void balanceLossGrad(Call &call) {
  forEachBalanced(
      call, [&](std::size_t first, const Token &token, const double *slopes) {
        softmaxBackward(
            token.share, [&](std::size_t e) { return slopes[e]; },
            &call.out[0][first]);
      });
}

} // namespace

void addMoe(KernelTable &table) {
  table["moe_gate"] = moeGate;
  table["moe_gate_grad"] = moeGateGrad;
  table["moe_slots"] = moeSlots;
  table["moe_dispatch"] = moeDispatch;
  table["moe_dispatch_grad"] = moeDispatchGrad;
  table["moe_combine"] = moeCombine;
  table["moe_combine_grad"] = moeCombineGrad;
  table["balance_loss"] = balanceLoss;
  table["balance_loss_grad"] = balanceLossGrad;
}

} // namespace mtplan::runtime::reference

//===- moe.cpp - Kernels of mixtures of experts ---------------------------===//

#include <algorithm>
#include <cmath>

#include "ir/interpret/kernel.h"

namespace mtplan::ir {
namespace {

/// The `topK` largest logits of a row, largest first, of equal ones the first.
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

/// A token's logits, made probabilities, and its choice.
struct Token {
  std::vector<double> share;
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

  /// Keeps the chosen experts' shares only, made to sum to 1 if `normalise`.
  void keepChosen(bool normalise) {
    double total = 0.0;
    for (std::size_t e : chosen)
      total += share[e];
    std::vector<double> kept(share.size(), 0.0);
    for (std::size_t e : chosen)
      kept[e] = normalise ? share[e] / total : share[e];
    share = std::move(kept);
  }
};

/// Calls `visit(first, token)` with the first element of every token.
template <typename Visit>
void forEachToken(const HostTensor &logits, std::size_t topK, Visit &&visit) {
  const auto experts = static_cast<std::size_t>(logits.shape.back());
  for (std::size_t first = 0; first < logits.data.size(); first += experts)
    visit(first, Token(&logits.data[first], experts, topK));
}

/// Softmax backward: with p the shares, d_i = p_i (g_i - sum_j p_j g_j).
template <typename GradientOf>
void softmaxBackward(const std::vector<double> &share, GradientOf &&gradientOf,
                     double *result) {
  double projection = 0.0;
  for (std::size_t e = 0; e < share.size(); ++e)
    projection += share[e] * gradientOf(e);
  for (std::size_t e = 0; e < share.size(); ++e)
    result[e] = share[e] * (gradientOf(e) - projection);
}

void moeGate(MoeGateOp op, KernelCall &call) {
  forEachToken(*call.operands[0], op.getTopK(),
               [&](std::size_t first, Token token) {
                 token.keepChosen(op.getNormalise());
                 std::copy(token.share.begin(), token.share.end(),
                           call.results[0].data.begin() +
                               static_cast<std::ptrdiff_t>(first));
               });
}

void moeGateGrad(MoeGateGradOp op, KernelCall &call) {
  forEachToken(*call.operands[0], op.getTopK(),
               [&](std::size_t first, Token token) {
                 // Normalised gates are a softmax over the chosen alone; the
                 // others are one over all, whose unchosen results go nowhere.
                 std::vector<double> gradient(token.share.size(), 0.0);
                 for (std::size_t e : token.chosen)
                   gradient[e] = call.operands[1]->data[first + e];
                 if (op.getNormalise())
                   token.keepChosen(/*normalise=*/true);
                 softmaxBackward(
                     token.share, [&](std::size_t e) { return gradient[e]; },
                     &call.results[0].data[first]);
               });
}

void moeSlots(MoeSlotsOp op, KernelCall &call) {
  const HostTensor &logits = *call.operands[0];
  const auto positions = static_cast<std::size_t>(logits.shape[1]);
  const auto experts = static_cast<std::size_t>(logits.shape[2]);
  std::vector<double> &result = call.results[0].data;
  std::fill(result.begin(), result.end(), -1.0);
  const std::size_t sample = positions * experts;
  for (std::size_t first = 0; first < logits.data.size(); first += sample) {
    std::vector<std::vector<std::size_t>> chosen;
    for (std::size_t s = 0; s < positions; ++s)
      chosen.push_back(
          choose(&logits.data[first + s * experts], experts, op.getTopK()));
    std::vector<double> queue(experts, 0.0);
    for (std::size_t choice = 0; choice < op.getTopK(); ++choice)
      for (std::size_t s = 0; s < positions; ++s) {
        const std::size_t e = chosen[s][choice];
        result[first + s * experts + e] = queue[e]++;
      }
  }
}

/// Calls `visit(token, place, slot)` for every token that has a place: the
/// first elements of its features in [b, s, h] and in [e, b, c, h], and its
/// element of the slots [b, s, e].
template <typename Visit>
void forEachPlace(const HostTensor &slots, const HostTensor &places,
                  Visit &&visit) {
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

void moeDispatch(MoeDispatchOp, KernelCall &call) {
  HostTensor &places = call.results[0];
  forEachPlace(*call.operands[1], places,
               [&](std::int64_t token, std::int64_t place, std::size_t) {
                 for (std::int64_t h = 0; h < places.shape[3]; ++h)
                   places.data[place + h] = call.operands[0]->data[token + h];
               });
}

void moeDispatchGrad(MoeDispatchGradOp, KernelCall &call) {
  const HostTensor &places = *call.operands[1];
  forEachPlace(*call.operands[0], places,
               [&](std::int64_t token, std::int64_t place, std::size_t) {
                 for (std::int64_t h = 0; h < places.shape[3]; ++h)
                   call.results[0].data[token + h] += places.data[place + h];
               });
}

void moeCombine(MoeCombineOp, KernelCall &call) {
  const HostTensor &places = *call.operands[0];
  forEachPlace(*call.operands[2], places,
               [&](std::int64_t token, std::int64_t place, std::size_t slot) {
                 const double gate = call.operands[1]->data[slot];
                 for (std::int64_t h = 0; h < places.shape[3]; ++h)
                   call.results[0].data[token + h] +=
                       gate * places.data[place + h];
               });
}

void moeCombineGrad(MoeCombineGradOp, KernelCall &call) {
  const HostTensor &places = *call.operands[0];
  const std::vector<double> &gradient = call.operands[3]->data;
  forEachPlace(*call.operands[2], places,
               [&](std::int64_t token, std::int64_t place, std::size_t slot) {
                 const double gate = call.operands[1]->data[slot];
                 for (std::int64_t h = 0; h < places.shape[3]; ++h) {
                   call.results[0].data[place + h] = gate * gradient[token + h];
                   call.results[1].data[slot] +=
                       places.data[place + h] * gradient[token + h];
                 }
               });
}

/// How often each expert of each sample is chosen, [b, e], times the loss's
/// slope by the sum of the sample's probabilities: coefficient * experts /
/// (count * positions).
template <typename Op>
std::vector<double> balanceSlopes(Op op, const KernelCall &call) {
  const HostTensor &logits = *call.operands[0];
  const auto positions = static_cast<std::size_t>(logits.shape[1]);
  const auto experts = static_cast<std::size_t>(logits.shape[2]);
  const double scale =
      op.getCoefficient().convertToDouble() * static_cast<double>(experts) /
      (call.operands[1]->data[0] * static_cast<double>(positions));
  std::vector<double> slopes(logits.shape[0] * experts, 0.0);
  forEachToken(logits, op.getTopK(),
               [&](std::size_t first, const Token &token) {
                 for (std::size_t e : token.chosen)
                   slopes[first / (positions * experts) * experts + e] += scale;
               });
  return slopes;
}

/// Calls `visit(first, token, slopes of its sample)` for every token.
template <typename Op, typename Visit>
void forEachBalanced(Op op, const KernelCall &call, Visit &&visit) {
  const HostTensor &logits = *call.operands[0];
  const std::vector<double> slopes = balanceSlopes(op, call);
  const auto sample =
      static_cast<std::size_t>(logits.shape[1] * logits.shape[2]);
  const auto experts = static_cast<std::size_t>(logits.shape[2]);
  forEachToken(logits, op.getTopK(),
               [&](std::size_t first, const Token &token) {
                 visit(first, token, &slopes[first / sample * experts]);
               });
}

void balanceLoss(BalanceLossOp op, KernelCall &call) {
  forEachBalanced(op, call,
                  [&](std::size_t, const Token &token, const double *slopes) {
                    for (std::size_t e = 0; e < token.share.size(); ++e)
                      call.results[0].data[0] += slopes[e] * token.share[e];
                  });
}

void balanceLossGrad(BalanceLossGradOp op, KernelCall &call) {
  forEachBalanced(
      op, call,
      [&](std::size_t first, const Token &token, const double *slopes) {
        softmaxBackward(
            token.share, [&](std::size_t e) { return slopes[e]; },
            &call.results[0].data[first]);
      });
}

} // namespace

void addMoeKernels(KernelTable &table) {
  table.add<MoeGateOp>(moeGate);
  table.add<MoeGateGradOp>(moeGateGrad);
  table.add<MoeSlotsOp>(moeSlots);
  table.add<MoeDispatchOp>(moeDispatch);
  table.add<MoeDispatchGradOp>(moeDispatchGrad);
  table.add<MoeCombineOp>(moeCombine);
  table.add<MoeCombineGradOp>(moeCombineGrad);
  table.add<BalanceLossOp>(balanceLoss);
  table.add<BalanceLossGradOp>(balanceLossGrad);
}

} // namespace mtplan::ir

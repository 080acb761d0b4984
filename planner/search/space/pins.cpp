//===- pins.cpp - Strategies that the user fixes --------------------------===//

#include "planner/search/space/pins.h"

#include <algorithm>
#include <set>

#include "base/nearest_word.h"
#include "planner/integers.h"

namespace mtplan::planner {

namespace {

std::string quoted(const PinText &pin) { return "pin \"" + pin.text + '"'; }

// Returns the name of a repeat: "h.3.mlp.fc1" for "h.*.mlp.fc1" and 3.
std::string nameOfRepeat(std::string label, int repeat) {
  std::size_t star = label.find('*');
  if (star != label.npos)
    label.replace(star, 1, std::to_string(repeat));
  return label;
}

struct NumberedPattern {
  std::string before, after;
  int first = 0, last = 0;

  std::string of(int repeat) const {
    return before + std::to_string(repeat) + after;
  }
};

// Returns the parts of a pattern: "h.", 4, 7 and ".mlp" for "h.4..7.mlp";
// nothing if the pattern has no range.
std::optional<NumberedPattern> numberedPattern(const std::string &pattern) {
  auto isDigit = [&](std::size_t i) {
    return i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9';
  };
  for (std::size_t dots = pattern.find(".."); dots != pattern.npos;
       dots = pattern.find("..", dots + 1)) {
    std::size_t begin = dots, end = dots + 2;
    while (begin > 0 && isDigit(begin - 1))
      --begin;
    while (isDigit(end))
      ++end;
    constexpr std::size_t kMostDigits = 8;
    if (begin == dots || end == dots + 2 || dots - begin > kMostDigits ||
        end - dots - 2 > kMostDigits)
      continue;
    return NumberedPattern{pattern.substr(0, begin), pattern.substr(end),
                           std::stoi(pattern.substr(begin, dots - begin)),
                           std::stoi(pattern.substr(dots + 2, end - dots - 2))};
  }
  return std::nullopt;
}

// Returns, for each repeat of the segment, whether the pin matches the label.
std::vector<bool> matchedRepeats(const PinText &pin, const std::string &label,
                                 const SegmentGraph &segment) {
  std::vector<bool> matched(at(segment.repeat));
  // If the pattern matches the label itself, a star of the pattern matches the
  // star of the label, and therefore the number of every repeat.
  if (label.find('*') == label.npos || matchesPattern(pin.pattern, label))
    matched.assign(matched.size(), matchesPattern(pin.pattern, label));
  else if (auto range = numberedPattern(pin.pattern))
    for (int i = 0; i < segment.repeat; ++i) {
      int repeat = segment.first + i;
      matched[at(i)] =
          repeat >= range->first && repeat <= range->last &&
          matchesPattern(range->of(repeat), nameOfRepeat(label, repeat));
    }
  else
    for (int i = 0; i < segment.repeat; ++i)
      matched[at(i)] =
          matchesPattern(pin.pattern, nameOfRepeat(label, segment.first + i));
  return matched;
}

bool matches(const PinText &pin, const std::string &label,
             const SegmentGraph &segment) {
  return contains(matchedRepeats(pin, label, segment), true);
}

template <typename Visit>
void forEachParameter(const SegmentGraph &segment, Visit visit) {
  std::set<int> seen;
  for (const Tensor &tensor : segment.tensors)
    if (tensor.kind == TensorKind::parameter &&
        seen.insert(tensor.parameter).second)
      visit(tensor.parameter);
}

class Resolver {
public:
  Resolver(const ModelGraph &graph, const std::vector<PinText> &pins,
           const PinSpace &space, std::vector<std::string> &errors)
      : model(graph), requests(pins), limits(space), findings(errors) {}

  Pins run() {
    result.parameters.resize(model.parameters.size());
    parameterPins.resize(model.parameters.size(), nullptr);
    for (const SegmentGraph &segment : model.segments) {
      result.ops.emplace_back(segment.ops.size());
      opPins.emplace_back(segment.ops.size(), nullptr);
    }
    for (const PinText &pin : requests)
      if (!(pin.word.empty() ? pinParameters(pin) : pinOps(pin)))
        noMatch(pin);
    for (std::size_t s = 0; s < model.segments.size(); ++s)
      pinGradients(s);
    return std::move(result);
  }

private:
  // Adds an error once, even if all parts of a cut segment report the error.
  void error(const std::string &text) {
    if (!contains(findings, text))
      findings.push_back(text);
  }

  bool pinOps(const PinText &pin) {
    bool any = false;
    for (std::size_t s = 0; s < model.segments.size(); ++s) {
      const SegmentGraph &segment = model.segments[s];
      for (std::size_t o = 0; o < segment.ops.size(); ++o) {
        const Op &op = segment.ops[o];
        if (!matches(pin, op.name, segment))
          continue;
        any = true;
        const PinText *&earlier = opPins[s][o];
        if (earlier && earlier->word != pin.word) {
          conflict(*earlier, pin, op.name);
        } else if (isLegal(pin, op)) {
          earlier = &pin;
          result.ops[s][o] = pin.word;
        }
      }
    }
    return any;
  }

  // Applies the pins of forward operators to the operators of their gradients,
  // whose names have an additional suffix. An operator that has its own pin, or
  // that lacks the pinned split (a bias has no rows), is not changed.
  void pinGradients(std::size_t s) {
    const SegmentGraph &segment = model.segments[s];
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const Op &op = segment.ops[o];
      if (op.phase != Phase::backward || opPins[s][o])
        continue;
      for (std::size_t f = 0; f < segment.ops.size(); ++f)
        if (segment.ops[f].phase == Phase::forward &&
            op.name.starts_with(segment.ops[f].name + ".") &&
            isUnderstood(result.ops[s][f], op))
          result.ops[s][o] = result.ops[s][f];
    }
  }

  // Returns whether the operator has the splits of a pin's value.
  bool isUnderstood(const std::string &value, const Op &op) const {
    return std::ranges::all_of(
        partsOfValue(value),
        [&](const std::string &word) { return hasSplit(word, op); });
  }

  bool hasSplit(const std::string &word, const Op &op) const {
    return word == "replicated" ||
           std::ranges::any_of(op.factors, [&](const Factor &factor) {
             return word == nameOf(factor.split) && mayBeUsed(factor) &&
                    (factor.split == Split::batch || !limits.tp ||
                     factor.size % *limits.tp == 0);
           });
  }

  void conflict(const PinText &one, const PinText &other,
                const std::string &name) {
    error(quoted(one) + " and " + quoted(other) + " both match " + name +
          " but have different values");
  }

  bool mayBeUsed(const Factor &factor) const {
    return factor.divisible && (factor.split == Split::feature ||
                                contains(limits.splits, factor.split));
  }

  bool isLegal(const PinText &pin, const Op &op) {
    return hasAxes(pin, pin.word) &&
           std::ranges::all_of(
               partsOfValue(pin.word),
               [&](const std::string &word) { return isLegal(pin, word, op); });
  }

  // Rejects a value that distinguishes tensor axes if there is only one axis.
  bool hasAxes(const PinText &pin, const std::string &value) {
    if (limits.hasTwoAxes || (value.find('+') == value.npos && value != "tp2"))
      return true;
    error(quoted(pin) + ": \"" + value +
          "\" needs two tensor axes; allow them with --tp-axes 2");
    return false;
  }

  bool isLegal(const PinText &pin, const std::string &word, const Op &op) {
    if (word == "replicated" || (word == "partial" && !op.linearGroups.empty()))
      return true;
    std::vector<std::string> legal;
    auto add = [&](const char *allowed) {
      if (!contains(legal, allowed))
        legal.emplace_back(allowed);
    };
    const Factor *indivisible = nullptr;
    bool excluded = false;
    for (const Factor &factor : op.factors) {
      bool named = word == nameOf(factor.split);
      if (!mayBeUsed(factor)) {
        excluded = excluded || (named && factor.divisible);
        continue;
      }
      add(nameOf(factor.split));
      if (!named)
        continue;
      // Batch splits are not checked: the micro-batch size is not chosen yet.
      if (factor.split == Split::batch || !limits.tp ||
          factor.size % *limits.tp == 0)
        return true;
      indivisible = &factor;
    }
    if (indivisible) {
      notDivided(pin, "the " + word + " dimension of " + op.name,
                 indivisible->size);
      return false;
    }
    add("replicated");
    if (!op.linearGroups.empty())
      add("partial");
    error(quoted(pin) + ": " + op.name + " cannot be " + word +
          (excluded ? ", which is not among the splits that are allowed" : "") +
          "; it may be " + base::listed(legal, " or "));
    return false;
  }

  void notDivided(const PinText &pin, const std::string &dimension,
                  std::int64_t size) {
    std::string divisors;
    for (std::int64_t d : divisorsOf(size))
      if (d <= 1024)
        divisors += ' ' + std::to_string(d);
    error(quoted(pin) + ": " + dimension + " is " + std::to_string(size) +
          ", which is not divisible by tp " + std::to_string(*limits.tp) +
          "; tp may be" + divisors);
  }

  bool pinParameters(const PinText &pin) {
    bool any = false;
    for (const SegmentGraph &segment : model.segments)
      forEachParameter(segment, [&](int index) {
        const Parameter &parameter = model.parameters[at(index)];
        if (!matches(pin, parameter.name, segment))
          return;
        any = true;
        const PinText *&earlier = parameterPins[at(index)];
        if (earlier && earlier->entries != pin.entries) {
          conflict(*earlier, pin, parameter.name);
        } else if (isLegal(pin, parameter)) {
          earlier = &pin;
          result.parameters[at(index)] = pin.entries;
        }
      });
    return any;
  }

  bool isLegal(const PinText &pin, const Parameter &parameter) {
    if (pin.entries.size() != parameter.shape.size()) {
      error(quoted(pin) + ": has " + std::to_string(pin.entries.size()) +
            (pin.entries.size() == 1 ? " entry, but " : " entries, but ") +
            parameter.name + " has " + std::to_string(parameter.shape.size()) +
            (parameter.shape.size() == 1 ? " dimension" : " dimensions"));
      return false;
    }
    for (const std::string &entry : pin.entries)
      if (!hasAxes(pin, entry))
        return false;
    auto split = std::ranges::find_if(
        pin.entries, [](const std::string &entry) { return !entry.empty(); });
    if (split == pin.entries.end())
      return true;
    if (!parameter.divisible) {
      error(quoted(pin) + ": " + parameter.name + " cannot be stored split");
      return false;
    }
    std::int64_t size =
        parameter.shape[static_cast<std::size_t>(split - pin.entries.begin())];
    if (limits.tp && size % *limits.tp != 0) {
      notDivided(pin,
                 "dimension " + std::to_string(split - pin.entries.begin()) +
                     " of " + parameter.name,
                 size);
      return false;
    }
    return true;
  }

  void noMatch(const PinText &pin) {
    std::vector<std::string> ops, parameters;
    auto note = [](std::vector<std::string> &names, const std::string &name) {
      if (!contains(names, name))
        names.push_back(name);
    };
    bool otherKind = false;
    for (const SegmentGraph &segment : model.segments) {
      for (const Op &op : segment.ops) {
        note(ops, op.name);
        otherKind |= pin.word.empty() && matches(pin, op.name, segment);
      }
      forEachParameter(segment, [&](int index) {
        const std::string &name = model.parameters[at(index)].name;
        note(parameters, name);
        otherKind |= !pin.word.empty() && matches(pin, name, segment);
      });
    }
    const char *kind = pin.word.empty() ? "parameter" : "operator";
    if (otherKind) {
      error(quoted(pin) + ": matches no " + kind +
            (pin.word.empty()
                 ? ", but matches operators, which need a word such as column"
                 : ", but matches parameters, which need a layout such as "
                   "[tp,-]"));
      return;
    }
    std::vector<std::string> near;
    std::vector<std::string> &names = pin.word.empty() ? parameters : ops;
    while (near.size() < 3 && !names.empty()) {
      near.emplace_back(base::nearestTo(pin.pattern, names));
      std::erase(names, std::string(near.back()));
    }
    error(quoted(pin) + ": matches no " + kind +
          (near.empty() ? std::string()
                        : "; the nearest are " + base::listed(near, " and ")));
  }

  const ModelGraph &model;
  const std::vector<PinText> &requests;
  const PinSpace &limits;
  std::vector<std::string> &findings;
  Pins result;
  std::vector<std::vector<const PinText *>> opPins; ///< by [segment][op]
  std::vector<const PinText *> parameterPins;
};

} // namespace

std::vector<std::string> partsOfValue(const std::string &value) {
  std::vector<std::string> parts{""};
  for (char c : value)
    if (c == '+')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

bool matchesPattern(const std::string &pattern, const std::string &name) {
  // On a mismatch the last star matches one more character. Earlier stars never
  // need to change.
  std::size_t p = 0, n = 0, star = pattern.npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

std::vector<std::vector<int>> pinCuts(const ModelGraph &graph,
                                      const std::vector<PinText> &pins) {
  std::vector<std::vector<int>> cuts;
  for (const SegmentGraph &segment : graph.segments) {
    std::set<int> here;
    auto cut = [&](const PinText &pin, const std::string &label) {
      std::vector<bool> matched = matchedRepeats(pin, label, segment);
      for (std::size_t i = 1; i < matched.size(); ++i)
        if (matched[i] != matched[i - 1])
          here.insert(segment.first + static_cast<int>(i));
    };
    for (const PinText &pin : pins) {
      if (!pin.word.empty())
        for (const Op &op : segment.ops)
          cut(pin, op.name);
      else
        forEachParameter(segment, [&](int index) {
          cut(pin, graph.parameters[at(index)].name);
        });
    }
    cuts.emplace_back(here.begin(), here.end());
  }
  return cuts;
}

Pins resolvePins(const ModelGraph &graph, const std::vector<PinText> &pins,
                 const PinSpace &space, std::vector<std::string> &errors) {
  return Resolver(graph, pins, space, errors).run();
}

} // namespace mtplan::planner

//===- table_loops.cpp - Loops over tables of tensors ---------------------===//

#include "codegen/source/table_loops.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

namespace mtplan::codegen {

namespace {

constexpr std::string_view kBuffers = "buf::";

bool isWordPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Divides an expression into the names of members of `buf` and the text around
/// them.
struct Pieces {
  std::vector<std::string> texts, names; ///< one text more than names
};

Pieces piecesOf(const std::string &expression) {
  Pieces pieces;
  std::string text;
  for (std::size_t i = 0; i < expression.size();) {
    if (!std::string_view(expression).substr(i).starts_with(kBuffers)) {
      text += expression[i++];
      continue;
    }
    std::size_t end = i + kBuffers.size();
    while (end < expression.size() && isWordPart(expression[end]))
      ++end;
    pieces.texts.push_back(std::exchange(text, {}));
    pieces.names.push_back(
        expression.substr(i + kBuffers.size(), end - i - kBuffers.size()));
    i = end;
  }
  pieces.texts.push_back(text);
  return pieces;
}

/// Returns the parts of `text` between the separators that are outside of
/// brackets.
std::vector<std::string> splitOutside(const std::string &text,
                                      const std::string &separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    depth += (text[i] == '(' || text[i] == '{' || text[i] == '[') -
             (text[i] == ')' || text[i] == '}' || text[i] == ']');
    if (depth == 0 && text.compare(i, separator.size(), separator) == 0) {
      parts.emplace_back();
      i += separator.size();
    } else {
      parts.back() += text[i++];
    }
  }
  return parts;
}

/// Returns whether a member of `buf` is a number.
bool isNumber(const std::string &member) {
  return member.starts_with("firstLayer") || member.starts_with("layers") ||
         member.starts_with("line");
}

/// Returns whether an expression is a constant of the program: it has numbers
/// and names of sizes, and calls nothing.
bool isConstantText(const std::string &text) {
  if (!std::ranges::all_of(piecesOf(text).names, isNumber))
    return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!isWordPart(c) &&
        std::string_view(" +-*/().:").find(c) == std::string_view::npos)
      return false;
    if (c == '(' && i > 0 && isWordPart(text[i - 1]))
      return false;
  }
  return text.find("now") == std::string::npos;
}

std::string typeOf(const std::vector<std::string> &values) {
  const auto all = [&](auto is) { return std::ranges::all_of(values, is); };
  if (all([](const std::string &one) {
        return one == "true" || one == "false";
      }))
    return "bool";
  if (all([](const std::string &one) { return one.starts_with('"'); }))
    return "const char *";
  return all(isConstantText) ? "std::int64_t" : "";
}

/// Returns the words at the end that all names have in common, without the
/// numbers that make them different: "exp_avg"; "" if there are none.
std::string commonEnd(const std::vector<std::string> &names) {
  const auto wordsOf = [](const std::string &name) {
    std::vector<std::string> words = splitOutside(name, "_");
    if (words.size() > 1 &&
        std::ranges::all_of(
            words.back(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      words.pop_back();
    return words;
  };
  std::vector<std::string> common = wordsOf(names.front());
  for (const std::string &name : names) {
    const std::vector<std::string> words = wordsOf(name);
    std::size_t same = 0;
    while (same < std::min(common.size(), words.size()) &&
           common[common.size() - 1 - same] == words[words.size() - 1 - same])
      ++same;
    common.erase(common.begin(),
                 common.end() - static_cast<std::ptrdiff_t>(same));
  }
  std::string all;
  for (const std::string &word : common)
    if (!all.empty() || std::isalpha(static_cast<unsigned char>(word[0])) != 0)
      all += (all.empty() ? "" : "_") + word;
  return all;
}

/// Returns the names of a function's parameters, for columns of a table.
const std::vector<std::string> &parametersOf(const std::string &function) {
  static const std::map<std::string, std::vector<std::string>> kNames = {
      {"layers", {"layers"}},
      {"take<float>", {"", "from", "to"}},
      {"allReduce", {"", "", "tensor", "to", "elements"}},
      {"allGather", {"", "", "from", "to", "outer", "inner"}},
      {"reduceScatter", {"", "", "from", "to", "outer", "inner"}},
      {"allToAll", {"", "", "from", "to", "outer", "inner", "outer", "inner"}},
      {"adamw<float>",
       {"", "gradient", "weight", "master", "exp_avg", "exp_avg_sq", "elements",
        "", "decays"}},
      {"adamw<double>",
       {"", "gradient", "weight", "master", "exp_avg", "exp_avg_sq", "elements",
        "", "decays"}}};
  static const std::vector<std::string> kNone;
  const auto found = kNames.find(function);
  return found == kNames.end() ? kNone : found->second;
}

} // namespace

std::string LoopTable::column(const std::string &type, const std::string &hint,
                              const std::vector<std::string> &values) {
  for (const Column &one : columns)
    if (one.values == values)
      return "row." + one.name;
  std::string free = hint;
  for (int i = 2;
       std::ranges::find(columns, free, &Column::name) != columns.end(); ++i)
    free = hint + std::to_string(i);
  columns.push_back({type, free, values});
  return "row." + free;
}

std::optional<std::string>
LoopTable::uniteBuffers(const std::vector<std::string> &values,
                        const std::string &hint) {
  std::vector<Pieces> all;
  for (const std::string &value : values) {
    all.push_back(piecesOf(value));
    if (all.back().texts != all.front().texts)
      return std::nullopt;
  }
  std::string united = all.front().texts.front();
  for (std::size_t n = 0; n < all.front().names.size(); ++n) {
    std::vector<std::string> names;
    for (const Pieces &one : all)
      names.push_back(one.names[n]);
    const bool isSame = std::ranges::all_of(
        names, [&](const std::string &name) { return name == names.front(); });
    if (isSame) {
      united += std::string(kBuffers) + names.front();
    } else {
      const bool areNumbers = std::ranges::all_of(names, isNumber);
      if (!areNumbers && std::ranges::any_of(names, [](const std::string &one) {
            return isNumber(one) || one.ends_with("_rows") ||
                   one.ends_with("_parameters");
          }))
        return std::nullopt;
      std::string name = areNumbers ? "layers" : hint;
      if (name.empty())
        name = commonEnd(names);
      for (std::string &one : names)
        one.insert(0, kBuffers);
      united += column(areNumbers ? "int" : "Buffer",
                       name.empty() ? "tensor" : name, names);
    }
    united += all.front().texts[n + 1];
  }
  return united;
}

/// Unites calls of one function, or products of as many factors, argument by
/// argument.
std::optional<std::string>
LoopTable::uniteCalls(const std::vector<std::string> &values,
                      const std::string &hint) {
  const auto uniteParts =
      [&](const std::string &separator,
          const auto &partsOf) -> std::optional<std::string> {
    std::vector<std::vector<std::string>> all;
    for (const std::string &value : values) {
      all.push_back(partsOf(value));
      if (all.back().size() != all.front().size() || all.back().size() < 2)
        return std::nullopt;
    }
    std::string united;
    for (std::size_t p = 0; p < all.front().size(); ++p) {
      std::vector<std::string> parts;
      for (const std::vector<std::string> &one : all)
        parts.push_back(one[p]);
      const std::optional<std::string> part = unite(parts, hint);
      if (!part)
        return std::nullopt;
      united += (p > 0 ? separator : "") + *part;
    }
    return united;
  };
  const std::string &first = values.front();
  const std::size_t open = first.find('(');
  const std::string head = first.substr(0, open) + "(";
  const bool areCalls =
      open != std::string::npos && open > 0 && isWordPart(first[open - 1]) &&
      std::ranges::all_of(values, [&](const std::string &value) {
        return value.starts_with(head) && value.ends_with(')') &&
               splitOutside(value, " * ").size() == 1;
      });
  if (areCalls) {
    const auto united = uniteParts(", ", [&](const std::string &value) {
      return splitOutside(
          value.substr(head.size(), value.size() - head.size() - 1), ", ");
    });
    return united ? std::optional(head + *united + ")") : std::nullopt;
  }
  return uniteParts(" * ", [](const std::string &value) {
    return splitOutside(value, " * ");
  });
}

std::optional<std::string>
LoopTable::unite(const std::vector<std::string> &values,
                 const std::string &hint) {
  if (std::ranges::all_of(values, [&](const std::string &value) {
        return value == values.front();
      }))
    return values.front();
  if (const auto united = uniteBuffers(values, hint))
    return united;
  if (const std::string type = typeOf(values); !type.empty())
    return column(hint == "layers" ? "int" : type, hint.empty() ? "size" : hint,
                  values);
  return uniteCalls(values, hint);
}

std::optional<Text>
LoopTable::unite(const std::vector<std::vector<TextItem>> &rows) {
  // Comments may differ in number, so that only those of the first row count.
  const auto callsOf = [](const std::vector<TextItem> &items) {
    std::vector<const TextItem *> calls;
    for (const TextItem &item : items)
      if (item.kind != TextItem::Kind::comment)
        calls.push_back(&item);
    return calls;
  };
  std::vector<std::vector<const TextItem *>> calls;
  for (const std::vector<TextItem> &row : rows) {
    calls.push_back(callsOf(row));
    if (calls.back().size() != calls.front().size())
      return std::nullopt;
  }
  const auto isInAll = [&](const TextItem &comment) {
    return std::ranges::all_of(rows, [&](const std::vector<TextItem> &row) {
      return std::ranges::any_of(row, [&](const TextItem &item) {
        return item.kind == TextItem::Kind::comment &&
               item.words == comment.words;
      });
    });
  };
  Text united;
  std::size_t next = 0;
  for (const TextItem &item : rows.front()) {
    if (item.kind == TextItem::Kind::comment) {
      TextItem comment = item;
      if (!isInAll(item))
        comment.words = std::exchange(comment.end, {});
      if (!isInAll(item) && item.summary.empty())
        continue;
      if (!isInAll(item))
        comment.words = item.summary;
      united.add(comment);
      continue;
    }
    TextItem call = item;
    const std::size_t own = next++;
    const std::vector<std::string> &names = parametersOf(item.words);
    for (std::size_t r = 1; r < rows.size(); ++r) {
      const TextItem &other = *calls[r][own];
      if (other.kind != item.kind || other.depth != item.depth ||
          other.words != item.words || other.end != item.end ||
          other.arguments.size() != item.arguments.size())
        return std::nullopt;
    }
    for (std::size_t a = 0; a < item.arguments.size(); ++a) {
      std::vector<std::string> values;
      for (const auto &row : calls)
        values.push_back(row[own]->arguments[a]);
      const auto argument =
          unite(values, a < names.size() ? names[a] : std::string());
      if (!argument)
        return std::nullopt;
      call.arguments[a] = *argument;
    }
    united.add(std::move(call));
  }
  return united;
}

void LoopTable::write(const std::string &name, const std::string &comment,
                      Text &text) const {
  text.line();
  text.comment(comment);
  std::string members, last;
  for (const Column &one : columns) {
    members +=
        one.type == last ? ", " : (last.empty() ? "" : "; ") + one.type + " ";
    members += one.name;
    last = one.type;
  }
  text.open("static constexpr struct {");
  text.line(members + ";");
  text.close("} " + name + "[] = {");
  for (std::size_t r = 0; r < columns.front().values.size(); ++r) {
    std::vector<std::string> values;
    for (const Column &one : columns)
      values.push_back(one.values[r]);
    text.call("    {", values, "},");
  }
  text.line("};");
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

/// Replaces whole words of a text.
std::string
withWords(const std::string &text,
          const std::map<std::string, std::string, std::less<>> &words) {
  std::string all;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && isWordPart(text[end]))
      ++end;
    if (end == i) {
      all += text[i++];
      continue;
    }
    const std::string word = text.substr(i, end - i);
    const auto found = words.find(word);
    all += found == words.end() ? word : found->second;
    i = end;
  }
  return all;
}

/// Returns the end of an event's name: "gathered" for
/// "h_attn_q_bias_gathered_2".
std::string endOfEvent(const std::string &event) {
  const std::string end = commonEnd({event});
  return end.substr(end.rfind('_') + 1);
}

/// Returns items [begin, end) with local names for the events that they
/// declare, or nothing if an item after them uses such an event.
/// \param taken  names that items before these declare
std::optional<std::vector<TextItem>>
withLocalEvents(const std::vector<TextItem> &items, std::size_t begin,
                std::size_t end, std::set<std::string> taken = {}) {
  std::map<std::string, std::string, std::less<>> local;
  taken.insert({"now", "row"});
  for (std::size_t i = begin; i < end; ++i)
    if (!items[i].event.empty())
      local[items[i].event] = identifierFor(endOfEvent(items[i].event), taken);
  if (!local.empty())
    for (std::size_t i = end; i < items.size(); ++i)
      if (items[i].kind != TextItem::Kind::comment &&
          withWords(items[i].words, local) != items[i].words)
        return std::nullopt;
  std::vector<TextItem> own(items.begin() + static_cast<std::ptrdiff_t>(begin),
                            items.begin() + static_cast<std::ptrdiff_t>(end));
  for (TextItem &item : own)
    if (item.kind != TextItem::Kind::comment) {
      item.words = withWords(item.words, local);
      item.event = withWords(item.event, local);
    }
  return own;
}

/// Describes a repetition: `rows` times `length` items. Comments count as items
/// of the call after them.
struct Repetition {
  std::vector<std::vector<TextItem>> rows;
  std::size_t calls = 0; ///< calls and lines of a row
  std::size_t end = 0;   ///< one past the last item
  std::size_t saved() const {
    return rows.empty() ? 0 : (rows.size() - 1) * calls;
  }
};

/// Finds the rows that begin with item `begin` and have `calls` calls each.
/// \param taken  names of events that rows cannot declare
Repetition repetitionAt(const std::vector<TextItem> &items, std::size_t begin,
                        std::size_t calls, const std::set<std::string> &taken) {
  Repetition found;
  found.calls = calls;
  found.end = begin;
  const std::size_t depth = items[begin].depth;
  if (items[begin].words.starts_with('}'))
    return found;
  while (true) {
    std::size_t end = found.end, own = 0;
    for (; end < items.size() && own < calls; ++end) {
      if (items[end].depth < depth)
        return found;
      own += items[end].kind != TextItem::Kind::comment ? 1 : 0;
    }
    const bool isWhole = own == calls && items[end - 1].depth == depth &&
                         (end == items.size() || items[end].depth <= depth) &&
                         !items[end - 1].words.ends_with('{');
    if (!isWhole)
      return found;
    auto row = withLocalEvents(items, found.end, end, taken);
    if (!row)
      return found;
    if (!found.rows.empty()) {
      LoopTable scratch;
      if (!scratch.unite({found.rows.front(), *row}))
        return found;
    }
    found.rows.push_back(std::move(*row));
    found.end = end;
  }
}

/// Returns whether an item is a collective, or a comment, an event or a wait.
bool isOfCollectives(const TextItem &item) {
  return item.kind == TextItem::Kind::comment || !item.event.empty() ||
         item.words.starts_with("now.wait(") ||
         (item.kind == TextItem::Kind::call &&
          (item.words == "allReduce" || item.words == "allGather" ||
           item.words == "reduceScatter" || item.words == "allToAll"));
}

/// Returns the summaries of a row's comments: "reduce_scatter over dp,
/// all_reduce over tp".
std::string summariesOf(const std::vector<TextItem> &row) {
  std::string all;
  for (const TextItem &item : row)
    if (!item.summary.empty())
      all += (all.empty() ? "" : ", ") + item.summary;
  return all;
}

} // namespace

Text withShortEvents(const Text &body) {
  const auto items = withLocalEvents(body.items(), 0, body.items().size());
  if (!items)
    return body;
  Text all;
  for (const TextItem &item : *items)
    all.add(item);
  return all;
}

Text TableLoops::withLoops(const Text &text, const std::string &function,
                           Calls which) {
  constexpr std::size_t kLongest = 12; // maximum calls of a row
  const auto isAllowed = [&](const Repetition &one) {
    constexpr std::size_t kLeastSaved = 2;
    return one.saved() >= kLeastSaved &&
           (which == Calls::all ||
            std::ranges::all_of(one.rows.front(), isOfCollectives));
  };
  const std::vector<TextItem> &items = text.items();
  Text looped;
  std::set<std::string> events; // declared outside of loops
  for (std::size_t i = 0; i < items.size();) {
    Repetition best;
    for (std::size_t calls = 1; calls <= kLongest; ++calls) {
      Repetition one = repetitionAt(items, i, calls, events);
      if (one.saved() > best.saved() && isAllowed(one))
        best = std::move(one);
    }
    LoopTable table;
    const auto united =
        best.rows.empty() ? std::nullopt : table.unite(best.rows);
    if (!united || table.isEmpty()) {
      if (!items[i].event.empty())
        events.insert(items[i].event);
      looped.add(items[i++]);
      continue;
    }
    const std::string name = identifierFor(function + "_rows", taken);
    table.write(name, "The tensors of a loop in " + function + "().", written);
    const std::size_t depth = items[i].depth;
    if (const std::string what = summariesOf(best.rows.front()); !what.empty())
      looped.add({TextItem::Kind::comment, depth,
                  "For the tensors of each row: " + what + "."});
    const std::string end = best.calls == 1 ? ")" : ") {";
    looped.add({TextItem::Kind::line, depth,
                "for (const auto &row : buf::" + name + end});
    for (TextItem item : united->items())
      if (item.kind != TextItem::Kind::comment) {
        ++item.depth;
        looped.add(std::move(item));
      }
    if (best.calls > 1)
      looped.add({TextItem::Kind::line, depth, "}"});
    i = best.end;
  }
  return looped;
}

std::optional<UnitedFunction>
TableLoops::united(const std::vector<Text> &functions,
                   const std::vector<std::string> &layers,
                   const std::string &name) {
  LoopTable table;
  std::vector<std::vector<TextItem>> rows;
  for (std::size_t f = 0; f < functions.size(); ++f) {
    rows.push_back(functions[f].items());
    // The first column has the layers.
    rows.back().insert(rows.back().begin(),
                       {TextItem::Kind::call, 0, "layers", {layers[f]}, {}});
  }
  std::optional<Text> all = table.unite(rows);
  if (!all || table.isEmpty())
    return std::nullopt;
  Text body;
  for (std::size_t i = 1; i < all->items().size(); ++i)
    body.add(all->items()[i]);
  const std::string rowsName = identifierFor(name + "_rows", taken);
  table.write(rowsName, "The tensors of each run of " + name + "().", written);
  return UnitedFunction{body, rowsName, all->items().front().arguments.front()};
}

} // namespace mtplan::codegen

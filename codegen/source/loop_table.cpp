//===- loop_table.cpp - The table that a loop reads -----------------------===//

#include "codegen/source/loop_table.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

namespace mtplan::codegen {

namespace {

/// Splits `text` at each separator outside of brackets.
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

} // namespace

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

namespace {

bool isNumber(const std::string &member) {
  const std::size_t end = member.find_last_not_of("0123456789");
  const std::string name = member.substr(0, end + 1);
  return name == "firstLayer" || name == "layers" ||
         member.starts_with("lineTo") || member.starts_with("lineFrom");
}

bool isUpdateTable(const std::string &member) {
  return member.find("_parameters") != std::string::npos;
}

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words(1);
  for (const char c : text)
    if (isWordPart(c))
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  return words;
}

/// Returns whether an expression is a constant of the program: it consists of
/// numbers and names of sizes, and contains no call.
bool isConstantText(const std::string &text) {
  if (!std::ranges::all_of(piecesOf(text).names, isNumber))
    return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!isWordPart(c) &&
        std::string_view(" +-*/():").find(c) == std::string_view::npos)
      return false;
    if (c == '(' && i > 0 && isWordPart(text[i - 1]))
      return false;
  }
  static const std::set<std::string, std::less<>> kOthers = {
      "now", "f16", "bf16", "f32", "f64", "i32", "true", "false"};
  const std::vector<std::string> words = wordsOf(text);
  return std::ranges::none_of(words, [](const std::string &word) {
    return kOthers.contains(word) || word.starts_with("nccl");
  });
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

/// Returns the names of a function's parameters, which become names of table
/// columns. If a name is empty, the parameter does not determine the name of
/// its column.
const std::vector<std::string> &parametersOf(const std::string &function) {
  static const std::map<std::string, std::vector<std::string>> kNames = {
      {"layers", {"layers"}},
      {"take<float>", {"", "from", "to"}},
      {"updateAll<float>", {"", "list", "updated", "count"}},
      {"updateAll<double>", {"", "list", "updated", "count"}},
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
  std::set<std::string> taken;
  for (const Column &one : columns)
    taken.insert(one.name);
  const std::string free = identifierFor(hint, taken);
  columns.push_back({type, free, values});
  return "row." + free;
}

std::optional<std::string>
LoopTable::uniteBuffers(const std::vector<std::string> &values,
                        const std::string &hint) {
  std::vector<MemberPieces> all;
  for (const std::string &value : values) {
    all.push_back(piecesOf(value));
    if (all.back().texts != all.front().texts)
      return std::nullopt;
  }
  std::string united = all.front().texts.front();
  for (std::size_t n = 0; n < all.front().names.size(); ++n) {
    std::vector<std::string> names;
    names.reserve(all.size());
    for (const MemberPieces &one : all)
      names.push_back(one.names[n]);
    const bool isSame = std::ranges::all_of(
        names, [&](const std::string &name) { return name == names.front(); });
    if (isSame) {
      united += kMembers + names.front();
    } else {
      const bool areNumbers = std::ranges::all_of(names, isNumber),
                 areUpdates = std::ranges::all_of(names, isUpdateTable);
      if (!areNumbers && !areUpdates &&
          std::ranges::any_of(names, [](const std::string &one) {
            return isNumber(one) || isUpdateTable(one) ||
                   one.ends_with("_rows");
          }))
        return std::nullopt;
      std::string name = areNumbers ? "layers" : hint;
      if (name.empty())
        name = commonEnd(names);
      for (std::string &one : names)
        one.insert(0, kMembers);
      united += column(areNumbers   ? "int"
                       : areUpdates ? "const UpdatedBuffers *"
                                    : "Buffer",
                       name.empty() ? "tensor" : name, names);
    }
    united += all.front().texts[n + 1];
  }
  return united;
}

/// Unites calls of one function by uniting each argument, or products with the
/// same number of factors by uniting each factor.
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
      parts.reserve(all.size());
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
  if (std::ranges::all_of(values, [](const std::string &value) {
        return value.starts_with("std::size(");
      }))
    return column("std::int64_t", hint, values);
  if (auto united = uniteBuffers(values, hint))
    return united;
  if (const std::string type = typeOf(values); !type.empty())
    return column(hint == "layers" ? "int" : type, hint.empty() ? "size" : hint,
                  values);
  return uniteCalls(values, hint);
}

std::optional<Text>
LoopTable::unite(const std::vector<std::vector<TextItem>> &rows) {
  // The comments of rows may differ, so only the calls of rows must correspond.
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
      if (!isInAll(item)) {
        if (item.summary.empty())
          continue;
        comment.words = item.summary;
        comment.end.clear();
      }
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
      values.reserve(calls.size());
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

} // namespace mtplan::codegen

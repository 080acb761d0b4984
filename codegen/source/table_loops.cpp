//===- table_loops.cpp - Loops over tables of tensors ---------------------===//

#include "codegen/source/table_loops.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace mtplan::codegen {

namespace {

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

/// Returns the last word of an event's name, without a number after the word:
/// "gathered" for "h_attn_q_bias_gathered_2".
std::string endOfEvent(const std::string &event) {
  const std::string end = commonEnd({event});
  return end.substr(end.rfind('_') + 1);
}

/// Returns items [begin, end) with short, local names for the events that these
/// items declare. Returns nothing if a later item uses one of these events.
/// \param taken  names that earlier items declare
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

/// Describes a repetition. A comment belongs to the same row as the call after
/// the comment.
struct Repetition {
  std::vector<std::vector<TextItem>> rows;
  std::size_t calls = 0; ///< calls and lines per row
  std::size_t end = 0;   ///< one past the last item
  std::size_t saved() const {
    return rows.empty() ? 0 : (rows.size() - 1) * calls;
  }
};

/// Finds the rows from item `begin` on, with `calls` calls each.
/// \param taken  event names that rows must not declare
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

bool isOfCollectives(const TextItem &item) {
  return item.kind == TextItem::Kind::comment || !item.event.empty() ||
         item.words.starts_with("now.wait(") ||
         (item.kind == TextItem::Kind::call &&
          (item.words == "allReduce" || item.words == "allGather" ||
           item.words == "reduceScatter" || item.words == "allToAll"));
}

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
  constexpr std::size_t kLongest = 12; // maximum calls per row
  const auto isAllowed = [&](const Repetition &one) {
    constexpr std::size_t kLeastSaved = 2;
    return one.saved() >= kLeastSaved &&
           (which == Calls::all ||
            std::ranges::all_of(one.rows.front(), isOfCollectives));
  };
  const std::vector<TextItem> &items = text.items();
  Text looped;
  std::set<std::string> events; // names declared outside of loops
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
    table.write(name, "A loop in " + function + "() reads these rows.",
                written);
    const std::size_t depth = items[i].depth;
    if (const std::string what = summariesOf(best.rows.front()); !what.empty())
      looped.add({TextItem::Kind::comment, depth,
                  "For the tensors of each row: " + what + "."});
    looped.add({TextItem::Kind::line, depth,
                std::string("for (const auto &row : buf::")
                    .append(name)
                    .append(best.calls == 1 ? ")" : ") {")});
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

UnitedFunction TableLoops::united(const std::vector<Text> &functions,
                                  const std::vector<std::string> &layers,
                                  const std::string &name) {
  LoopTable table;
  std::vector<std::vector<TextItem>> rows;
  for (std::size_t f = 0; f < functions.size(); ++f) {
    rows.push_back(functions[f].items());
    // The number of layers becomes the first column.
    rows.back().insert(rows.back().begin(),
                       {TextItem::Kind::call, 0, "layers", {layers[f]}, {}});
  }
  std::optional<Text> all = table.unite(rows);
  if (!all)
    throw std::logic_error(name + ": functions that differ have one table");
  Text body;
  for (std::size_t i = 1; i < all->items().size(); ++i)
    body.add(all->items()[i]);
  const std::string rowsName = identifierFor(name + "_rows", taken);
  table.write(rowsName, "Each call of " + name + "() reads one of these rows.",
              written);
  return UnitedFunction{body, rowsName, all->items().front().arguments.front()};
}

} // namespace mtplan::codegen

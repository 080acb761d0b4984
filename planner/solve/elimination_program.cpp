//===- elimination_program.cpp - The layout of an elimination ---*- C++ -*-===//
//
// Scopes are computed in elimination order, and layouts in reverse, since a
// result has the layout that its reader needs.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/elimination_program.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace mtplan::planner {
namespace {

using Scope = std::vector<int>;

/// Limits the joined table entries, which bounds memory (8 GB) and time
/// (seconds).
constexpr double kMostEntries = 1e9;

bool contains(const Scope &scope, int variable) {
  return std::find(scope.begin(), scope.end(), variable) != scope.end();
}

void insert(Scope &scope, const Scope &more) {
  for (int variable : more)
    if (!contains(scope, variable))
      scope.push_back(variable);
}

/// Returns the variables of `layout` that `scope` has, in the layout's order.
Scope restrict(const Scope &layout, const Scope &scope) {
  Scope result;
  for (int variable : layout)
    if (contains(scope, variable))
      result.push_back(variable);
  return result;
}

class Compiler {
public:
  Compiler(const Problem &theShape, LiveValues live, const Scope &keep)
      : shape(theShape) {
    program.live = std::move(live);
    insert(program.keep, keep);
    for (const std::vector<int> &values : program.live)
      sizes.push_back(static_cast<int>(values.size()));
    for (const CostTable &table : shape.tables) {
      Scope scope;
      for (int variable : table.scope)
        if (sizes[variable] > 1)
          scope.push_back(variable);
      scopes.push_back(std::move(scope));
    }
  }

  EliminationProgram compile() {
    findScopes();
    for (std::size_t b = program.buckets.size(); b-- > 0;)
      layOut(b);
    for (std::size_t b = 0; b < program.buckets.size(); ++b)
      addInputs(b);
    return std::move(program);
  }

private:
  std::size_t sizeOf(const Scope &scope) const {
    std::size_t size = 1;
    for (int variable : scope)
      size *= static_cast<std::size_t>(sizes[variable]);
    return size;
  }

  std::size_t allocate(std::size_t size) {
    std::size_t offset = program.arenaSize;
    program.arenaSize += size;
    return offset;
  }

  /// Assigns each table to the bucket that first eliminates one of its
  /// variables.
  void findScopes() {
    EliminationOrder plan = planElimination(sizes, scopes, program.keep);
    double kept = 1.0;
    for (int variable : program.keep)
      kept *= sizes[variable];
    if (plan.work + kept > kMostEntries)
      throw TooLarge(
          "a segment has too many combinations of layouts: its "
          "tables would have " +
          std::to_string(std::llround(std::min(plan.work + kept, 1e18) / 1e6)) +
          " million entries, of at most " +
          std::to_string(std::llround(kMostEntries / 1e6)) + " million");
    std::vector<std::size_t> position(sizes.size(), plan.order.size());
    for (std::size_t i = 0; i < plan.order.size(); ++i)
      position[plan.order[i]] = i;
    auto readerOf = [&](const Scope &scope) {
      std::size_t reader = plan.order.size();
      for (int variable : scope)
        reader = std::min(reader, position[variable]);
      return reader;
    };
    std::size_t count = plan.order.size() + 1;
    program.buckets.resize(count);
    tablesOf.resize(count);
    messagesOf.resize(count);
    readers.resize(count);
    for (std::size_t t = 0; t < scopes.size(); ++t)
      tablesOf[readerOf(scopes[t])].push_back(static_cast<int>(t));
    for (std::size_t b = 0; b + 1 < count; ++b) {
      Bucket &bucket = program.buckets[b];
      bucket.variable = plan.order[b];
      bucket.values = static_cast<std::size_t>(sizes[bucket.variable]);
      Scope joined;
      for (int table : tablesOf[b])
        insert(joined, scopes[table]);
      for (int message : messagesOf[b])
        insert(joined, program.buckets[message].scope);
      for (int variable : joined)
        if (variable != bucket.variable)
          bucket.scope.push_back(variable);
      readers[b] = readerOf(bucket.scope);
      messagesOf[readers[b]].push_back(static_cast<int>(b));
    }
    for (int variable : program.keep)
      if (sizes[variable] > 1)
        program.buckets.back().scope.push_back(variable);
  }

  void layOut(std::size_t index) {
    Bucket &bucket = program.buckets[index];
    if (index + 1 < program.buckets.size())
      bucket.scope = restrict(layouts[readers[index]], bucket.scope);
    else
      layouts.resize(program.buckets.size());
    for (int variable : bucket.scope)
      bucket.domains.push_back(sizes[variable]);
    bucket.size = sizeOf(bucket.scope);
    chooseBlock(index);
    Scope &layout = layouts[index];
    layout.assign(bucket.scope.begin(), bucket.scope.begin() + bucket.outer);
    if (bucket.variable >= 0)
      layout.push_back(bucket.variable);
    layout.insert(layout.end(), bucket.scope.begin() + bucket.outer,
                  bucket.scope.end());
  }

  std::vector<Scope> inputScopes(std::size_t index) const {
    std::vector<Scope> result;
    for (int table : tablesOf[index])
      result.push_back(scopes[table]);
    for (int message : messagesOf[index])
      result.push_back(program.buckets[message].scope);
    return result;
  }

  /// Chooses the number of variables in a row. Long rows are fast, but inputs
  /// that lack some of a row's variables must be expanded first. The constants
  /// are approximate nanoseconds.
  void chooseBlock(std::size_t index) {
    constexpr std::size_t kLongestRow = 1024;
    Bucket &bucket = program.buckets[index];
    const Scope &scope = bucket.scope;
    std::vector<Scope> inputs = inputScopes(index);
    auto values = static_cast<double>(bucket.values);
    double bestCost = 0.0;
    for (std::size_t length = scope.empty() ? 0 : 1; length <= scope.size();
         ++length) {
      Scope block(scope.end() - length, scope.end());
      std::size_t row = sizeOf(block);
      std::size_t outer = bucket.size / row;
      if (length > 1 && row > kLongestRow)
        break;
      double rows = 0.0;
      double expanding = 0.0;
      for (const Scope &input : inputs) {
        Scope common = restrict(block, input);
        rows += common.empty() ? 0.0 : 1.0;
        std::size_t expanded = sizeOf(input) / sizeOf(common) * row;
        if (!common.empty() && common.size() < length)
          expanding += 0.7 * static_cast<double>(expanded);
      }
      double cost =
          expanding +
          static_cast<double>(outer) *
              (6.0 + 2.0 * static_cast<double>(inputs.size()) +
               values * (2.0 + 0.25 * rows * static_cast<double>(row)));
      if (length <= 1 || cost < bestCost) {
        bestCost = cost;
        bucket.outer = scope.size() - length;
        bucket.outerSize = outer;
        bucket.blockSize = row;
      }
    }
  }

  /// Groups tables into leaves, each of which holds the sum of its tables, so
  /// that the join reads fewer inputs. A table joins a leaf whose scope
  /// contains the table's, or with which the table forms a small leaf.
  std::vector<std::pair<Scope, std::vector<int>>>
  groupTables(std::size_t index) const {
    const Bucket &bucket = program.buckets[index];
    Scope block(bucket.scope.begin() + bucket.outer, bucket.scope.end());
    std::vector<std::pair<Scope, std::vector<int>>> groups;
    for (int table : tablesOf[index]) {
      Scope scope = scopes[table];
      if (!restrict(block, scope).empty())
        insert(scope, block);
      groups.emplace_back(std::move(scope), std::vector<int>{table});
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [&](const auto &a, const auto &b) {
                       return sizeOf(a.first) > sizeOf(b.first);
                     });
    std::size_t small = bucket.size * bucket.values / 16;
    std::vector<std::pair<Scope, std::vector<int>>> merged;
    for (auto &group : groups) {
      bool placed = false;
      for (auto &[scope, tables] : merged) {
        Scope both = scope;
        insert(both, group.first);
        bool mixes = restrict(block, scope).empty() !=
                     restrict(block, group.first).empty();
        if (sizeOf(both) == sizeOf(scope) ||
            (sizeOf(both) <= small && !mixes)) {
          scope = std::move(both);
          tables.insert(tables.end(), group.second.begin(), group.second.end());
          placed = true;
          break;
        }
      }
      if (!placed)
        merged.push_back(std::move(group));
    }
    return merged;
  }

  void addInputs(std::size_t index) {
    Bucket &bucket = program.buckets[index];
    const Scope &layout = layouts[index];
    for (const auto &[scope, tables] : groupTables(index)) {
      Scope ordered = restrict(layout, scope);
      Leaf leaf;
      leaf.size = sizeOf(ordered);
      leaf.offset = allocate(leaf.size);
      for (int table : tables)
        leaf.parts.push_back({table, gatherIndex(table, ordered)});
      BucketInput input;
      input.leaf = static_cast<int>(program.leaves.size());
      input.offset = leaf.offset;
      program.leaves.push_back(std::move(leaf));
      addInput(bucket, std::move(input), ordered);
    }
    for (int message : messagesOf[index]) {
      BucketInput input;
      input.message = message;
      input.offset = program.buckets[message].offset;
      addInput(bucket, std::move(input), program.buckets[message].scope);
    }
    bucket.offset = allocate(bucket.size);
  }

  /// Returns the variable's stride in a row-major table over `ordered`, or 0.
  std::size_t strideOf(const Scope &ordered, int variable) const {
    std::size_t stride = 1;
    for (std::size_t p = ordered.size(); p-- > 0;) {
      if (ordered[p] == variable)
        return stride;
      stride *= static_cast<std::size_t>(sizes[ordered[p]]);
    }
    return 0;
  }

  void addInput(Bucket &bucket, BucketInput input, const Scope &ordered) {
    for (int variable : bucket.scope)
      input.strides.push_back(strideOf(ordered, variable));
    input.variableStride =
        bucket.variable < 0 ? 0 : strideOf(ordered, bucket.variable);

    Scope block(bucket.scope.begin() + bucket.outer, bucket.scope.end());
    Scope common = restrict(block, ordered);
    Scope full = ordered;
    Bucket::Term term;
    term.offset = input.offset;
    if (!common.empty() && common.size() < block.size()) {
      Bucket::Expansion expansion;
      expansion.fromRow = sizeOf(common);
      expansion.rows = sizeOf(ordered) / expansion.fromRow;
      expansion.from = input.offset;
      expansion.to = allocate(expansion.rows * bucket.blockSize);
      for (std::size_t entry = 0; entry < bucket.blockSize; ++entry) {
        std::size_t rest = entry;
        std::size_t offset = 0;
        for (std::size_t p = block.size(); p-- > 0;) {
          auto size = static_cast<std::size_t>(sizes[block[p]]);
          offset += (rest % size) * strideOf(common, block[p]);
          rest /= size;
        }
        expansion.pick.push_back(offset);
      }
      term.offset = expansion.to;
      full.resize(ordered.size() - common.size());
      full.insert(full.end(), block.begin(), block.end());
      bucket.expansions.push_back(std::move(expansion));
    }
    for (std::size_t p = 0; p < bucket.outer; ++p)
      term.strides.push_back(strideOf(full, bucket.scope[p]));
    (common.empty() ? bucket.scalars : bucket.rows).push_back(std::move(term));
    bucket.inputs.push_back(std::move(input));
  }

  /// Returns the entry of `table` for each entry over the live values of
  /// `ordered`.
  std::vector<int> gatherIndex(int table, const Scope &ordered) const {
    const Scope &scope = shape.tables[table].scope;
    std::vector<std::size_t> stride(scope.size(), 1);
    for (std::size_t p = scope.size(); p-- > 1;)
      stride[p - 1] =
          stride[p] * static_cast<std::size_t>(shape.domains[scope[p]]);
    std::size_t base = 0;
    std::vector<std::vector<std::size_t>> step(ordered.size());
    for (std::size_t p = 0; p < scope.size(); ++p) {
      const std::vector<int> &values = program.live[scope[p]];
      if (values.size() == 1)
        base += stride[p] * static_cast<std::size_t>(values[0]);
      for (std::size_t q = 0; q < ordered.size(); ++q)
        if (ordered[q] == scope[p])
          for (int value : values)
            step[q].push_back(stride[p] * static_cast<std::size_t>(value));
    }
    std::vector<std::size_t> partial = {base};
    for (std::size_t q = 0; q < ordered.size(); ++q) {
      std::vector<std::size_t> next;
      auto size = static_cast<std::size_t>(sizes[ordered[q]]);
      next.reserve(partial.size() * size);
      for (std::size_t offset : partial)
        for (std::size_t a = 0; a < size; ++a)
          next.push_back(offset + (step[q].empty() ? 0 : step[q][a]));
      partial = std::move(next);
    }
    return {partial.begin(), partial.end()};
  }

  const Problem &shape;
  EliminationProgram program;
  std::vector<int> sizes;    ///< live values per variable
  std::vector<Scope> scopes; ///< per table, variables with several values
  std::vector<std::vector<int>> tablesOf, messagesOf; ///< inputs per bucket
  std::vector<std::size_t> readers; ///< per bucket, the reader of its result
  std::vector<Scope> layouts;       ///< per bucket, its joined table's layout
};

} // namespace

EliminationProgram compileElimination(const Problem &shape, LiveValues live,
                                      const std::vector<int> &keep) {
  return Compiler(shape, std::move(live), keep).compile();
}

} // namespace mtplan::planner

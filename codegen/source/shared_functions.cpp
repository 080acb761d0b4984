//===- shared_functions.cpp - Functions that stages share -----------------===//

#include "codegen/source/shared_functions.h"

#include <algorithm>
#include <utility>

namespace mtplan::codegen {

namespace {

/// Holds a function's code without comments. The names of members of `buf` are
/// removed from the code and listed in `members`.
struct Comparable {
  std::string body;
  std::vector<std::string> members; ///< in order of use
  std::size_t stage;
  StageFunction *function;
};

Comparable comparable(std::size_t stage, StageFunction &function) {
  Comparable all{
      function.kind + ":" + function.arguments + ":", {}, stage, &function};
  std::string words;
  for (const TextItem &item : function.body.items()) {
    if (item.kind == TextItem::Kind::comment)
      continue;
    words += item.words + "(";
    for (const std::string &argument : item.arguments)
      words += argument + ",";
    words += item.end + "\n";
  }
  MemberPieces pieces = piecesOf(words);
  for (const std::string &text : pieces.texts)
    all.body += text + kMembers;
  all.members = std::move(pieces.names);
  return all;
}

/// Returns the name in `own` for each member that `other` reads. Returns
/// nothing if one name in `other` corresponds to several names in `own`.
std::optional<BufferNames> namesIn(const Comparable &own,
                                   const Comparable &other) {
  BufferNames names;
  for (std::size_t b = 0; b < own.members.size(); ++b)
    if (names.try_emplace(other.members[b], own.members[b]).first->second !=
        own.members[b])
      return std::nullopt;
  return names;
}

bool areSame(const BufferNames &names) {
  return std::ranges::all_of(
      names, [](const auto &one) { return one.first == one.second; });
}

/// Adds names to a struct and returns true. If the struct maps one of the names
/// to another buffer, returns false and adds nothing.
bool merge(BufferNames &all, const BufferNames &more) {
  for (const auto &[name, its] : more)
    if (const auto found = all.find(name);
        found != all.end() && found->second != its)
      return false;
  all.insert(more.begin(), more.end());
  return true;
}

std::string nameOfPart(std::size_t part) {
  return "part" + std::to_string(part);
}

} // namespace

std::string StageFunction::calleeFor(StageFunction &caller) const {
  if (isPlain()) {
    caller.callsOwn = true;
    return callee();
  }
  std::string argument;
  if (isOfPart ? caller.part == part : !part && buffers == base)
    argument = "buf";
  else if (isOfPart && caller.base != base)
    argument = "typename buf::" + nameOfPart(*part);
  if (argument.empty()) {
    caller.callsOwn = true;
    return callee();
  }
  caller.callsTemplates = true;
  return call + "<" + argument + ">";
}

void StageFunction::write(Text &to) const {
  to.line();
  to.add(comment);
  if (isTemplate)
    to.line("template <typename buf>");
  to.line("void " + call + "(" + arguments + ") {");
  to.add(isTemplate || plainBody.items().empty() ? body : plainBody);
  to.line("}");
}

void FunctionSharing::assignBuffers(std::size_t stage, StageFunction &function,
                                    const BufferNames &own) {
  std::vector<BufferStruct> &all = structs[stage];
  const auto structFor = [&](const std::string &name) -> BufferNames & {
    const auto found = std::ranges::find(all, name, &BufferStruct::name);
    if (found != all.end())
      return found->names;
    all.push_back({name, function.base, {}});
    return all.back().names;
  };
  function.isOfPart =
      function.part && merge(structFor(nameOfPart(*function.part)), own);
  function.buffers = function.base;
  if (function.isOfPart || areSame(own))
    return;
  function.buffers = function.name + "_buf";
  structFor(function.buffers) = own;
}

bool FunctionSharing::fits(std::size_t stage, const StageFunction &function,
                           const BufferNames &own) const {
  if (!function.callsTemplates)
    return true;
  if (!function.part)
    return areSame(own);
  const auto found = std::ranges::find(
      structs[stage], nameOfPart(*function.part), &BufferStruct::name);
  BufferNames ofPart =
      found == structs[stage].end() ? BufferNames{} : found->names;
  return merge(ofPart, own);
}

std::string FunctionSharing::structOf(std::size_t stage,
                                      std::size_t part) const {
  const auto found =
      std::ranges::find(structs[stage], nameOfPart(part), &BufferStruct::name);
  return found == structs[stage].end() || areSame(found->names) ? "buf"
                                                                : found->name;
}

void FunctionSharing::share(
    std::vector<std::vector<StageFunction>> &functions) {
  std::vector<Comparable> owners;
  std::vector<std::pair<StageFunction *, StageFunction *>> sharers;
  for (std::size_t stage = 0; stage < functions.size(); ++stage)
    for (StageFunction &one : functions[stage]) {
      one.call = one.name;
      if (one.callsOwn || one.isUnused)
        continue;
      Comparable own = comparable(stage, one);
      const auto found = std::ranges::find_if(owners, [&](const auto &other) {
        if (other.body != own.body)
          return false;
        const auto its = namesIn(own, other);
        return its && fits(stage, one, *its) &&
               (other.function->isTemplate ||
                fits(other.stage, *other.function, *namesIn(other, other)));
      });
      if (found == owners.end()) {
        owners.push_back(std::move(own));
        continue;
      }
      StageFunction &other = *found->function;
      if (!other.isTemplate)
        assignBuffers(found->stage, other, *namesIn(*found, *found));
      other.isTemplate = true;
      one.isShared = true;
      assignBuffers(stage, one, *namesIn(own, *found));
      sharers.emplace_back(&one, &other);
    }
  for (const std::vector<StageFunction> &stage : functions)
    for (const StageFunction &one : stage)
      if (one.isPlain())
        names.insert(one.call);
  for (const Comparable &owner : owners)
    if (owner.function->isTemplate)
      owner.function->call = identifierFor(owner.function->templateName.empty()
                                               ? owner.function->name
                                               : owner.function->templateName,
                                           names);
  for (const auto &[own, other] : sharers)
    own->call = other->call;
  for (std::size_t stage = 0; stage < functions.size(); ++stage)
    for (StageFunction &one : functions[stage])
      if (one.isOfPart)
        one.buffers = structOf(stage, *one.part);
}

void FunctionSharing::writeStructs(std::size_t stage, const std::string &base,
                                   Text &to) const {
  for (const BufferStruct &one : structs[stage]) {
    if (one.base != base || areSame(one.names))
      continue;
    to.line();
    to.comment("Templates use the names on the left, which come from other "
               "layers; this stage's buffers are on the right.");
    to.open("struct " + one.name + " : " + base + " {");
    for (const auto &[name, its] : one.names)
      if (name != its)
        to.line(std::string("static constexpr const auto &")
                    .append(name)
                    .append(" = buf::")
                    .append(its)
                    .append(";"));
    to.close("};");
  }
}

} // namespace mtplan::codegen

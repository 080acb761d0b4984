//===- device_text.cpp - Source of the runtime as text --------------------===//

#include "codegen/source/device_text.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace mtplan::codegen {
namespace {

const SourceFile *find(const std::string &path) {
  for (const SourceFile &file : sourceFiles())
    if (path == file.path)
      return &file;
  return nullptr;
}

class Joiner {
public:
  void add(const std::string &path) {
    if (!done.insert(path).second)
      return;
    const SourceFile *file = find(path);
    if (!file)
      throw std::logic_error(path + " is not among the files of a program");
    take(path, file->text);
    const std::string::size_type dot = path.rfind('.');
    const std::string body = path.substr(0, dot) + ".cpp";
    if (path.substr(dot) == ".h" && find(body))
      add(body);
  }

  std::string text() const {
    std::string all;
    for (const std::string &header : headers)
      all += "#include <" + header + ">\n";
    return all + bodies;
  }

private:
  void take(const std::string &path, const std::string &text) {
    std::istringstream lines(text);
    std::string line, body, guard;
    bool begun = false; // the title is told anew
    while (std::getline(lines, line)) {
      const std::string_view view = line;
      if (view.starts_with("#include \"")) {
        const std::string other(view.substr(10, view.rfind('"') - 10));
        if (other != path)
          add(other);
      } else if (view.starts_with("#include <")) {
        headers.insert(std::string(view.substr(10, view.rfind('>') - 10)));
      } else if (view.starts_with("#ifndef MTPLAN_")) {
        guard = view.substr(8);
      } else if (!guard.empty() &&
                 (view == "#define " + guard || view == "#endif // " + guard)) {
        begun = true;
      } else if (begun || !view.starts_with("//===")) {
        // A title's lines are of use, its rules are not.
        if (!view.empty() || (!body.empty() && !body.ends_with("\n\n")))
          body += line + '\n';
      }
    }
    while (body.ends_with("\n\n"))
      body.pop_back();
    bodies += "\n//===- " + path + "\n" + body;
  }

  std::set<std::string> done, headers;
  std::string bodies;
};

} // namespace

std::string joinedSource(const std::set<std::string> &paths) {
  Joiner joiner;
  for (const std::string &path : paths)
    joiner.add(path);
  return joiner.text();
}

} // namespace mtplan::codegen

//===- page_html.cpp - The page, section by section -----------------------===//

#include <fmt/format.h>

#include "tools/report/page/bars.h"
#include "tools/report/page/html_table.h"
#include "tools/report/page/html_text.h"
#include "tools/report/page/page.h"
#include "tools/report/page/page_assets.h"
#include "tools/report/page/scatter.h"
#include "tools/report/page/timeline_svg.h"
#include "tools/report/page/traffic.h"

namespace mtplan::tools {

namespace {

constexpr std::size_t kMostNotes = 50;

std::string paragraph(const char *name, const std::string &text) {
  return text.empty()
             ? ""
             : fmt::format("<p class=\"{}\">{}</p>\n", name, escaped(text));
}

std::string headOf(const Page &page) {
  // The policy blocks injected content, and shows that nothing is fetched.
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
         "'unsafe-inline'\"/>\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escaped(page.title, 200) + "</title>\n<style>" + kPageStyle +
         "</style>\n</head>\n";
}

std::string heading(const Page &page) {
  std::string text = "<header>\n<h1>" + escaped(page.title, 200) + "</h1>\n" +
                     paragraph("soft", page.model) +
                     paragraph("soft", page.machine) +
                     paragraph("plan", page.plan);
  if (!page.figures.empty()) {
    text += "<dl class=\"figures\">\n";
    for (const PageFigure &figure : page.figures)
      text += "<div><dt>" + escaped(figure.name, 80) + "</dt><dd>" +
              escaped(figure.value, 80) + "</dd></div>\n";
    text += "</dl>\n";
  }
  for (std::size_t i = 0; i < page.notes.size() && i < kMostNotes; ++i)
    text += "<p><strong>Note:</strong> " + escaped(page.notes[i]) + "</p>\n";
  if (page.notes.size() > kMostNotes)
    text += fmt::format("<p>and {} more notes</p>\n",
                        page.notes.size() - kMostNotes);
  return text + "</header>\n";
}

std::string section(const char *id, const std::string &title,
                    const std::string &body) {
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}"
                     "</h2>\n",
                     id, escaped(title, 200)) +
         body + "</section>\n";
}

std::string barsSection(const PageBars &bars, const BarsLook &look) {
  return isEmpty(bars) ? "" : barsFigure(bars, look) + barsTable(bars, look);
}

std::string timeSection(const Page &page) {
  if (isEmpty(page.step) && isEmpty(page.stages))
    return "";
  std::string body =
      barsSection(page.step, {"The step", "what", "", kSecondsUnit});
  if (!isEmpty(page.stages))
    body += "<h3>By stage</h3>\n" +
            barsSection(page.stages,
                        {"The step, by stage", "stage", "", kSecondsUnit});
  return section("time", "Where the time goes", body);
}

std::string alternativesSection(const Page &page) {
  std::string body = paragraph("soft", page.searched);
  bool hasOthers = false;
  for (const PageAlternative &plan : page.alternatives)
    hasOthers |= !plan.isChosen;
  if (hasOthers)
    body += scatterFigure(page);
  else
    body += "<p>There is no other plan to compare with.</p>\n";
  return section("alternatives", "Alternatives",
                 body + alternativeTables(page));
}

std::string tableSection(const PageTable &content, std::size_t number) {
  HtmlTable table(content.title);
  for (const std::string &column : content.columns)
    table.column(column);
  for (const std::vector<std::string> &row : content.rows)
    table.row(row);
  return section(fmt::format("table{}", number).c_str(), content.title,
                 paragraph("soft", content.text) + table.fold());
}

} // namespace

std::string htmlOf(const Page &page) {
  std::string text = headOf(page) + "<body>\n" + heading(page) + "<main>\n";
  text += timeSection(page);
  if (page.timeline.stages > 0)
    text +=
        section("timeline", "Timeline",
                timelineFigure(page.timeline) + timelineTables(page.timeline));
  if (!isEmpty(page.memory))
    text +=
        section("memory", "Memory",
                barsSection(page.memory, {"Memory of one device", "stage",
                                          "memory of one device", kBytesUnit}));
  text +=
      section("communication", "Communication", trafficSection(page.traffic));
  text += alternativesSection(page);
  for (std::size_t i = 0; i < page.tables.size(); ++i)
    text += tableSection(page.tables[i], i);
  text += "</main>\n";
  if (!page.made.empty())
    text += "<footer>" + paragraph("soft", page.made) + "</footer>\n";
  return text + "<script>" + kPageScript + "</script>\n</body>\n</html>\n";
}

} // namespace mtplan::tools

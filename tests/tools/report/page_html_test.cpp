//===- page_html_test.cpp - The HTML page ---------------------------------===//

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/report/page/page.h"

namespace {

using namespace mtplan::tools;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kGib = 1024.0 * 1024 * 1024;

bool isVoid(const std::string &name) { return name == "meta"; }

// Returns faults of the text as XML, except in style and script: unmatched
// tags, unquoted or repeated attributes, repeated ids, coordinates that are no
// numbers.
std::vector<std::string> faultsOf(const std::string &html) {
  std::vector<std::string> faults, open;
  std::set<std::string> ids;
  static const std::regex kTag(
      "(/?)([A-Za-z][A-Za-z0-9]*)((?: [A-Za-z-]+=\"[^\"<]*\")*)(/?)");
  static const std::regex kAttribute(" ([A-Za-z-]+)=\"([^\"<]*)\"");
  static const std::regex kNumber("-?[0-9]+(\\.[0-9]+)?");
  static const std::set<std::string> kNumbers = {"x", "y", "width", "height",
                                                 "r"};
  std::size_t at = html.find('\n') + 1; // skips the document type
  while ((at = html.find('<', at)) != std::string::npos) {
    std::size_t end = html.find('>', at);
    if (end == std::string::npos) {
      faults.push_back("a tag without an end");
      break;
    }
    std::string tag = html.substr(at + 1, end - at - 1);
    std::smatch match;
    at = end + 1;
    if (!std::regex_match(tag, match, kTag)) {
      faults.push_back("tag " + tag.substr(0, 100));
      continue;
    }
    std::string name = match[2], attributes = match[3];
    std::set<std::string> names;
    for (std::sregex_iterator it(attributes.begin(), attributes.end(),
                                 kAttribute);
         it != std::sregex_iterator(); ++it) {
      std::string key = (*it)[1], value = (*it)[2];
      if (!names.insert(key).second)
        faults.push_back("twice in " + tag);
      if (key == "id" && !ids.insert(value).second)
        faults.push_back("id " + value);
      if (kNumbers.count(key) && name != "meta" &&
          !std::regex_match(value, kNumber))
        faults.push_back("number in " + tag);
      if (key.starts_with("on"))
        faults.push_back("handler in " + tag);
    }
    if (match[1] == "/") {
      if (open.empty() || open.back() != name)
        faults.push_back("</" + name + ">");
      else
        open.pop_back();
    } else if (match[4] != "/" && !isVoid(name)) {
      open.push_back(name);
    }
    if ((name == "style" || name == "script") && match[1] != "/")
      at = html.find("</" + name + ">", at);
  }
  for (const std::string &name : open)
    faults.push_back("<" + name + "> stays open");
  // Ampersands must start an entity.
  static const std::regex kBare("&(?!(amp|lt|gt|quot|#39);)");
  std::string body = std::regex_replace(html.substr(0, html.find("<script>")),
                                        std::regex("<style>[^<]*</style>"), "");
  if (std::regex_search(body, kBare))
    faults.push_back("a bare &");
  return faults;
}

// Returns all table cells, one after another.
std::string tablesOf(const std::string &html) {
  std::string text;
  for (std::size_t at = 0;
       (at = html.find("<table>", at)) != std::string::npos;) {
    std::size_t end = html.find("</table>", at);
    text += html.substr(at, end - at);
    at = end;
  }
  return text;
}

Page fullPage() {
  Page page;
  page.title = "gpt3-175b on selene";
  page.model = "175 B parameters";
  page.machine = "64 x A100";
  page.plan = "dp 2 x tp 8 x pp 4.";
  page.figures = {{"Step time", "10.0 s"}, {"MFU", "51.2 %"}};
  page.notes = {"a note"};
  page.step.parts = {{"compute", "Operators."}, {"pipeline", "Waiting."}};
  page.step.bars = {{"step", {7.5, 2.5}, 10, ""}};
  page.memory.parts = {{"parameters", ""}, {"activations", ""}};
  page.memory.bars = {{"stage 0", {11.1 * kGib, 22.2 * kGib}},
                      {"stage 1", {33.3 * kGib, 55.5 * kGib}}};
  page.memory.limit = 80 * kGib;
  page.timeline.end = 4;
  page.timeline.stages = 1;
  page.timeline.kinds = {{"forward", 0}, {"backward", 1}};
  page.timeline.streams = {
      {0, "compute", true, {{0, 1, 0, 0, 0, -1}, {1, 4, 1, 0, 0, -1}}}};
  page.traffic = {{"tp", "forward", "all-gather", 4711, 6.6 * kGib, 0.123},
                  {"dp", "update", "reduce-scatter", 96, 7.7 * kGib, 0.456}};
  page.alternatives = {
      {"dp 2 x tp 8", 10, 60.6 * kGib, true, "", ""},
      {"dp 4 x tp 4", 11.2, 71.3 * kGib, false, "+12.0 %", "pipeline 3 s"}};
  page.memoryLimit = 80 * kGib;
  page.rejections = {{"dp 16 x tp 1", "needs at least 120 GiB"}};
  page.searched = "Optimal over 12 candidates";
  page.tables = {
      {"The plan", "", {"operator", "strategy"}, {{"fc1", "column"}}}};
  page.made = "mtplan";
  return page;
}

TEST(PageHtml, IsWellFormed) {
  EXPECT_THAT(faultsOf(htmlOf(fullPage())), IsEmpty());
}

TEST(PageHtml, CheckerSeesFaults) {
  EXPECT_THAT(faultsOf("\n<p><b></p></b>"), Not(IsEmpty()));
  EXPECT_THAT(faultsOf("\n<p a=b></p>"), Not(IsEmpty()));
  EXPECT_THAT(faultsOf("\n<p>&x</p>"), Not(IsEmpty()));
  EXPECT_THAT(faultsOf("\n<rect x=\"nan\"/>"), Not(IsEmpty()));
  EXPECT_THAT(faultsOf("\n<p onclick=\"x\"></p>"), Not(IsEmpty()));
}

TEST(PageHtml, SameBytesEachTime) {
  EXPECT_EQ(htmlOf(fullPage()), htmlOf(fullPage()));
}

TEST(PageHtml, HasEveryNumberInATable) {
  std::string tables = tablesOf(htmlOf(fullPage()));
  for (const char *number :
       {"7.50 s",   "2.50 s",       "75.0 %",
        "25.0 %",   "10.0 s", // step
        "11.1 GiB", "22.2 GiB",     "33.3 GiB",
        "55.5 GiB",                           // memory
        "88.8 GiB", "111.0 %",                // of 80
        "1.00 s",   "3.00 s",       "4.00 s", // timeline
        "4711",     "6.60 GiB",     "123 ms",
        "96",       "7.70 GiB",     "456 ms", // traffic
        "60.6 GiB", "11.2 s",       "71.3 GiB",
        "+12.0 %",  "pipeline 3 s", "needs at least 120 GiB",
        "column"})
    EXPECT_THAT(tables, HasSubstr(std::string(">") + number + "<"));
}

TEST(PageHtml, MarksTheChosenPlanAndWhatIsOverTheLimit) {
  std::string html = htmlOf(fullPage());
  EXPECT_THAT(html, HasSubstr("<title>chosen: dp 2 x tp 8: 10.0 s, 60.6 GiB"
                              "</title></path>"));
  EXPECT_THAT(html, HasSubstr("<title>dp 4 x tp 4: 11.2 s, 71.3 GiB; +12.0 %; "
                              "pipeline 3 s</title></circle>"));
  EXPECT_THAT(html, HasSubstr(">88.8 GiB over<")); // stage 1
  EXPECT_THAT(html, Not(HasSubstr(">33.3 GiB over<")));
}

// The plot is 740 units wide from x = 150, and ends at 1.02 times the longest
// bar (10 s): 7.5 s are 7.5 / 10.2 * 740 = 544.1 units.
TEST(PageHtml, BarsAreAsLongAsTheirParts) {
  std::string html = htmlOf(fullPage());
  EXPECT_THAT(html, HasSubstr("<rect class=\"c0\" x=\"150\" y=\"11.6\" "
                              "width=\"544.1\" height=\"18.7\"><title>step: "
                              "compute 7.50 s</title></rect>"));
  EXPECT_THAT(html, HasSubstr("<rect class=\"c1\" x=\"694.1\" y=\"11.6\" "
                              "width=\"181.4\""));
}

// The axes have a margin of 8 %. They cover 10 s to 11.2 s, and 60.6 GiB to the
// limit of 80 GiB. The point is at x = 110 + 860 * 0.096 / 1.392 = 169.3 and at
// y = 330 - 314 * 1.552 / 22.504 = 308.3.
TEST(PageHtml, PlansAreWhereTheirNumbersAre) {
  EXPECT_THAT(htmlOf(fullPage()),
              HasSubstr("<path class=\"chosen\" "
                        "transform=\"translate(169.3 308.3)\""));
}

TEST(PageHtml, HasHeadingsAndTextForDrawings) {
  std::string html = htmlOf(fullPage());
  EXPECT_THAT(html, HasSubstr("<h1>gpt3-175b on selene</h1>"));
  for (const char *title : {"Where the time goes", "Timeline", "Memory",
                            "Communication", "Alternatives", "The plan"})
    EXPECT_THAT(html, HasSubstr(fmt::format(">{}</h2>", title)));
  std::regex drawing("<svg class=\"chart\"[^>]*>");
  int drawings = 0;
  for (std::sregex_iterator it(html.begin(), html.end(), drawing);
       it != std::sregex_iterator(); ++it, ++drawings)
    EXPECT_THAT(it->str(), HasSubstr("role=\"img\" aria-label=\""));
  EXPECT_EQ(drawings, 6); // step, timeline, memory, two of traffic, plans
}

TEST(PageHtml, ReferencesNoExternalResources) {
  std::string html = htmlOf(fullPage());
  // The only address is the namespace of SVG elements that the script creates.
  html = std::regex_replace(html, std::regex("http://www.w3.org/2000/svg"), "");
  for (const char *outside :
       {"http:", "https:", "src=", "href=", "url(", "@import", "//www"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
}

// Every text field of the page has malicious text.
TEST(PageHtml, EscapesAllText) {
  const std::string evil = "</script></style></title><script>alert(1)</script>"
                           "\"' onload=x <!-- &lt; \xFF\xC0\x80 ]]>";
  Page page = fullPage();
  for (std::string *text : {&page.title, &page.model, &page.machine, &page.plan,
                            &page.searched, &page.made, &page.notes[0]})
    *text = evil;
  page.figures[0] = {evil, evil};
  for (PageBars *bars : {&page.step, &page.memory}) {
    bars->parts[0] = {evil, evil};
    bars->bars[0].name = bars->bars[0].note = bars->noteName = evil;
  }
  page.timeline.kinds[0].name = evil;
  page.timeline.streams[0].name = evil;
  page.traffic[0].axis = page.traffic[0].phase = page.traffic[0].kind = evil;
  for (PageAlternative &plan : page.alternatives)
    plan.name = plan.slowdown = plan.reason = evil;
  page.rejections = {{evil, evil}};
  page.tables = {{evil, evil, {evil}, {{evil}}}};
  std::string html = htmlOf(page);
  EXPECT_THAT(faultsOf(html), IsEmpty());
  // Script and style occur once, unchanged.
  std::size_t script = html.find("<script>");
  EXPECT_EQ(html.find("<script>", script + 1), std::string::npos);
  EXPECT_EQ(html.substr(script), std::string("<script>") + kPageScript +
                                     "</script>\n</body>\n</html>\n");
  EXPECT_THAT(html, HasSubstr(std::string("<style>") + kPageStyle +
                              "</style>\n</head>\n"));
  EXPECT_EQ(html.find('\xFF'), std::string::npos);
}

TEST(PageHtml, ConstantsDoNotEndTheirElement) {
  EXPECT_THAT(kPageScript, Not(HasSubstr("</")));
  EXPECT_THAT(kPageScript, Not(HasSubstr("<!--")));
  EXPECT_THAT(kPageStyle, Not(HasSubstr("<")));
  // The script inserts text only as text nodes.
  for (const char *way : {"innerHTML", "outerHTML", "document.write", "eval",
                          "insertAdjacent", "Function("})
    EXPECT_THAT(kPageScript, Not(HasSubstr(way)));
}

TEST(PageHtml, EmptyPageNamesMissingParts) {
  std::string html = htmlOf({});
  EXPECT_THAT(faultsOf(html), IsEmpty());
  EXPECT_THAT(html, HasSubstr("Nothing is communicated."));
  EXPECT_THAT(html, HasSubstr("There is no other plan to compare with."));
  EXPECT_THAT(html, Not(HasSubstr("<h2 id=\"timeline\"")));
}

TEST(PageHtml, OneAlternativeIsNoScatter) {
  Page page = fullPage();
  page.alternatives.resize(1);
  std::string html = htmlOf(page);
  EXPECT_THAT(html, HasSubstr("There is no other plan to compare with."));
  EXPECT_THAT(tablesOf(html), HasSubstr("60.6 GiB"));
}

TEST(PageHtml, NonFiniteNumbersAreNotDrawn) {
  const double none[] = {std::nan(""),
                         std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(),
                         -5,
                         0,
                         1e308,
                         std::numeric_limits<double>::denorm_min()};
  for (double a : none)
    for (double b : none) {
      Page page = fullPage();
      page.step.bars[0].parts = {a, b};
      page.step.bars[0].total = a;
      page.memory.bars[0].parts = {b, a};
      page.memory.limit = page.memoryLimit = b;
      page.timeline.end = a;
      page.timeline.streams[0].tasks = {{a, b, 0, 0, 0, 0}, {0, b, 9, 0, 0, 0}};
      page.traffic[0].bytes = a;
      page.traffic[1].seconds = b;
      page.alternatives[0].seconds = a;
      page.alternatives[1].bytes = b;
      EXPECT_THAT(faultsOf(htmlOf(page)), IsEmpty()) << a << ' ' << b;
    }
}

TEST(PageHtml, StaysSmallForLargeInputs) {
  Page page = fullPage();
  page.timeline = {};
  for (int i = 0; i < 20000; ++i) {
    page.alternatives.push_back(
        {"plan " + std::to_string(i), 1.0 + i, kGib, false, "+1 %", "slow"});
    page.rejections.push_back({"mesh", "no"});
    page.memory.bars.push_back({"stage", {kGib, kGib}});
    page.notes.push_back("note");
  }
  std::string html = htmlOf(page);
  EXPECT_LT(html.size(), 500000U);
  EXPECT_THAT(html, HasSubstr("and 19402 more rows")); // of 20002 plans
  EXPECT_THAT(html, HasSubstr("64 of 20002 bars are drawn"));
  EXPECT_THAT(html, HasSubstr("The first 200 of 20002 plans are drawn."));
}

double luminanceOf(const std::string &hex) {
  double sum = 0;
  const double weights[] = {0.2126, 0.7152, 0.0722};
  for (std::size_t i = 0; i < 3; ++i) {
    double c = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    sum += weights[i] *
           (c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

// WCAG 2.1 requires a contrast of 4.5 for text and of 3 for drawings.
TEST(PageHtml, ColoursStandOutFromThePage) {
  std::string style = kPageStyle;
  std::size_t dark = style.find("@media (prefers-color-scheme:dark)");
  for (const std::string &theme : {style.substr(0, dark), style.substr(dark)}) {
    std::map<std::string, std::string> colours;
    std::regex colour("--([a-z0-9]+):(#[0-9a-f]{6})");
    for (std::sregex_iterator it(theme.begin(), theme.end(), colour);
         it != std::sregex_iterator(); ++it)
      colours.emplace((*it)[1], (*it)[2]);
    double page = luminanceOf(colours.at("bg"));
    auto contrast = [&](const std::string &name) {
      double one = luminanceOf(colours.at(name));
      return (std::max(one, page) + 0.05) / (std::min(one, page) + 0.05);
    };
    for (const char *text : {"fg", "soft", "over"})
      EXPECT_GE(contrast(text), 4.5) << text;
    for (int i = 0; i < kPageColours; ++i)
      EXPECT_GE(contrast("c" + std::to_string(i)), 3.0) << i;
  }
}

} // namespace
